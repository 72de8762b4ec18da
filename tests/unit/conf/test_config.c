/* Settings: defaults, a file, flags over it; every error names file, line and key. */
#include "server/conf/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/base/buf.h"
#include "server/conf/settings_private.h"
#include "tests/lib/test.h"

static struct config c;
static struct err err;
static struct arena *errors;

static void setup(void)
{
    errors = arena_new(0);
    err_init(&err, errors);
    c = (struct config){0};
}

static void teardown(void)
{
    config_free(&c);
    arena_free(errors);
}

static int text(const char *t)
{
    config_free(&c);
    err_clear(&err);
    return config_load_text("f.conf", t, strlen(t), &c, &err);
}

static int line(int argc, const char **argv)
{
    config_free(&c);
    err_clear(&err);
    return config_load(argc, (char **)argv, &c, &err);
}
#define LINE(...)                                      \
    __extension__({                                    \
        const char *args[] = {"octavod", __VA_ARGS__}; \
        line((int)OV_LEN(args), args);                 \
    })

static void refused(const char *file, const char *message)
{
    ck_assert_msg(text(file) == ERR_BAD_VALUE, "taken: %s", file);
    ck_assert_msg(strncmp(err.msg, message, strlen(message)) == 0, "%s\ngives  %s\nwanted %s", file, err.msg, message);
}

START_TEST(nothing_given_gives_the_defaults)
{
    ck_assert_int_eq(text(""), 0);
    ck_assert_int_eq(c.action, CONFIG_RUN);
    ck_assert_int_eq(c.port, 27017);
    ck_assert_int_eq(c.n_bind_ip, 1);
    ck_assert_str_eq(c.bind_ip[0], "127.0.0.1");
    ck_assert_int_eq(c.journal_commit_interval_ms, 100);
    ck_assert_int_eq(c.compression, CONFIG_LZ4);
    ck_assert_uint_eq(c.compressors, 1u << CONFIG_WIRE_SNAPPY | 1u << CONFIG_WIRE_ZLIB | 1u << CONFIG_WIRE_ZSTD);
    ck_assert_ptr_null(c.log_path);
    ck_assert_ptr_null(c.repl_set_name);
    ck_assert(!c.enable_test_commands && !c.fork);
    ck_assert_uint_eq(c.n_given, 0);
}
END_TEST

START_TEST(a_file_sets_what_it_names)
{
    ck_assert_int_eq(
        text("# a comment\n"
             "storage:\n  dbPath: /data\n  cacheSizeGB: 1.5\n  journal:\n    commitIntervalMs: 20\n"
             "  compression: zstd\n"
             "net:\n  port: 4000\n  bindIp: 10.0.0.1, localhost\n  compression:\n    compressors: [zstd, snappy]\n"
             "systemLog:\n  destination: file\n  path: /log\n  logAppend: true\n  verbosity: 2\n"
             "processManagement:\n  fork: true\n"
             "replication:\n  replSetName: rs0\n  advertisedHost: db.example:27017\n"
             "setParameter:\n  enableTestCommands: 1\n"),
        0);
    ck_assert_str_eq(c.db_path, "/data");
    ck_assert(c.cache_size_gb == 1.5);
    ck_assert_int_eq(c.journal_commit_interval_ms, 20);
    ck_assert_int_eq(c.compression, CONFIG_ZSTD);
    ck_assert_int_eq(c.port, 4000);
    ck_assert_uint_eq(c.n_bind_ip, 2);
    ck_assert_str_eq(c.bind_ip[1], "localhost");
    ck_assert_uint_eq(c.compressors, 1u << CONFIG_WIRE_SNAPPY | 1u << CONFIG_WIRE_ZSTD);
    ck_assert_str_eq(c.log_path, "/log");
    ck_assert(c.log_append && c.fork && c.enable_test_commands);
    ck_assert_int_eq(c.log_verbosity, 2);
    ck_assert_str_eq(c.repl_set_name, "rs0");
    ck_assert_str_eq(c.advertised_host, "db.example:27017");
}
END_TEST

START_TEST(empty_sections_say_nothing)
{
    ck_assert_int_eq(text("net:\n  # port: 1\nstorage:\n"), 0);
    ck_assert_int_eq(c.port, 27017);
}
END_TEST

