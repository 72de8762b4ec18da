/* How a record gets to the kernel: by memcpy into a mapping, or by memcpy into a buffer and pwrite. Measures what a
 * commit waits for while another thread runs fdatasync in a loop, as the journal's does.
 *     journal_io DIR [seconds a row = 4] [commits a second and thread = 30000] [record bytes = 1200]
 * Ways: mmap      memcpy into the mapped, prewritten file, under a lock
 *       mmap+pf   the same, with a helper that touches 2 MiB ahead of the tail (R9)
 *       write     memcpy into a buffer and one pwrite, rounded up to a page, each commit
 *       write/8   the same, one pwrite for 8 commits (a loop's turn)
 * The file is 256 MiB, prewritten and synced, and used as a ring; its pages are in memory. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES ((uint64_t)256 << 20)
#define PAGE       4096u

enum way { WAY_MMAP, WAY_MMAP_PREFAULT, WAY_WRITE, WAY_WRITE_8, WAYS };
static const char *const way_names[] = {"mmap", "mmap+pf", "write", "write/8"};

static int fd;
static uint8_t *map;
static enum way way;
static uint64_t record_bytes = 1200, rate = 30000;
static double seconds = 4;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t tail;
static uint8_t *pending;
static size_t n_pending, waiting;
static _Atomic int stop;
static uint64_t syncs;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void commit(const uint8_t *record)
{
    pthread_mutex_lock(&lock);
    uint64_t at = tail;
    if (at % FILE_BYTES + record_bytes > FILE_BYTES - PAGE)
        at = (at / FILE_BYTES + 1) * FILE_BYTES;
    if (way == WAY_MMAP || way == WAY_MMAP_PREFAULT) {
        memcpy(map + at % FILE_BYTES, record, record_bytes);
    } else {
        memcpy(pending + n_pending, record, record_bytes);
        n_pending += record_bytes;
        if (++waiting >= (way == WAY_WRITE_8 ? 8 : 1)) {
            uint64_t from = (at + record_bytes - n_pending) % FILE_BYTES;
            size_t n = n_pending;
            if ((from + n) % PAGE) {
                size_t pad = PAGE - (from + n) % PAGE;
                memset(pending + n, 0, pad);
                n += pad;
            }
            if (from + n <= FILE_BYTES && pwrite(fd, pending, n, (off_t)from) != (ssize_t)n)
                die("pwrite");
            n_pending = waiting = 0;
        }
    }
    tail = at + record_bytes;
    pthread_mutex_unlock(&lock);
}

struct samples {
    uint32_t *ns;
    size_t n, cap;
};

static void *writer(void *arg)
{
    struct samples *s = arg;
    uint8_t *record = malloc(record_bytes);
    uint64_t start = now_ns(), next = start, step = 1000000000u / rate;

    memset(record, 'r', record_bytes);
    while (!stop && s->n < s->cap) {
        uint64_t t;
        while ((t = now_ns()) < next)
            if (next - t > 100000)
                usleep(50);
        next = next + 50 * step < t ? t : next + step; /* a held-up thread does not make up for all it missed */
        commit(record);
        uint64_t took = now_ns() - t;
        s->ns[s->n++] = took > UINT32_MAX ? UINT32_MAX : (uint32_t)took;
    }
    free(record);
    return NULL;
}

static void *syncer(void *arg)
{
    while (!stop) {
        if (fdatasync(fd) != 0)
            die("fdatasync");
        syncs++;
    }
    return NULL;
}

static void *prefaulter(void *arg)
{
    uint64_t done = 0;
    while (!stop) {
        uint64_t want = tail + (2 << 20);
        done = done < tail ? tail : done;
        for (done = (done + PAGE - 1) & ~(uint64_t)(PAGE - 1); done < want; done += PAGE) {
            _Atomic uint8_t *p = (_Atomic uint8_t *)(map + done % FILE_BYTES);
            atomic_fetch_or(p, 0); /* a write that changes nothing */
        }
        usleep(1000);
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void row(int threads)
{
    struct samples s[2] = {{0}}, all = {0};
    pthread_t w[2], sy, pf;

    for (int i = 0; i < threads; i++) {
        s[i].cap = (size_t)(rate * seconds * 2) + 1000;
        s[i].ns = malloc(s[i].cap * sizeof(uint32_t));
        memset(s[i].ns, 0, s[i].cap * sizeof(uint32_t));
    }
    stop = 0;
    syncs = n_pending = waiting = 0;
    tail = 0;
    pthread_create(&sy, NULL, syncer, NULL);
    if (way == WAY_MMAP_PREFAULT)
        pthread_create(&pf, NULL, prefaulter, NULL);
    for (int i = 0; i < threads; i++)
        pthread_create(&w[i], NULL, writer, &s[i]);
    usleep((useconds_t)(seconds * 1e6));
    stop = 1;
    for (int i = 0; i < threads; i++)
        pthread_join(w[i], NULL);
    pthread_join(sy, NULL);
    if (way == WAY_MMAP_PREFAULT)
        pthread_join(pf, NULL);
    all.ns = malloc((s[0].n + s[1].n) * sizeof(uint32_t));
    for (int i = 0; i < threads; i++) {
        memcpy(all.ns + all.n, s[i].ns, s[i].n * sizeof(uint32_t));
        all.n += s[i].n;
        free(s[i].ns);
    }
    qsort(all.ns, all.n, sizeof(uint32_t), by_size);
    printf("| %-7s | %d | %8.0f | %5.0f | %6.1f | %6.1f | %8.1f | %8.0f |\n", way_names[way], threads,
           (double)all.n / seconds, (double)syncs / seconds, all.ns[all.n / 2] / 1e3, all.ns[all.n / 100 * 99] / 1e3,
           all.ns[all.n / 1000 * 999] / 1e3, all.ns[all.n - 1] / 1e3);
    fflush(stdout);
    free(all.ns);
}

int main(int argc, char **argv)
{
    char path[4096];
    uint8_t *zeros = calloc(1, 1 << 20);

    if (argc < 2) {
        fprintf(stderr, "usage: journal_io DIR [seconds] [rate] [bytes]\n");
        return 2;
    }
    seconds = argc > 2 ? atof(argv[2]) : seconds;
    rate = argc > 3 ? strtoull(argv[3], NULL, 10) : rate;
    record_bytes = argc > 4 ? strtoull(argv[4], NULL, 10) : record_bytes;
    snprintf(path, sizeof(path), "%s/journal_io.tmp", argv[1]);
    if ((fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600)) < 0)
        die(path);
    unlink(path);
    for (uint64_t at = 0; at < FILE_BYTES; at += 1 << 20)
        if (pwrite(fd, zeros, 1 << 20, (off_t)at) != 1 << 20)
            die("pwrite");
    if (fdatasync(fd) != 0)
        die("fdatasync");
    map = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        die("mmap");
    pending = malloc(8 * record_bytes + 2 * PAGE);
    printf("| way | threads | commits/s | syncs/s | p50 us | p99 us | p99.9 us | max us "
           "|\n|---|---|---|---|---|---|---|---|\n");
    for (int threads = 1; threads <= 2; threads++)
        for (way = 0; way < WAYS; way++)
            row(threads);
    free(zeros);
    free(pending);
    return 0;
}
