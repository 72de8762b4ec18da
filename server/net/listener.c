/* Listening sockets: accepts, and deals connections out to the loops, each to the one that has the fewest. The descriptors are accepted
 * here rather than by libuv, which binds a connection to the loop that accepted it. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/base/log.h"
#include "server/net/net_private.h"

#define BACKLOG    4096
#define ACCEPT_MAX 64 /* a turn, so that a storm of connections does not starve the loop */

static int listen_on(struct net *n, const struct addrinfo *ai, const char *name, struct err *err)
{
    int on = 1, fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_storage a = {0};
    socklen_t len = ai->ai_addrlen;
    memcpy(&a, ai->ai_addr, len);
    if (a.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&a)->sin6_port = htons(n->port);
        if (fd >= 0)
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    } else {
        ((struct sockaddr_in *)&a)->sin_port = htons(n->port);
    }
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, BACKLOG) != 0) {
        int rc = err_set(err, ERR_SOCKET_EXCEPTION, "cannot listen on %s port %u: %s", name, n->port, strerror(errno));
        if (fd >= 0)
            close(fd);
        return rc;
    }
    if (n->port == 0 && getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        n->port = ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                                : ((struct sockaddr_in *)&a)->sin_port);
    n->listeners[n->n_listeners++] = (struct listener){.fd = fd, .net = n, .address = a};
    return 0;
}

static const void *address_of(const struct sockaddr *a, size_t *n)
{
    *n = a->sa_family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    return a->sa_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                                    : (const void *)&((const struct sockaddr_in *)a)->sin_addr;
}

/* Two names may stand for one address: "127.0.0.1,localhost". */
static bool is_listened_on(const struct net *n, const struct sockaddr *a)
{
    size_t len;
    const void *address = address_of(a, &len);
    for (unsigned i = 0; i < n->n_listeners; i++) {
        const struct sockaddr *b = (const struct sockaddr *)&n->listeners[i].address;
        size_t same;
        if (a->sa_family == b->sa_family && memcmp(address, address_of(b, &same), len) == 0)
            return true;
    }
    return false;
}

static int listen_by_name(struct net *n, const char *name, bool ipv6, struct err *err)
{
    struct addrinfo hint = {.ai_family = ipv6 ? AF_UNSPEC : AF_INET,
                            .ai_socktype = SOCK_STREAM,
                            .ai_flags = AI_PASSIVE},
                    *list;
    bool all = strcmp(name, "*") == 0;
    int rc = getaddrinfo(all ? NULL : name, all ? "0" : NULL, &hint, &list);
    if (rc != 0)
        return err_set(err, ERR_SOCKET_EXCEPTION, "cannot listen on %s: %s", name, gai_strerror(rc));
    for (const struct addrinfo *ai = list; ai && rc == 0; ai = ai->ai_next) {
        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
            continue;
        if (is_listened_on(n, ai->ai_addr))
            continue;
        if (n->n_listeners == LISTEN_MAX)
            rc = err_set(err, ERR_SOCKET_EXCEPTION, "more than %d addresses to listen on", LISTEN_MAX);
        else
            rc = listen_on(n, ai, name, err);
    }
    freeaddrinfo(list);
    return rc;
}

int listeners_open(struct net *n, const struct net_options *opt, struct err *err)
{
    int rc = 0;
    n->port = opt->port;
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < opt->n_bind && rc == 0; i++)
        rc = listen_by_name(n, opt->bind[i], opt->ipv6, err);
    if (rc == 0 && n->n_listeners == 0)
        rc = err_set(err, ERR_SOCKET_EXCEPTION, "no address to listen on");
    return rc;
}

/* ---- accepting ---- */

static struct loop *emptiest(struct net *n)
{
    struct loop *best = &n->loops[0];
    for (unsigned i = 1; i < n->n_loops; i++)
        if (atomic_load(&n->loops[i].n_conns) < atomic_load(&best->n_conns))
            best = &n->loops[i];
    return best;
}

static void take(struct net *n, int fd)
{
    const int64_t max = n->opt.max_connections;
    if (max && atomic_load(&n->opt.server->connections) >= max) {
        log_line(LOG_INFO, "NETWORK", 22942, "Connection refused because there are too many open connections",
                 "\"connectionCount\":%lld", (long long)max);
        close(fd);
        return;
    }
    struct loop *l = emptiest(n);
    atomic_fetch_add(&l->n_conns, 1);
    if (l->id == 0)
        conn_open(l, fd, ++n->last_conn_id);
    else
        loop_post_accepted(l, fd, ++n->last_conn_id);
}

/* No descriptor is left: the connection is taken by the spare one and closed, or poll would report it for ever. */
static void refuse(struct net *n, int listen_fd)
{
    static int64_t refused;
    if (refused++ % 1000 == 0)
        log_line(LOG_ERROR, "NETWORK", 6000003, "Connection refused because the process has no file descriptor left",
                 NULL);
    if (n->spare_fd < 0)
        return;
    close(n->spare_fd);
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void on_connection(uv_poll_t *h, int status, int events)
{
    struct listener *s = h->data;
    for (int i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take(s->net, fd);
        } else if (errno == EMFILE || errno == ENFILE) {
            refuse(s->net, s->fd);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

void listeners_start(struct net *n)
{
    for (unsigned i = 0; i < n->n_listeners; i++) {
        struct listener *s = &n->listeners[i];
        uv_poll_init(&n->loops[0].uv, &s->poll, s->fd);
        s->poll.data = s;
        uv_poll_start(&s->poll, UV_READABLE, on_connection);
    }
}

static void on_poll_closed(uv_handle_t *h)
{
    struct listener *s = h->data;
    close(s->fd);
}

void listeners_stop(struct net *n)
{
    for (unsigned i = 0; i < n->n_listeners; i++) {
        struct listener *s = &n->listeners[i];
        if (s->poll.data)
            uv_close((uv_handle_t *)&s->poll, on_poll_closed);
        else
            close(s->fd);
    }
    n->n_listeners = 0;
    if (n->spare_fd >= 0)
        close(n->spare_fd);
    n->spare_fd = -1;
}
