/* Any text as a configuration file: it is taken or refused with file, line and key. */
#include <stdlib.h>

#include "server/conf/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_new(0);
    struct config c = {0};
    struct err err;
    err_init(&err, a);
    if (config_load_text("f", (const char *)data, size, &c, &err) != 0) {
        if (err.code == 0 || !err.msg || !err.msg[0])
            abort();
    } else if (c.port < 0 || c.port > 65535 || c.n_bind_ip == 0 || c.n_bind_ip > CONFIG_BIND_MAX) {
        abort();
    }
    config_free(&c);
    arena_free(a);
    return 0;
}