START_TEST(what_is_wrong_in_a_file_is_told_with_its_line)
{
    refused("net:\n  port: 1\n  prot: 2\n", "f.conf:3: net.prot: unknown setting");
    refused("nett:\n  port: 1\n", "f.conf:1: nett: unknown setting");
    refused("\nnet: 5\n", "f.conf:2: net: must be a section");
    refused("net:\n  port: abc\n", "f.conf:2: net.port: must be a whole number, not \"abc\"");
    refused("net:\n  port: 65536\n", "f.conf:2: net.port: must be 0 to 65535, not 65536");
    refused("net:\n  port: 99999999999999999999\n", "f.conf:2: net.port: must be a whole number");
    refused("net:\n  port:\n    a: 1\n", "f.conf:3: net.port: has no value that it can take");
    refused("net:\n  port:\n", "f.conf:2: net.port: has no value that it can take");
    refused("net:\n  port: 1\n  port: 2\n", "f.conf:3: net.port: is given twice");
    refused("net:\n  bindIp: 'a,,b'\n", "f.conf:2: net.bindIp: has an empty address");
    refused("net:\n  bindIp: []\n", "f.conf:2: net.bindIp: has an empty address");
    refused("net:\n  bindIp: [a, [b]]\n", "f.conf:2: net.bindIp: has no value that it can take");
    refused("net:\n  compression:\n    compressors: lzma\n", "f.conf:3: net.compression.compressors: must be of ");
    refused("storage:\n  compression: lzma\n", "f.conf:2: storage.compression: must be one of none,lz4,zstd,snappy");
    refused("storage:\n  cacheSizeGB: nan\n", "f.conf:2: storage.cacheSizeGB: must be a number");
    refused("storage:\n  cacheSizeGB: 0\n", "f.conf:2: storage.cacheSizeGB: must be 0.01 to 10000 GB, not 0");
    refused("storage:\n  dbPath: ''\n", "f.conf:2: storage.dbPath: must not be empty");
    refused("systemLog:\n  logAppend: maybe\n", "f.conf:2: systemLog.logAppend: must be true or false");
    refused("systemLog:\n  destination: syslog\n", "f.conf:2: systemLog.destination: must be file");
    refused("setParameter:\n  nope: 1\n", "f.conf:2: setParameter.nope: there is no such parameter");
    refused("setParameter:\n  logLevel: 9\n", "f.conf:2: setParameter.logLevel: must be 0 to 5, not 9");
    refused("net:\n  port: [1\n", "f.conf:3: this is not YAML: ");
    refused("- 1\n", "f.conf:1: the file: must be made of sections");
    refused("net:\n  port: 1\n---\nnet:\n  port: 2\n", "f.conf:4: the file: must be one document");
}
END_TEST

START_TEST(keys_of_others_are_refused_by_name)
{
    refused("security:\n  authorization: enabled\n", "f.conf:2: security.authorization: is not available yet");
    refused("net:\n  tls:\n    mode: requireTLS\n", "f.conf:3: net.tls.mode: is not available yet");
    refused("storage:\n  wiredTiger:\n    engineConfig:\n      cacheSizeGB: 1\n",
            "f.conf:3: storage.wiredTiger.engineConfig: is not available");
    refused("storage:\n  journal:\n    enabled: true\n", "f.conf:3: storage.journal.enabled: is always on");
    ck_assert_int_eq(LINE("--auth"), ERR_BAD_VALUE);
    ck_assert_str_eq(err.msg, "--auth: is not available yet");
}
END_TEST

START_TEST(settings_that_need_each_other)
{
    ck_assert_int_eq(text("processManagement:\n  fork: true\n"), ERR_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(err.msg, "systemLog.path"));
    ck_assert_int_eq(text("replication:\n  advertisedHost: a:1\n"), ERR_BAD_VALUE);
    ck_assert_ptr_nonnull(strstr(err.msg, "replication.replSetName"));
}
END_TEST

START_TEST(flags_in_each_form_and_the_last_wins)
{
    ck_assert_int_eq(LINE("--port", "1", "--port=2", "--bind_ip_all", "-vv", "--replSet", "rs", "--setParameter",
                          "enableTestCommands=1", "--dbpath", "--odd"),
                     0);
    ck_assert_int_eq(c.port, 2);
    ck_assert_str_eq(c.bind_ip[0], "*");
    ck_assert_int_eq(c.log_verbosity, 2);
    ck_assert_str_eq(c.repl_set_name, "rs");
    ck_assert_str_eq(c.db_path, "--odd");
    ck_assert(c.enable_test_commands);
}
END_TEST

