/* The settings of the daemon: one struct, filled from the defaults, a YAML file with mongod's key names and the command line, each over the one
 * before. The table of settings is in settings.c: a row each, from which files, flags, --help and conf/octavod.conf are made.
 * Thread: config_load at start-up; afterwards the struct is only read, by any. */
#ifndef OV_CONFIG_H
#define OV_CONFIG_H

#include "server/base/err.h"

enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION };
enum config_compression { CONFIG_NONE, CONFIG_LZ4, CONFIG_ZSTD, CONFIG_SNAPPY }; /* order of enum eng_compression */
enum config_compressor {
    CONFIG_NOOP = 0,
    CONFIG_WIRE_SNAPPY = 1,
    CONFIG_WIRE_ZLIB = 2,
    CONFIG_WIRE_ZSTD = 3
}; /* ids of OP_COMPRESSED */

#define CONFIG_BIND_MAX 64

struct config_entry { /* a setting that was given, for getCmdLineOpts; the last of a key wins */
    const char *key, *value;
    char type; /* 's' text, 'i' integer, 'd' double, 'b' boolean, 'l' list of texts with commas */
};

struct config {
    enum config_action action; /* what the command line asks for; HELP and VERSION come without checks of the rest */
    const char *config_file;   /* --config, or NULL */

    /* storage */
    const char *db_path;
    double cache_size_gb;
    int64_t journal_commit_interval_ms;
    int64_t compression; /* enum config_compression */

    /* net */
    int64_t port;                         /* 0: the kernel picks one */
    const char *bind_ip[CONFIG_BIND_MAX]; /* addresses and host names; "*": all */
    size_t n_bind_ip;
    bool bind_ip_all; /* overrides bind_ip: then bind_ip is {"*"} */
    bool ipv6;
    int64_t max_incoming_connections;
    int64_t loops, workers; /* 0: chosen by the number of processors */
    uint32_t compressors;   /* bit (1 << enum config_compressor), which clients may negotiate */

    /* systemLog */
    const char *log_path; /* NULL: standard output */
    int64_t log_verbosity;
    bool log_append;
    int64_t log_rotate_mb; /* 0: never */

    /* processManagement */
    bool fork;
    const char *pid_file_path; /* NULL: none */

    /* replication */
    const char *repl_set_name;   /* NULL: a standalone */
    const char *advertised_host; /* "host:port" of replica-set hello; NULL: the local end of each connection */

    /* setParameter */
    bool enable_test_commands;
    bool ttl_monitor_enabled;
    int64_t ttl_monitor_sleep_secs;

    /* as given */
    int argc;
    char **argv;
    struct config_entry *given;
    size_t n_given;
    struct arena *arena; /* everything above lives here */
};

/* Reads the command line and the file it names. Owns: *out is the caller's (config_free, also after an error); argv is borrowed.
 * Errors: ERR_BAD_VALUE. Messages name flag, or file, line and key: "octavod.conf:12: net.port: …". Thread: start-up. */
OV_MUST_CHECK int config_load(int argc, char **argv, struct config *out, struct err *err);
/* The same with the text of a file in memory: `name` stands in messages. For tests and the fuzzer. */
OV_MUST_CHECK int config_load_text(const char *name, const char *text, size_t n, struct config *out, struct err *err);
void config_free(struct config *c);

const char *config_help(void);    /* the text of --help; lives as long as the program */
const char *config_version(void); /* the text of --version */
/* Appends conf/octavod.conf: every setting with unit, range and default as comments. */
struct buf;
void config_write_sample(struct buf *out);

#endif
