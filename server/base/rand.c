/* Random numbers: the kernel's for secrets and seeds, xoshiro256** for everything that must be quick or repeatable. */
#include "server/base/rand.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/random.h>

#include "server/base/assert.h"
#include "server/base/clock.h"

void rand_secure(void *out, size_t n)
{
    uint8_t *p = out;
    while (n) {
        ssize_t got = getrandom(p, n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        OV_ASSERT(got > 0);
        p += got;
        n -= (size_t)got;
    }
}

/* SplitMix64 (Steele, Lea, Flood 2014): the authors' way of turning one word into a state without many zeros. */
static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void rand_seed(struct rand_gen *g, uint64_t seed)
{
    for (size_t i = 0; i < OV_LEN(g->s); i++)
        g->s[i] = splitmix(&seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rand_next(struct rand_gen *g)
{
    uint64_t *s = g->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* Multiply and keep the high word; the few low words that would favour some results are drawn again (Lemire 2019). */
uint64_t rand_below(struct rand_gen *g, uint64_t n)
{
    OV_ASSERT(n > 0);
    uint64_t unfair = -n % n;
    unsigned __int128 m;
    do {
        m = (unsigned __int128)rand_next(g) * n;
    } while ((uint64_t)m < unfair);
    return (uint64_t)(m >> 64);
}

static pthread_once_t oid_once = PTHREAD_ONCE_INIT;
static uint8_t oid_process[5];
static atomic_uint oid_counter;

static void oid_start(void)
{
    unsigned first;
    rand_secure(oid_process, sizeof(oid_process));
    rand_secure(&first, sizeof(first));
    atomic_store(&oid_counter, first);
}

void oid_generate(uint8_t out[12])
{
    pthread_once(&oid_once, oid_start);
    unsigned n = atomic_fetch_add_explicit(&oid_counter, 1, memory_order_relaxed);
    store_be32(out, (uint32_t)(clock_wall_ms() / 1000));
    memcpy(out + 4, oid_process, sizeof(oid_process));
    out[9] = (uint8_t)(n >> 16);
    out[10] = (uint8_t)(n >> 8);
    out[11] = (uint8_t)n;
}
