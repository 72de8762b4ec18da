/* Start and stop of the loops, signals, the housekeeping timer. */
#include "server/net/net.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/base/assert.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/net/net_private.h"

#define TICK_MS 1000

#ifdef __SANITIZE_THREAD__
/* libuv closes descriptors by a bare system call, which the sanitizer does not see: it takes the next file with the same number for a race. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libuv\n"
           "race:posix_sync_dir\n"; /* nor does it see openat: the directory gets the number of a connection that is gone */
}
#endif

static void raise_file_limit(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

int net_open(const struct net_options *opt, struct net **out, struct err *err)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int rc;
    *out = NULL;
    raise_file_limit();
    signal(SIGPIPE, SIG_IGN);
    struct net *n = ov_calloc(1, sizeof(*n));
    n->opt = *opt;
    unsigned loops = opt->loops ? opt->loops : (unsigned)OV_MAX(cpus - 1, 1);
    unsigned workers = opt->workers ? opt->workers : (unsigned)OV_MAX(2 * cpus, 2);
    if ((rc = listeners_open(n, opt, err)) != 0) {
        listeners_stop(n);
        free(n);
        return rc;
    }
    n->pool = op_pool_new(workers, task_on_worker, n);
    n->n_loops = OV_MIN(loops, NET_LOOPS_MAX);
    for (unsigned i = 0; i < n->n_loops; i++)
        loop_init(&n->loops[i], n, i);
    *out = n;
    return 0;
}

uint16_t net_port(const struct net *n)
{
    return n->port;
}

void net_stop(struct net *n)
{
    atomic_store(&n->stop, true);
    uv_async_send(&n->loops[0].async);
}

static void on_signal(uv_signal_t *h, int number)
{
    struct net *n = h->data;
    if (number == SIGTERM || number == SIGINT) {
        log_line(LOG_INFO, "CONTROL", 23377, "Received signal", "\"signal\":%d", number);
        net_stop(n);
    } else if (n->opt.reopen_log) {
        n->opt.reopen_log();
    }
}

static void on_tick(uv_timer_t *h)
{
    struct net *n = h->data;
    struct server *s = n->opt.server;
    if (atomic_load(&s->shutting_down))
        return;
    n->opt.tick(s, clock_mono_us());
}

static void thread_main(void *arg)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    loop_run(arg);
}

void net_run(struct net *n)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    uv_loop_t *first = &n->loops[0].uv;
    for (size_t i = 0; i < OV_LEN(numbers); i++) {
        uv_signal_init(first, &n->signals[i]);
        n->signals[i].data = n;
        uv_signal_start(&n->signals[i], on_signal, numbers[i]);
    }
    if (n->opt.tick) {
        uv_timer_init(first, &n->tick);
        n->tick.data = n;
        uv_timer_start(&n->tick, on_tick, TICK_MS, TICK_MS);
    }
    for (unsigned i = 1; i < n->n_loops; i++)
        OV_ASSERT(uv_thread_create(&n->loops[i].thread, thread_main, &n->loops[i]) == 0);
    listeners_start(n);
    loop_run(&n->loops[0]);
    for (unsigned i = 1; i < n->n_loops; i++)
        uv_thread_join(&n->loops[i].thread);
}

void net_close(struct net *n)
{
    if (!n)
        return;
    op_pool_free(n->pool);
    listeners_stop(n);
    for (unsigned i = 0; i < n->n_loops; i++)
        loop_deinit(&n->loops[i]);
    free(n);
}
