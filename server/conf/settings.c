/* One row a setting: files, flags, --help and conf/octavod.conf are made from it. And how a text becomes a value. */
#include "server/conf/settings_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "server/base/buf.h"

#define AT(field) offsetof(struct config, field)

const struct setting settings[] = {
    {"storage.dbPath", "dbpath", SETTING_STRING, AT(db_path), 0, 0, NULL, NULL, "/var/lib/octavo",
     "the folder of the data; made if its parent exists"},
    {"storage.cacheSizeGB", "cacheSizeGB", SETTING_DOUBLE, AT(cache_size_gb), 0.01, 10000, NULL, "GB", "0.25",
     "most memory for blocks read from disk"},
    {"storage.journal.commitIntervalMs", "journalCommitInterval", SETTING_INT, AT(journal_commit_interval_ms), 1, 500,
     NULL, "milliseconds", "100", "how often the journal is synced when no client asks for it"},
    {"storage.compression", "compression", SETTING_ENUM, AT(compression), 0, 0, "none,lz4,zstd,snappy", NULL, "lz4",
     "of blocks on disk"},
    {"net.port", "port", SETTING_INT, AT(port), 0, 65535, NULL, NULL, "27017",
     "the TCP port; 0: any that is free, told in the log"},
    {"net.bindIp", "bind_ip", SETTING_LIST, AT(bind_ip), 0, 0, NULL, NULL, "127.0.0.1",
     "addresses and host names to listen on, with commas; *: all"},
    {"net.bindIpAll", "bind_ip_all", SETTING_BOOL, AT(bind_ip_all), 0, 0, NULL, NULL, "false",
     "listen on all addresses"},
    {"net.ipv6", "ipv6", SETTING_BOOL, AT(ipv6), 0, 0, NULL, NULL, "false", "IPv6 addresses too"},
    {"net.maxIncomingConnections", "maxConns", SETTING_INT, AT(max_incoming_connections), 5, 1000000, NULL,
     "connections", "65536", "further ones are closed at once"},
    {"net.loops", "loops", SETTING_INT, AT(loops), 0, 8, NULL, "threads", "0",
     "threads that serve connections; 0: by the number of processors"},
    {"net.workers", "workers", SETTING_INT, AT(workers), 0, 256, NULL, "threads", "0",
     "threads for long operations; 0: twice the processors"},
    {"net.compression.compressors", "networkMessageCompressors", SETTING_SET, AT(compressors), 0, 0,
     "disabled,snappy,zlib,zstd", NULL, "snappy,zstd,zlib", "what clients may compress messages with, or disabled"},
    {"systemLog.path", "logpath", SETTING_STRING, AT(log_path), 0, 0, NULL, NULL, NULL,
     "the file of the log; without it, standard output"},
    {"systemLog.logAppend", "logappend", SETTING_BOOL, AT(log_append), 0, 0, NULL, NULL, "false",
     "go on in an existing file instead of renaming it"},
    {"systemLog.verbosity", "verbose", SETTING_INT, AT(log_verbosity), 0, 5, NULL, NULL, "0",
     "0: little, 5: most; -v, -vv … on the command line"},
    {"systemLog.rotateSizeMB", "logRotateSize", SETTING_INT, AT(log_rotate_mb), 0, 1000000, NULL, "MB", "0",
     "rename the file at this size and start anew; 0: never"},
    {"processManagement.fork", "fork", SETTING_BOOL, AT(fork), 0, 0, NULL, NULL, "false", "go on in the background"},
    {"processManagement.pidFilePath", "pidfilepath", SETTING_STRING, AT(pid_file_path), 0, 0, NULL, NULL, NULL,
     "a file for the process id"},
    {"replication.replSetName", "replSet", SETTING_STRING, AT(repl_set_name), 0, 0, NULL, NULL, NULL,
     "be a replica set of one member with this name"},
    {"replication.advertisedHost", "advertisedHost", SETTING_STRING, AT(advertised_host), 0, 0, NULL, NULL, NULL,
     "host:port that the set tells its clients; without it, the address they came by"},
    {NULL, NULL, SETTING_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL},
};