START_TEST(what_is_wrong_on_the_command_line)
{
    static const struct {
        const char *a, *b, *message;
    } rows[] = {
        {"--prot", "1", "--prot: unknown option; see --help"},
        {"port", "1", "port: unknown option; see --help"},
        {"--port", "x", "--port: must be a whole number, not \"x\""},
        {"--ipv6", "--port", "--port: needs a value"},
        {"--setParameter", "a", "--setParameter: must be name=value, not \"a\""},
        {"--setParameter", "a=1", "--setParameter a: there is no such parameter"},
        {"--ipv6", "-vvvvvv", "-v: must be 0 to 5, not 6"},
        {"--ipv6", "--verbose=2", "--verbose: must be v, vv … vvvvv, not \"2\""},
        {"--ipv6", "--verbose=", "--verbose: must be v, vv … vvvvv, not \"\""},
        {"--ipv6", "--verbose=vx", "--verbose: must be v, vv … vvvvv, not \"vx\""},
        {"--ipv6", "--help=1", "--help: takes no value"},
        {"--ipv6", "--version=1", "--version: takes no value"},
        {"--tlsAllowInvalidHostnames", "--ipv6", "--tlsAllowInvalidHostnames: is not available yet"},
        {"--wiredTigerJournalCompressor", "none", "--wiredTigerJournalCompressor: is not available yet"},
        {"--ipv6", "--repair", "--repair: is not available yet"},
        {"--ipv6", "--repaired", "--repaired: unknown option; see --help"},
        {"--config", "/nonexistent/f", "/nonexistent/f: No such file or directory"},
    };
    for (size_t i = 0; i < OV_LEN(rows); i++) {
        ck_assert_int_eq(LINE(rows[i].a, rows[i].b), ERR_BAD_VALUE);
        ck_assert_str_eq(err.msg, rows[i].message);
    }
}
END_TEST

/* A row of the table for each setting: two texts that it takes and one that it refuses. */
static const struct {
    const char *key, *one, *other, *wrong;
} rows[] = {
    {"storage.dbPath", "/a", "/b", ""},
    {"storage.cacheSizeGB", "0.5", "2", "0.001"},
    {"storage.journal.commitIntervalMs", "1", "500", "501"},
    {"storage.compression", "none", "zstd", "LZ4"},
    {"net.port", "1", "65535", "-1"},
    {"net.bindIp", "10.0.0.1", "a.example", "a,"},
    {"net.bindIpAll", "true", "false", "yes"},
    {"net.ipv6", "true", "false", "yes"},
    {"net.maxIncomingConnections", "5", "6", "4"},
    {"net.loops", "1", "8", "9"},
    {"net.workers", "1", "256", "257"},
    {"net.compression.compressors", "snappy", "zstd", "disabled,zstd"},
    {"systemLog.path", "/a", "/b", ""},
    {"systemLog.logAppend", "true", "false", "1"},
    {"systemLog.verbosity", "1", "5", "6"},
    {"systemLog.rotateSizeMB", "1", "2", "1.5"},
    {"processManagement.fork", "true", "false", "1"},
    {"processManagement.pidFilePath", "/a", "/b", ""},
    {"replication.replSetName", "a", "b", ""},
    {"replication.advertisedHost", "a:1", "b:1", ""},
};

/* What the field of `s` holds, as a text. */
static const char *held(const struct setting *s)
{
    static char out[256];
    const char *field = (const char *)&c + s->at;
    switch (s->type) {
    case SETTING_INT:
    case SETTING_ENUM:
        snprintf(out, sizeof(out), "%lld", (long long)*(const int64_t *)field);
        break;
    case SETTING_DOUBLE:
        snprintf(out, sizeof(out), "%g", *(const double *)field);
        break;
    case SETTING_BOOL:
        return *(const bool *)field ? "true" : "false";
    case SETTING_SET:
        snprintf(out, sizeof(out), "%u", *(const uint32_t *)field);
        break;
    case SETTING_STRING:
    case SETTING_LIST:
        snprintf(out, sizeof(out), "%s", *(const char *const *)field ? *(const char *const *)field : "");
        break;
    }
    return out;
}

/* What the field holds for the text `value`, written here by hand. */
static const char *wanted(const struct setting *s, const char *value)
{
    static const struct {
        const char *name, *held;
    } names[] = {{"none", "0"}, {"zstd", "2"}}, sets[] = {{"snappy", "2"}, {"zstd", "8"}};
    for (size_t i = 0; i < 2; i++) {
        if (s->type == SETTING_ENUM && strcmp(names[i].name, value) == 0)
            return names[i].held;
        if (s->type == SETTING_SET && strcmp(sets[i].name, value) == 0)
            return sets[i].held;
    }
    return value;
}

