/* Time. Code that must be testable takes it as an argument instead. Thread: any. */
#ifndef OV_CLOCK_H
#define OV_CLOCK_H

#include "server/base/base.h"

int64_t clock_mono_us(void); /* microseconds since some fixed point; never goes back */
int64_t clock_wall_ms(void); /* milliseconds since 1970, UTC */

#endif
