/* octavod: options -> configuration -> log -> data directory -> engine -> catalog -> listen; and all that backwards at the end. Nothing
 * else: what is done with a message is net's and commands' business.
 *
 * Exit status: 0 a clean end, 2 bad options, 48 cannot listen, 100 the data directory cannot be used. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/base/rand.h"
#include "server/base/version.h"
#include "server/catalog/catalog.h"
#include "server/commands/admin.h"
#include "server/commands/command.h"
#include "server/commands/failpoint.h"
#include "server/commands/running.h"
#include "server/conf/config.h"
#include "server/net/net.h"
#include "server/session/cursors.h"
#include "server/session/retry.h"
#include "server/ttl/ttl.h"
#include "storage/engine.h"

enum { EXIT_OK = 0, EXIT_BAD_OPTIONS = 2, EXIT_NET = 48, EXIT_DATA = 100 };

static struct server server;
static struct net *net;
static int ready_fd = -1; /* after a fork: tells the parent that clients are served */

/* To the log, and to the terminal of who started us if the log is elsewhere. */
static int fail(int status, const char *what, const char *why)
{
    char quoted[1024];
    log_line(LOG_FATAL, "CONTROL", 20557, what, "\"error\":%s", log_quote(why, strlen(why), quoted, sizeof(quoted)));
    fprintf(stderr, "octavod: %s: %s\n", what, why);
    return status;
}

/* ---- the process ---- */

/* Goes on in a child without terminal. The parent waits until the child serves clients, or is dead, and leaves with its status. */
static void fork_away(void)
{
    int fd[2], status = 0;
    char byte;
    if (pipe(fd) != 0) {
        perror("octavod: pipe");
        exit(EXIT_BAD_OPTIONS);
    }
    fflush(NULL);
    printf("about to fork child process, waiting until server is ready for connections.\n");
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        perror("octavod: fork");
        exit(EXIT_BAD_OPTIONS);
    }
    if (pid > 0) {
        close(fd[1]);
        ssize_t n;
        while ((n = read(fd[0], &byte, 1)) < 0 && errno == EINTR)
            ;
        if (n == 1) {
            printf("forked process: %ld\nchild process started successfully, parent exiting\n", (long)pid);
            exit(EXIT_OK);
        }
        waitpid(pid, &status, 0);
        status = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_DATA;
        fprintf(stderr, "octavod: child process failed, exited with %d\n", status);
        exit(status ? status : EXIT_DATA);
    }
    close(fd[0]);
    ready_fd = fd[1];
    fcntl(ready_fd, F_SETFD, FD_CLOEXEC);
    setsid();
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    close(null);
}

static void tell_parent(void)
{
    if (ready_fd < 0)
        return;
    if (write(ready_fd, "", 1) != 1)
        log_line(LOG_WARNING, "CONTROL", 6000010, "The parent process is gone", NULL);
    close(ready_fd);
    ready_fd = -1;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDERR_FILENO);
    close(null);
}

static int write_pid(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return errno;
    fprintf(f, "%ld\n", (long)getpid());
    return fclose(f) == 0 ? 0 : errno;
}

/* ---- the data directory ---- */

