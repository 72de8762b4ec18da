/* Does the memtable need its hash index, beside the ordered one? Finds keys through either, at several sizes: microseconds of CPU a key.
 *     memtable_bench */
#include <stdio.h>
#include <time.h>

#include "server/base/assert.h"
#include "server/base/rand.h"
#include "storage/common/key_hash.h"
#include "storage/memtable/memtable.h"

static double cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct slice key_of(uint64_t i, uint8_t out[8])
{
    i = (i ^ i >> 30) * 0xBF58476D1CE4E5B9u;
    i = (i ^ i >> 27) * 0x94D049BB133111EBu;
    store_be64(out, i ^ i >> 31);
    return slice_of(out, 8);
}

int main(void)
{
    static const size_t sizes[] = {1000, 10000, 50000, 200000, 500000};
    printf("%10s %12s %12s %12s\n", "keys", "insert", "find (hash)", "find (order)");
    for (size_t s = 0; s < OV_LEN(sizes); s++) {
        size_t n = sizes[s], reads = 300000, found = 0;
        struct memtable *m = memtable_new(64u << 20);
        uint8_t key[8];
        struct rand_gen g;
        rand_seed(&g, 1);
        double t0 = cpu_us();
        for (size_t i = 0; i < n; i++) {
            struct slice k = key_of(i, key);
            memtable_add(m, key_hash(1, k), 1, k, i + 1, VERSION_INSERT, slice_of(key, 8), NULL);
        }
        double t1 = cpu_us();
        for (size_t i = 0; i < reads; i++) {
            struct slice k = key_of(rand_below(&g, n), key);
            found += memtable_find(m, key_hash(1, k), 1, k) != NULL;
        }
        double t2 = cpu_us();
        for (size_t i = 0; i < reads; i++) {
            struct slice k = key_of(rand_below(&g, n), key);
            found += slice_eq(mt_key(memtable_seek(m, 1, k)), k);
        }
        double t3 = cpu_us();
        OV_ASSERT(found == 2 * reads);
        printf("%10zu %12.3f %12.3f %12.3f\n", n, (t1 - t0) / (double)n, (t2 - t1) / (double)reads,
               (t3 - t2) / (double)reads);
        memtable_unref(m);
    }
    return 0;
}
