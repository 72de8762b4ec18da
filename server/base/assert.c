/* What a failed assertion does: says which one, and stops the process so that nothing wrong is written. Replay is tested,
 * so stopping is safe; going on is not. */
#include "server/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void ov_assert_failed(const char *expr, const char *file, int line)
{
    fprintf(stderr, "octavod: assertion failed: %s at %s:%d\n", expr, file, line);
    fflush(stderr);
    abort();
}
