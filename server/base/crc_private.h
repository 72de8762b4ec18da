/* For the tests: the way that CPUs without a CRC instruction take. */
#ifndef OV_CRC_PRIVATE_H
#define OV_CRC_PRIVATE_H

#include "server/base/crc.h"

uint32_t crc32c_by_tables(uint32_t seed, const void *p, size_t n); /* as crc32c, always by tables */

#endif
