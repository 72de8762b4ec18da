/* Texts made from the table of settings: --help, --version, conf/octavod.conf. */
#include <stdio.h>

#include "server/base/buf.h"
#include "server/base/version.h"
#include "server/conf/settings_private.h"

static void range(struct buf *b, const struct setting *s)
{
    if (s->type == SETTING_INT || s->type == SETTING_DOUBLE)
        buf_printf(b, "; %.10g to %.10g", s->min, s->max);
    if (s->unit)
        buf_printf(b, " %s", s->unit);
    if (s->choices)
        buf_printf(b, "; of %s", s->choices);
    if (s->dflt)
        buf_printf(b, "; default %s", s->dflt);
}

const char *config_help(void)
{
    static char text[8192];
    struct buf b;
    buf_init(&b);
    buf_printf(&b,
               "octavod: a document database server\n\nUsage: octavod [options]\n\n"
               "  -f, --config FILE           a file of settings (see octavod.conf); options win over it\n"
               "  -h, --help                  this text\n"
               "      --version               versions\n"
               "      --setParameter NAME=VALUE  logLevel, enableTestCommands, ttlMonitorEnabled, ttlMonitorSleepSecs\n"
               "  -v, -vv …                   more lines in the log\n\n");
    for (const struct setting *s = settings; s->key; s++) {
        if (!s->flag)
            continue;
        buf_printf(&b, "      --%-22s%s%s", s->flag, s->type == SETTING_BOOL ? "" : " ", s->help);
        range(&b, s);
        buf_printf(&b, "\n");
    }
    size_t n = OV_MIN(b.len, sizeof(text) - 1);
    memcpy(text, b.p, n);
    text[n] = 0;
    buf_free(&b);
    return text;
}

const char *config_version(void)
{
    return "octavod v" OV_VERSION ", compatible with " OV_COMPAT_VERSION "\n";
}

/* The lines of the sections that `key` opens behind those of `before`. Returns the depth of the key's last part. */
static int sections(struct buf *b, const char *key, const char *before)
{
    int depth = 0;
    bool same = true;
    const char *p = key;
    for (const char *dot; (dot = strchr(p, '.')); p = dot + 1, depth++) {
        size_t upto = (size_t)(dot + 1 - key);
        same = same && strncmp(key, before, upto) == 0;
        if (same)
            continue;
        if (depth == 0)
            buf_printf(b, "\n");
        buf_printf(b, "%s%*s%.*s:\n", depth ? "# " : "", depth ? 2 * depth : 0, "", (int)(dot - p), p);
    }
    return depth;
}

void config_write_sample(struct buf *b)
{
    const char *before = "";
    buf_printf(b, "# Settings of octavod, all of them, with their defaults. Take away the # to change one (and those "
                  "of the sections above it).\n"
                  "# Options on the command line win over this file.\n");
    for (const struct setting *s = settings; s->key; s++) {
        int depth = sections(b, s->key, before);
        const char *name = strrchr(s->key, '.') + 1;
        buf_printf(b, "  # %s", s->help);
        range(b, s);
        buf_printf(b, "\n# %*s%s: %s\n", 2 * depth, "", name, s->dflt ? s->dflt : "");
        before = s->key;
    }
    buf_printf(b,
               "\nsetParameter:\n  # 0 to 5, as systemLog.verbosity\n#   logLevel: 0\n"
               "  # commands for tests of drivers (configureFailPoint); true or false\n#   enableTestCommands: false\n"
               "  # expired documents are removed; true or false\n#   ttlMonitorEnabled: true\n"
               "  # how often they are looked for, in seconds\n#   ttlMonitorSleepSecs: 60\n");
}
