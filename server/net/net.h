/* Sockets to commands and back: listens, reads whole messages, runs each command as an operation on loops and workers, writes replies.
 * The only folder that includes uv.h. No command's name occurs here. */
#ifndef OV_NET_H
#define OV_NET_H

#include "server/commands/command.h"

struct net;

struct net_options {
    const char *const *
        bind; /* addresses and host names; "*": all of them, IPv6 too if ipv6 is set. Borrowed until net_open returns */
    size_t n_bind;
    uint16_t port; /* 0: the kernel picks one, the same for all addresses */
    bool ipv6;
    unsigned loops;          /* 1 .. NET_LOOPS_MAX; 0 = processors - 1 */
    unsigned workers;        /* 0 = twice the processors */
    int64_t max_connections; /* further ones are closed at once; 0 = no limit but the process's */
    struct server *server;   /* engine, catalog and so on are open; outlives net */
    void (*tick)(struct server *s,
                 int64_t now_mono_us); /* each second on the first loop, outside a step; may be NULL */
    void (*reopen_log)(void);          /* on SIGHUP and SIGUSR1; may be NULL */
};
#define NET_LOOPS_MAX 8

/* Listens. Sets *out; clients are served once net_run runs. Raises RLIMIT_NOFILE to its hard limit.
 * Errors: ERR_SOCKET_EXCEPTION, the message names the address. Thread: start-up. */
OV_MUST_CHECK int net_open(const struct net_options *opt, struct net **out, struct err *err);
uint16_t net_port(const struct net *n);
/* Runs the first loop here and the others on threads of their own. SIGTERM and SIGINT stop it, SIGPIPE is ignored. Returns once net_stop was called and all
 * connections and operations have ended. Thread: the one of net_open. */
void net_run(struct net *n);
/* Stops accepting, interrupts operations (11600), closes the connections within a second. Returns at once. Thread: any. */
void net_stop(struct net *n);
void net_close(struct net *n); /* after net_run, or instead of it; accepts NULL */

#endif