/* Keys of mongod that are known and not ours. A key that ends with a dot stands for all below it. */
static const struct {
    const char *key, *flag, *why;
} refused[] = {
    {"security.authorization", "auth", "is not available yet"},
    {"security.keyFile", "keyFile", "is not available yet"},
    {"security.", NULL, "is not available yet"},
    {"net.tls.", "tlsMode", "is not available yet"},
    {"net.ssl.", "sslMode", "is not available yet"},
    {"net.tls.certificateKeyFile", "tlsCertificateKeyFile", "is not available yet"},
    {"net.tls.CAFile", "tlsCAFile", "is not available yet"},
    {"net.unixDomainSocket.", "unixSocketPrefix", "is not available yet"},
    {"net.wireObjectCheck", "noobjcheck", "is always on"},
    {"operationProfiling.", "profile", "is not available yet"},
    {"operationProfiling.slowOpThresholdMs", "slowms", "is not available yet"},
    {"auditLog.", "auditDestination", "is not available yet"},
    {"sharding.", "shardsvr", "is not available yet"},
    {"sharding.clusterRole", "configsvr", "is not available yet"},
    {"replication.oplogSizeMB", "oplogSize", "is not available yet"},
    {"replication.enableMajorityReadConcern", "enableMajorityReadConcern", "is always on"},
    {"storage.engine", "storageEngine", "is not a choice: there is one engine"},
    {"storage.journal.enabled", "nojournal", "is always on"},
    {"storage.directoryPerDB", "directoryperdb", "is not available"},
    {"storage.syncPeriodSecs", "syncdelay", "is not available"},
    {"storage.wiredTiger.", "wiredTigerCacheSizeGB", "is not available: see storage.cacheSizeGB"},
    {"storage.inMemory.", NULL, "is not available"},
    {"storage.oplogMinRetentionHours", "oplogMinRetentionHours", "is not available yet"},
    {"systemLog.syslogFacility", "syslog", "is not available yet"},
    {"systemLog.logRotate", "logRotate", "is not available yet"},
    {"systemLog.quiet", "quiet", "is not available yet"},
    {"systemLog.traceAllExceptions", "traceExceptions", "is not available"},
    {"systemLog.timeStampFormat", "timeStampFormat", "is not available yet"},
    {"systemLog.component.", NULL, "is not available yet"},
    {"processManagement.timeZoneInfo", "timeZoneInfo", "is not available yet"},
    {"net.listenBacklog", NULL, "is not available yet"},
    {"cloud.", NULL, "is not available"},
    {"snmp.", NULL, "is not available"},
};

/* Flags of mongod that come in families, by how they start, and single ones whose key is not in the table above. */
static const struct {
    const char *start;
    bool whole; /* the name is all of the flag */
} refused_flags[] = {
    {"tls", false},
    {"ssl", false},
    {"wiredTiger", false},
    {"audit", false},
    {"ldap", false},
    {"kmip", false},
    {"inMemory", false},
    {"encryption", false},
    {"enableEncryption", true},
    {"noauth", true},
    {"transitionToAuth", true},
    {"clusterAuthMode", true},
    {"clusterIpSourceAllowlist", true},
    {"redactClientLogData", true},
    {"noscripting", true},
    {"filePermissions", true},
    {"nounixsocket", true},
    {"listenBacklog", true},
    {"slowOpSampleRate", true},
    {"profileFilter", true},
    {"repair", true},
    {"restore", true},
    {"upgrade", true},
    {"shutdown", true},
    {"sysinfo", true},
    {"configExpand", true},
    {"outputConfig", true},
};

