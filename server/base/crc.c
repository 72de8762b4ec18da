/* crc32c three ways, chosen once at run time so that one binary runs on every 64-bit CPU: the CRC instruction of x86 (SSE 4.2)
 * or of ARMv8, else tables, eight bytes a step.
 *
 * The instruction takes three cycles but a new one can start every cycle, so long inputs are cut into three lanes that run side
 * by side. A lane's crc is moved over the bytes of the lanes behind it by multiplying with x^(8 * bytes) modulo the
 * polynomial; being linear, that is four table look-ups. */
#include "server/base/crc.h"

#include <pthread.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#define HWCAP_CRC32_BIT (1UL << 7)
#endif

#include "server/base/crc_private.h"

#define POLY 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

/* Lane lengths: the long one for blocks and batches, the short one for journal headers and small documents. */
#define LONG_LANE  1024
#define SHORT_LANE 128

static uint32_t byte_table[8][256]; /* [k][b]: the crc of byte b followed by k zero bytes */
static uint32_t shift_long[4][256]; /* [k][b]: byte k of a crc, moved over LONG_LANE zero bytes */
static uint32_t shift_short[4][256];

static void make_byte_table(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ (c & 1 ? POLY : 0);
        byte_table[0][b] = c;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            byte_table[k][b] = (byte_table[k - 1][b] >> 8) ^ byte_table[0][byte_table[k - 1][b] & 0xff];
}

static void make_shift_table(uint32_t table[4][256], size_t zeros)
{
    uint32_t bit[32]; /* what each single bit becomes; the rest follows, as the map is linear */
    for (int i = 0; i < 32; i++) {
        uint32_t c = 1u << i;
        for (size_t z = 0; z < zeros; z++)
            c = (c >> 8) ^ byte_table[0][c & 0xff];
        bit[i] = c;
    }
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t c = 0;
            for (int i = 0; i < 8; i++)
                c ^= b >> i & 1 ? bit[8 * k + i] : 0;
            table[k][b] = c;
        }
}

static uint32_t by_tables(uint32_t c, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w = load_le64(p) ^ c;
        c = byte_table[7][w & 0xff] ^ byte_table[6][w >> 8 & 0xff] ^ byte_table[5][w >> 16 & 0xff] ^
            byte_table[4][w >> 24 & 0xff] ^ byte_table[3][w >> 32 & 0xff] ^ byte_table[2][w >> 40 & 0xff] ^
            byte_table[1][w >> 48 & 0xff] ^ byte_table[0][w >> 56];
    }
    while (n--)
        c = (c >> 8) ^ byte_table[0][(c ^ *p++) & 0xff];
    return c;
}

#if defined(__x86_64__) || defined(__aarch64__)
#define HAVE_INSTRUCTION 1

/* Assembly, not intrinsics: those want the whole file compiled for a newer CPU. */
static inline uint64_t step8(uint64_t c, uint64_t w)
{
#if defined(__x86_64__)
    __asm__("crc32q %1, %0" : "+r"(c) : "r"(w));
#else
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(c) : "r"(w));
#endif
    return c;
}

static inline uint64_t step1(uint64_t c, uint8_t b)
{
#if defined(__x86_64__)
    __asm__("crc32b %1, %0" : "+r"(c) : "q"(b));
#else
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(c) : "r"((uint32_t)b));
#endif
    return c;
}

static bool have_instruction(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("sse4.2");
#else
    return getauxval(AT_HWCAP) & HWCAP_CRC32_BIT;
#endif
}

static inline uint32_t shift(uint32_t table[4][256], uint32_t c)
{
    return table[0][c & 0xff] ^ table[1][c >> 8 & 0xff] ^ table[2][c >> 16 & 0xff] ^ table[3][c >> 24];
}

/* Three lanes of `lane` bytes each. */
static inline uint64_t three_lanes(uint64_t a, const uint8_t *p, size_t lane, uint32_t table[4][256])
{
    uint64_t b = 0, c = 0;
    for (size_t i = 0; i < lane; i += 8) {
        a = step8(a, load_le64(p + i));
        b = step8(b, load_le64(p + lane + i));
        c = step8(c, load_le64(p + 2 * lane + i));
    }
    b ^= shift(table, (uint32_t)a);
    return c ^ shift(table, (uint32_t)b);
}

static uint32_t by_instruction(uint32_t seed, const uint8_t *p, size_t n)
{
    uint64_t c = seed;
    for (; n >= 3 * LONG_LANE; p += 3 * LONG_LANE, n -= 3 * LONG_LANE)
        c = three_lanes(c, p, LONG_LANE, shift_long);
    for (; n >= 3 * SHORT_LANE; p += 3 * SHORT_LANE, n -= 3 * SHORT_LANE)
        c = three_lanes(c, p, SHORT_LANE, shift_short);
    for (; n >= 8; p += 8, n -= 8)
        c = step8(c, load_le64(p));
    while (n--)
        c = step1(c, *p++);
    return (uint32_t)c;
}
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool use_instruction;

static void start(void)
{
    make_byte_table();
#ifdef HAVE_INSTRUCTION
    make_shift_table(shift_long, LONG_LANE);
    make_shift_table(shift_short, SHORT_LANE);
    use_instruction = have_instruction();
#endif
}

uint32_t crc32c_by_tables(uint32_t seed, const void *p, size_t n)
{
    pthread_once(&once, start);
    return ~by_tables(~seed, p, n);
}

uint32_t crc32c(uint32_t seed, const void *p, size_t n)
{
    pthread_once(&once, start);
#ifdef HAVE_INSTRUCTION
    if (OV_LIKELY(use_instruction))
        return ~by_instruction(~seed, p, n);
#endif
    return ~by_tables(~seed, p, n);
}