/* Makes the directory if it is not there and locks it for this process. The descriptor stays open until the end. */
static int lock_data(const char *dir, char *why, size_t n)
{
    char path[4096];
    int fd;
    if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
        snprintf(why, n, "%s: %s", dir, strerror(errno));
        return -1;
    }
    snprintf(path, sizeof(path), "%s/octavod.lock", dir);
    if ((fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644)) < 0) {
        snprintf(why, n, "%s: %s", path, strerror(errno));
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        char pid[32] = "";
        ssize_t len = read(fd, pid, sizeof(pid) - 1);
        pid[len > 0 ? strcspn(pid, "\n") : 0] = 0;
        snprintf(why, n, "%s is in use by another octavod%s%s", dir, pid[0] ? ", process " : "", pid);
        close(fd);
        return -1;
    }
    if (ftruncate(fd, 0) != 0 || dprintf(fd, "%ld\n", (long)getpid()) < 0) {
        snprintf(why, n, "%s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static void unlock_data(int fd)
{
    if (ftruncate(fd, 0) != 0)
        log_line(LOG_WARNING, "CONTROL", 6000011, "The lock file could not be emptied", NULL);
    close(fd);
}

/* ---- hooks of net ---- */

static void stop_server(struct server *s)
{
    net_stop(net);
}

static void tick(struct server *s, int64_t now_mono_us)
{
    static struct retry_sweep sweep;
    cursors_tick(s->cursors, now_mono_us);
    retry_tick(&sweep, s->engine, clock_wall_ms());
}

static void reopen_log(void)
{
    int rc = log_reopen();
    if (rc != 0)
        fprintf(stderr, "octavod: cannot reopen the log: %s\n", strerror(rc));
}

/* ---- running ---- */

static void say_ready(void)
{
    unsigned port = net_port(net);
    log_startup_done();
    if (ready_fd < 0) {
        printf("mongodb://127.0.0.1:%u/\n", port);
        printf("    mongosh \"mongodb://127.0.0.1:%u/\" --eval \"db.things.insertOne({name: 'first'})\"\n", port);
        fflush(stdout);
    }
    log_line(LOG_INFO, "NETWORK", 23016, "Waiting for connections", "\"port\":%u,\"ssl\":\"off\"", port);
    sd_notify(0, "READY=1");
    tell_parent();
}

/* Listens and serves until it is told to stop. */
static int serve(const struct config *conf)
{
    struct err err;
    struct arena *a = arena_new(0);
    struct net_options opt = {.bind = conf->bind_ip,
                              .n_bind = conf->n_bind_ip,
                              .port = (uint16_t)conf->port,
                              .ipv6 = conf->ipv6,
                              .loops = (unsigned)conf->loops,
                              .workers = (unsigned)conf->workers,
                              .max_connections = conf->max_incoming_connections,
                              .server = &server,
                              .tick = tick,
                              .reopen_log = reopen_log};
    err_init(&err, a);
    int status = EXIT_OK;
    if (net_open(&opt, &net, &err) != 0) {
        status = fail(EXIT_NET, "Failed to set up listener", err.msg);
    } else {
        server.stop = stop_server;
        say_ready();
        net_run(net);
        sd_notify(0, "STOPPING=1");
        log_line(LOG_INFO, "NETWORK", 20562, "Shutdown: all connections are closed", NULL);
    }
    net_close(net);
    arena_free(a);
    return status;
}

/* Opens engine and catalog, serves, closes them. */
static int run(const struct config *conf)
{
    struct eng_error eerr;
    struct err err;
    struct arena *a = arena_new(0);
    struct eng_options opt = {.dir = conf->db_path,
                              .cache_bytes = (uint64_t)(conf->cache_size_gb * 1024 * 1024 * 1024),
                              .commit_interval_ms = (uint32_t)conf->journal_commit_interval_ms,
                              .compression = (enum eng_compression)conf->compression};
    int status;
    err_init(&err, a);
    if (engine_open(&opt, &server.engine, &eerr) != ENG_OK) {
        arena_free(a);
        return fail(EXIT_DATA, "The database cannot be opened", eerr.msg);
    }
    if (catalog_open(server.engine, &server.catalog, &err) != 0) {
        status = fail(EXIT_DATA, "The catalog cannot be loaded", err.msg);
    } else {
        server.config = conf;
        server.set_name = conf->repl_set_name;
        server.advertised = conf->advertised_host;
        server.compressors = conf->compressors;
        if (rw_concern_defaults_load(&server, &err) != 0)
            log_line(LOG_ERROR, "COMMAND", 20565, "The default concerns cannot be loaded", NULL);
        server.cursors = cursors_new(server.engine, server.catalog);
        server.failpoints = failpoints_new();
        server.running = running_new();
        server.start_wall_ms = clock_wall_ms();
        server.start_mono_us = clock_mono_us();
        oid_generate(server.process_id);
        server.ttl = ttl_start(server.engine, server.catalog, conf->ttl_monitor_sleep_secs);
        ttl_enable(server.ttl, conf->ttl_monitor_enabled);
        status = serve(conf);
        ttl_stop(server.ttl);
        server.ttl = NULL;
        running_free(server.running);
        failpoints_free(server.failpoints);
        cursors_free(server.cursors);
        catalog_close(server.catalog);
    }
    engine_close(server.engine);
    arena_free(a);
    return status;
}

/* From the log on: whatever happens is told there. */
static int start(const struct config *conf)
{
    char why[4608], quoted[4608];
    int rc, lock, status;
    struct log_options log = {.path = conf->log_path,
                              .verbosity = (int)conf->log_verbosity,
                              .rotate_bytes = (uint64_t)conf->log_rotate_mb << 20,
                              .append = conf->log_append};
    if ((rc = log_open(&log)) != 0) {
        fprintf(stderr, "octavod: cannot open the log %s: %s\n", conf->log_path, strerror(rc));
        return EXIT_BAD_OPTIONS;
    }
    log_set_thread_name("initandlisten");
    log_line(LOG_INFO, "CONTROL", 4615611, "octavod starting", "\"pid\":%ld,\"version\":\"%s\",\"dbPath\":%s",
             (long)getpid(), OV_VERSION, log_quote(conf->db_path, strlen(conf->db_path), quoted, sizeof(quoted)));
    if ((lock = lock_data(conf->db_path, why, sizeof(why))) < 0) {
        status = fail(EXIT_DATA, "The data directory cannot be used", why);
    } else if (conf->pid_file_path && (rc = write_pid(conf->pid_file_path)) != 0) {
        status = fail(EXIT_BAD_OPTIONS, "The pid file cannot be written", strerror(rc));
        unlock_data(lock);
    } else {
        status = run(conf);
        if (conf->pid_file_path)
            unlink(conf->pid_file_path);
        unlock_data(lock);
    }
    log_line(LOG_INFO, "CONTROL", 23138, "Shutting down", "\"exitCode\":%d", status);
    log_close();
    return status;
}

int main(int argc, char **argv)
{
    struct config conf;
    struct arena *a = arena_new(0);
    struct err err;
    int status = EXIT_OK;
    err_init(&err, a);
    if (config_load(argc, argv, &conf, &err) != 0) {
        fprintf(stderr, "octavod: %s\nTry 'octavod --help'.\n", err.msg);
        status = EXIT_BAD_OPTIONS;
    } else if (conf.action == CONFIG_HELP) {
        fputs(config_help(), stdout);
    } else if (conf.action == CONFIG_VERSION) {
        fputs(config_version(), stdout);
    } else {
        signal(SIGPIPE, SIG_IGN);
        if (conf.fork)
            fork_away();
        status = start(&conf);
    }
    config_free(&conf);
    arena_free(a);
    return status;
}