const struct setting *setting_by_key(const char *key)
{
    for (const struct setting *s = settings; s->key; s++)
        if (strcmp(s->key, key) == 0)
            return s;
    return NULL;
}

const struct setting *setting_by_flag(const char *flag)
{
    for (const struct setting *s = settings; s->key; s++)
        if (s->flag && strcmp(s->flag, flag) == 0)
            return s;
    return NULL;
}

const char *setting_refused_key(const char *key)
{
    for (size_t i = 0; i < OV_LEN(refused); i++) {
        size_t n = strlen(refused[i].key);
        bool all_below = refused[i].key[n - 1] == '.';
        if (refused[i].why &&
            (strcmp(refused[i].key, key) == 0 || (all_below && strncmp(refused[i].key, key, n) == 0) ||
             (all_below && strlen(key) == n - 1 && strncmp(refused[i].key, key, n - 1) == 0)))
            return refused[i].why;
    }
    return NULL;
}

bool setting_refused_section(const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < OV_LEN(refused); i++)
        if (strncmp(refused[i].key, key, n) == 0 && refused[i].key[n] == '.')
            return true;
    return false;
}

const char *setting_refused_flag(const char *flag)
{
    for (size_t i = 0; i < OV_LEN(refused); i++)
        if (refused[i].flag && strcmp(refused[i].flag, flag) == 0)
            return refused[i].why;
    for (size_t i = 0; i < OV_LEN(refused_flags); i++)
        if (strncmp(refused_flags[i].start, flag, strlen(refused_flags[i].start)) == 0 &&
            (!refused_flags[i].whole || !flag[strlen(refused_flags[i].start)]))
            return "is not available yet";
    return NULL;
}

/* ---- texts to values ---- */

static int take_int(const struct setting *s, const char *text, int64_t *out, struct err *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || errno || text[0] == ' ')
        return err_set(err, ERR_BAD_VALUE, "must be a whole number, not \"%s\"", text);
    if ((double)n < s->min || (double)n > s->max)
        return err_set(err, ERR_BAD_VALUE, "must be %lld to %lld%s%s, not %lld", (long long)s->min, (long long)s->max,
                       s->unit ? " " : "", s->unit ? s->unit : "", n);
    *out = n;
    return 0;
}

static int take_double(const struct setting *s, const char *text, double *out, struct err *err)
{
    char *end;
    double d = strtod(text, &end);
    if (end == text || *end || !isfinite(d) || text[0] == ' ')
        return err_set(err, ERR_BAD_VALUE, "must be a number, not \"%s\"", text);
    if (d < s->min || d > s->max)
        return err_set(err, ERR_BAD_VALUE, "must be %g to %g%s%s, not %g", s->min, s->max, s->unit ? " " : "",
                       s->unit ? s->unit : "", d);
    *out = d;
    return 0;
}

static int take_bool(const char *text, bool *out, struct err *err)
{
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return err_set(err, ERR_BAD_VALUE, "must be true or false, not \"%s\"", text);
    *out = text[0] == 't';
    return 0;
}

/* The place of a name in "a,b,c"; -1 if it has none. */
static int64_t choice(const char *choices, const char *name, size_t n)
{
    int64_t i = 0;
    for (const char *p = choices; *p; i++) {
        const char *end = strchrnul(p, ',');
        if ((size_t)(end - p) == n && memcmp(p, name, n) == 0)
            return i;
        p = *end ? end + 1 : end;
    }
    return -1;
}

static int take_enum(const struct setting *s, const char *text, int64_t *out, struct err *err)
{
    int64_t i = choice(s->choices, text, strlen(text));
    if (i < 0)
        return err_set(err, ERR_BAD_VALUE, "must be one of %s, not \"%s\"", s->choices, text);
    *out = i;
    return 0;
}