/* A file with `value` for `s`, and with what that setting needs beside it. */
static void as_file(struct buf *b, const struct setting *s, const char *value)
{
    int depth = 0;
    const char *p = s->key;
    b->len = 0;
    for (const char *dot; (dot = strchr(p, '.')); p = dot + 1, depth++)
        buf_printf(b, "%*s%.*s:\n", 2 * depth, "", (int)(dot - p), p);
    buf_printf(b, "%*s%s: '%s'\n", 2 * depth, "", p, value);
    if (strcmp(s->key, "replication.advertisedHost") == 0)
        buf_printf(b, "  replSetName: x\n");
    if (strcmp(s->key, "processManagement.fork") == 0)
        buf_printf(b, "systemLog:\n  path: /x\n");
}

/* `value` for `s` on the command line, after `first` if that is not NULL. */
static int by_flag(const struct setting *s, const char *first, const char *value, const char *file)
{
    static char a[128], b[128];
    static const char v[] = "vvvvv";
    const char *args[8] = {"octavod", b, "--replSet=x", "--logpath=/x"};
    int n = 4;
    bool verbose = strcmp(s->flag, "verbose") == 0;
    snprintf(b, sizeof(b), "--%s=%.*s", s->flag, verbose ? atoi(value) : 100, verbose ? v : value);
    if (strcmp(s->flag, "replSet") == 0)
        args[2] = "--logpath=/x", n = 3;
    if (strcmp(s->flag, "logpath") == 0)
        n = 3;
    if (first) {
        snprintf(a, sizeof(a), "--%s=%.*s", s->flag, verbose ? atoi(first) : 100, verbose ? v : first);
        args[n++] = b;
        args[1] = a;
    }
    if (file) {
        args[n++] = "-f";
        args[n++] = file;
    }
    return line(n, args);
}

static void write_file(const char *path, const struct buf *b)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(b->p, 1, b->len, f), b->len);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(every_setting_by_file_and_by_flag)
{
    struct buf b;
    char path[] = "/tmp/octavo-conf-XXXXXX", start[160];
    close(mkstemp(path));
    buf_init(&b);
    size_t n = 0;
    for (const struct setting *s = settings; s->key; s++, n++) {
        ck_assert_msg(n < OV_LEN(rows) && strcmp(rows[n].key, s->key) == 0, "no row for %s in this test", s->key);
        const char *one = rows[n].one, *other = rows[n].other;

        as_file(&b, s, one);
        write_file(path, &b);
        ck_assert_msg(config_load_text("f.conf", (char *)b.p, b.len, &c, &err) == 0, "%s", err.msg);
        ck_assert_str_eq(held(s), wanted(s, one));
        ck_assert_str_eq(c.given[0].key, s->key);
        ck_assert_str_eq(c.given[0].value, one);

        ck_assert_msg(by_flag(s, NULL, one, NULL) == 0, "%s", err.msg);
        ck_assert_str_eq(held(s), wanted(s, one));
        ck_assert_msg(by_flag(s, one, other, NULL) == 0, "%s", err.msg);
        ck_assert_str_eq(held(s), wanted(s, other)); /* the last wins */
        ck_assert_msg(by_flag(s, NULL, other, path) == 0, "%s", err.msg);
        ck_assert_str_eq(held(s), wanted(s, other)); /* a flag wins over the file */

        as_file(&b, s, rows[n].wrong);
        int lines = 1;
        for (const char *p = s->key; (p = strchr(p, '.')); p++)
            lines++;
        snprintf(start, sizeof(start), "f.conf:%d: %s: ", lines, s->key);
        config_free(&c);
        err_clear(&err);
        ck_assert_int_eq(config_load_text("f.conf", (char *)b.p, b.len, &c, &err), ERR_BAD_VALUE);
        ck_assert_msg(strncmp(err.msg, start, strlen(start)) == 0, "%s: %s", start, err.msg);
        if (strcmp(s->flag, "verbose") != 0) { /* its own forms are tested above */
            snprintf(start, sizeof(start), "--%s: ", s->flag);
            ck_assert_int_eq(by_flag(s, NULL, rows[n].wrong, NULL), ERR_BAD_VALUE);
            ck_assert_msg(strncmp(err.msg, start, strlen(start)) == 0, "%s: %s", start, err.msg);
        }
        config_free(&c);
        err_clear(&err);
    }
    ck_assert_uint_eq(n, OV_LEN(rows));
    buf_free(&b);
    unlink(path);
}
END_TEST

