/* Assertions for our own bugs; never for what came from the network or the disk. */
#ifndef OV_ASSERT_H
#define OV_ASSERT_H

#include "server/base/base.h"

/* Prints expression, file and line to stderr and aborts. */
OV_NORETURN void ov_assert_failed(const char *expr, const char *file, int line);

#define OV_ASSERT(x) (OV_LIKELY(x) ? (void)0 : ov_assert_failed(#x, __FILE__, __LINE__)) /* stays on in release */
#ifdef OV_DEBUG
#define OV_DASSERT(x) OV_ASSERT(x) /* debug and sanitizer builds only */
#else
#define OV_DASSERT(x) ((void)sizeof(x))
#endif

#endif