static int take_set(const struct setting *s, const char *text, uint32_t *out, struct err *err)
{
    uint32_t bits = 0;
    for (const char *p = text;;) {
        const char *end = strchrnul(p, ',');
        int64_t i = choice(s->choices, p, (size_t)(end - p));
        if (i < 0)
            return err_set(err, ERR_BAD_VALUE, "must be of %s, not \"%.*s\"", s->choices, (int)(end - p), p);
        bits |= 1u << i;
        if (!*end)
            break;
        p = end + 1;
    }
    if (bits & 1 && bits != 1)
        return err_set(err, ERR_BAD_VALUE, "\"disabled\" stands alone");
    *out = bits & ~1u;
    return 0;
}

static int take_list(struct config *c, const char *text, struct err *err)
{
    const char *items[CONFIG_BIND_MAX];
    size_t n = 0;
    for (const char *p = text;;) {
        const char *end = strchrnul(p, ',');
        const char *from = p + strspn(p, " "), *to = end;
        while (to > from && to[-1] == ' ')
            to--;
        if (from >= to)
            return err_set(err, ERR_BAD_VALUE, "has an empty address in \"%s\"", text);
        if (n == CONFIG_BIND_MAX)
            return err_set(err, ERR_BAD_VALUE, "takes %d addresses at most", CONFIG_BIND_MAX);
        items[n++] = arena_strndup(c->arena, from, (size_t)(to - from));
        if (!*end)
            break;
        p = end + 1;
    }
    memcpy(c->bind_ip, items, n * sizeof(items[0]));
    c->n_bind_ip = n;
    return 0;
}

int setting_take(struct config *c, const struct setting *s, const char *text, struct err *err)
{
    void *field = (char *)c + s->at;
    switch (s->type) {
    case SETTING_INT:
        return take_int(s, text, field, err);
    case SETTING_DOUBLE:
        return take_double(s, text, field, err);
    case SETTING_BOOL:
        return take_bool(text, field, err);
    case SETTING_ENUM:
        return take_enum(s, text, field, err);
    case SETTING_SET:
        return take_set(s, text, field, err);
    case SETTING_LIST:
        return take_list(c, text, err);
    case SETTING_STRING:
        if (!*text)
            return err_set(err, ERR_BAD_VALUE, "must not be empty");
        *(const char **)field = arena_strndup(c->arena, text, strlen(text));
        return 0;
    }
    return err_set(err, ERR_INTERNAL_ERROR, "a setting without type");
}

int setting_take_parameter(struct config *c, const char *name, const char *text, struct err *err)
{
    if (strcmp(name, "enableTestCommands") == 0) {
        if (strcmp(text, "1") == 0 || strcmp(text, "0") == 0)
            c->enable_test_commands = text[0] == '1';
        else
            return take_bool(text, &c->enable_test_commands, err);
        return 0;
    }
    if (strcmp(name, "ttlMonitorEnabled") == 0)
        return take_bool(text, &c->ttl_monitor_enabled, err);
    if (strcmp(name, "ttlMonitorSleepSecs") == 0)
        return take_int(&(struct setting){.min = 1, .max = INT32_MAX, .unit = "seconds"}, text,
                        &c->ttl_monitor_sleep_secs, err);
    if (strcmp(name, "logLevel") == 0)
        return setting_take(c, setting_by_key("systemLog.verbosity"), text, err);
    return err_set(err, ERR_BAD_VALUE, "there is no such parameter");
}

void setting_given(struct config *c, const char *key, const char *value, char type)
{
    size_t i = 0;
    while (i < c->n_given && strcmp(c->given[i].key, key) != 0)
        i++;
    if (i == c->n_given) {
        struct config_entry *more = arena_alloc(c->arena, (c->n_given + 1) * sizeof(*more));
        if (c->n_given)
            memcpy(more, c->given, c->n_given * sizeof(*more));
        c->given = more;
        c->n_given++;
    }
    c->given[i] = (struct config_entry){arena_strndup(c->arena, key, strlen(key)),
                                        arena_strndup(c->arena, value, strlen(value)), type};
}