START_TEST(flags_win_over_the_file_wherever_they_stand)
{
    char path[] = "/tmp/octavo-conf-XXXXXX";
    int fd = mkstemp(path);
    static const char file[] = "net:\n  port: 5\n  ipv6: true\n";
    ck_assert_int_eq(write(fd, file, sizeof(file) - 1), sizeof(file) - 1);
    close(fd);
    ck_assert_int_eq(LINE("--port", "6", "-f", path), 0);
    ck_assert_int_eq(c.port, 6);
    ck_assert(c.ipv6);
    ck_assert_str_eq(c.config_file, path);
    unlink(path);
}
END_TEST

START_TEST(help_and_version_come_before_errors_of_files)
{
    ck_assert_int_eq(LINE("--config", "/nonexistent", "--help"), 0);
    ck_assert_int_eq(c.action, CONFIG_HELP);
    ck_assert_int_eq(LINE("--version"), 0);
    ck_assert_int_eq(c.action, CONFIG_VERSION);
    ck_assert_ptr_nonnull(strstr(config_help(), "--journalCommitInterval"));
    ck_assert_ptr_nonnull(strstr(config_help(), "--advertisedHost"));
    ck_assert_ptr_nonnull(strstr(config_version(), "octavod v"));
}
END_TEST

START_TEST(the_sample_file_is_up_to_date_and_says_nothing)
{
    struct buf want;
    static char have[32768];
    FILE *f = fopen("conf/octavod.conf", "r");
    ck_assert_msg(f != NULL, "to be run in the top folder");
    size_t n = fread(have, 1, sizeof(have), f);
    fclose(f);
    buf_init(&want);
    config_write_sample(&want);
    ck_assert_msg(n == want.len && memcmp(have, want.p, n) == 0, "conf/octavod.conf should be:\n%.*s", (int)want.len,
                  (char *)want.p);
    buf_free(&want);
    ck_assert_msg(config_load_text("octavod.conf", have, n, &c, &err) == 0, "%s", err.msg);
    ck_assert_uint_eq(c.n_given, 0);
}
END_TEST

/* Every line that is a comment with a setting can be taken as it is. */
START_TEST(the_sample_file_with_its_comments_taken_away)
{
    struct buf sample, text_now;
    buf_init(&sample);
    buf_init(&text_now);
    config_write_sample(&sample);
    buf_byte(&sample, 0);
    for (char *l = strtok((char *)sample.p, "\n"); l; l = strtok(NULL, "\n")) {
        size_t n = strlen(l);
        if (strncmp(l, "  #", 3) == 0 || (l[0] == '#' && l[1] == ' ' && l[2] != ' '))
            continue; /* words */
        if (l[n - 1] == ' ')
            continue; /* a setting without default */
        buf_printf(&text_now, "%s\n", l[0] == '#' ? l + 2 : l);
    }
    ck_assert_msg(config_load_text("all.conf", (char *)text_now.p, text_now.len, &c, &err) == 0, "%s\n%.*s", err.msg,
                  (int)text_now.len, (char *)text_now.p);
    ck_assert_uint_gt(c.n_given, 15);
    buf_free(&sample);
    buf_free(&text_now);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nothing_given_gives_the_defaults);
    tcase_add_test(tc, a_file_sets_what_it_names);
    tcase_add_test(tc, empty_sections_say_nothing);
    tcase_add_test(tc, what_is_wrong_in_a_file_is_told_with_its_line);
    tcase_add_test(tc, keys_of_others_are_refused_by_name);
    tcase_add_test(tc, settings_that_need_each_other);
    tcase_add_test(tc, flags_in_each_form_and_the_last_wins);
    tcase_add_test(tc, what_is_wrong_on_the_command_line);
    tcase_add_test(tc, every_setting_by_file_and_by_flag);
    tcase_add_test(tc, flags_win_over_the_file_wherever_they_stand);
    tcase_add_test(tc, help_and_version_come_before_errors_of_files);
    tcase_add_test(tc, the_sample_file_is_up_to_date_and_says_nothing);
    tcase_add_test(tc, the_sample_file_with_its_comments_taken_away);
}
TEST_MAIN("conf/config", add_tests)
