/* Mutexes that know their rank. In debug builds each thread keeps the list of what it holds; locking against the order aborts
 * at once, on the first run that takes the locks in the wrong order, not only on the one that deadlocks. */
#include "server/base/mutex.h"

#include <errno.h>
#include <time.h>

#include "server/base/assert.h"

#ifdef OV_DEBUG
#define HELD_MAX 16

static __thread const struct mutex *held[HELD_MAX];
static __thread int held_count;

static void note_lock(struct mutex *m)
{
    OV_ASSERT(held_count < HELD_MAX);
    held[held_count++] = m;
    m->owner = pthread_self();
    m->held = true;
}

static void check_order(const struct mutex *m)
{
    for (int i = 0; i < held_count; i++)
        OV_ASSERT(held[i]->rank < m->rank); /* the lock order is broken: see enum lock_rank */
}

static void note_unlock(struct mutex *m)
{
    int i = held_count - 1;
    while (i >= 0 && held[i] != m)
        i--;
    OV_ASSERT(i >= 0); /* unlocking what this thread does not hold */
    held[i] = held[--held_count];
    m->held = false;
}
#endif

void mutex_init(struct mutex *m, enum lock_rank rank)
{
    *m = (struct mutex){.rank = rank};
    pthread_mutexattr_t attr;
    OV_ASSERT(pthread_mutexattr_init(&attr) == 0);
    pthread_mutexattr_settype(&attr,
                              PTHREAD_MUTEX_ADAPTIVE_NP); /* sections are short: spinning a little beats a sleep */
    OV_ASSERT(pthread_mutex_init(&m->m, &attr) == 0);
    pthread_mutexattr_destroy(&attr);
}

void mutex_destroy(struct mutex *m)
{
    OV_ASSERT(pthread_mutex_destroy(&m->m) == 0); /* fails if somebody holds it */
}

void mutex_lock(struct mutex *m)
{
#ifdef OV_DEBUG
    check_order(m);
#endif
    pthread_mutex_lock(&m->m);
#ifdef OV_DEBUG
    note_lock(m);
#endif
}

void mutex_unlock(struct mutex *m)
{
#ifdef OV_DEBUG
    note_unlock(m);
#endif
    pthread_mutex_unlock(&m->m);
}

bool mutex_wait(struct mutex *m, pthread_cond_t *c, int64_t timeout_us)
{
    int rc;
#ifdef OV_DEBUG
    note_unlock(m);
    check_order(m); /* it is locked again while the others are still held */
#endif
    if (timeout_us < 0) {
        rc = pthread_cond_wait(c, &m->m);
    } else {
        struct timespec ts;
        clock_gettime(CLOCK_MONOTONIC, &ts);
        ts.tv_sec += timeout_us / 1000000;
        ts.tv_nsec += (long)(timeout_us % 1000000) * 1000;
        if (ts.tv_nsec >= 1000000000) {
            ts.tv_sec++;
            ts.tv_nsec -= 1000000000;
        }
        rc = pthread_cond_timedwait(c, &m->m, &ts);
    }
#ifdef OV_DEBUG
    note_lock(m);
#endif
    return rc != ETIMEDOUT;
}

void cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    OV_ASSERT(pthread_cond_init(c, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

bool mutex_held(const struct mutex *m)
{
#ifdef OV_DEBUG
    for (int i = 0; i < held_count; i++)
        if (held[i] == m)
            return true;
    return false;
#else
    (void)m;
    return true;
#endif
}

void mutex_assert_none_held(void)
{
#ifdef OV_DEBUG
    OV_ASSERT(held_count == 0);
#endif
}
