/* Slices and interrupts of operations: looked at between rows, so both must cost next to nothing when nothing is the matter. */
#include "server/base/clock.h"
#include "server/op/operation.h"

bool op_slice_over(struct operation *op)
{
    static _Thread_local unsigned calls; /* one a thread: an operation's own would be no more exact */
    if (++calls & 15)
        return false;
    return clock_mono_us() >= op->slice_end_us;
}

static const char *interrupt_text(int code)
{
    switch (code) {
    case ERR_MAX_TIME_MS_EXPIRED:
        return "operation exceeded time limit";
    case ERR_INTERRUPTED_AT_SHUTDOWN:
        return "interrupted at shutdown";
    case ERR_CLIENT_DISCONNECT:
        return "operation was interrupted because a client disconnected";
    default:
        return "operation was interrupted";
    }
}

int op_check_interrupt(struct operation *op)
{
    int code = atomic_load_explicit(&op->interrupt, memory_order_relaxed);
    if (OV_LIKELY(code == 0)) {
        if (op->deadline_us == 0 || clock_mono_us() < op->deadline_us)
            return 0;
        code = ERR_MAX_TIME_MS_EXPIRED;
    }
    return err_set(&op->err, code, "%s", interrupt_text(code));
}
