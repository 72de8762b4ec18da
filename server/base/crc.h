/* crc32c (Castagnoli, RFC 3720), by the CPU's instruction where it has one, else by tables. Thread: any. */
#ifndef OV_CRC_H
#define OV_CRC_H

#include "server/base/base.h"

uint32_t crc32c(uint32_t seed, const void *p, size_t n); /* seed 0 to start; the result of one part seeds the next */

#endif
