/* The command line over the file over the defaults. */
#include "server/conf/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/buf.h"
#include "server/base/version.h"
#include "server/conf/settings_private.h"

#define FILE_MAX (1 << 20)

static int defaults(struct config *c, struct err *err)
{
    c->ttl_monitor_enabled = true;
    c->ttl_monitor_sleep_secs = 60;
    int rc = 0;
    for (const struct setting *s = settings; s->key && rc == 0; s++)
        if (s->dflt)
            rc = setting_take(c, s, s->dflt, err);
    return rc;
}

static int begin(struct config *c, struct err *err)
{
    *c = (struct config){.arena = arena_new(0)};
    return defaults(c, err);
}

static int finish(struct config *c, struct err *err)
{
    if (c->bind_ip_all) {
        c->bind_ip[0] = "*";
        c->n_bind_ip = 1;
    }
    if (c->fork && !c->log_path)
        return err_set(err, ERR_BAD_VALUE, "processManagement.fork: needs systemLog.path");
    if (c->advertised_host && !c->repl_set_name)
        return err_set(err, ERR_BAD_VALUE, "replication.advertisedHost: needs replication.replSetName");
    return 0;
}

static int read_file(struct config *c, const char *path, struct err *err)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_set(err, ERR_BAD_VALUE, "%s: %s", path, strerror(errno));
    char *text = ov_malloc(FILE_MAX + 1);
    size_t n = fread(text, 1, FILE_MAX + 1, f);
    int rc;
    if (ferror(f))
        rc = err_set(err, ERR_BAD_VALUE, "%s: cannot be read", path);
    else if (n > FILE_MAX)
        rc = err_set(err, ERR_BAD_VALUE, "%s: is larger than %d bytes", path, FILE_MAX);
    else
        rc = config_read_yaml(c, path, text, n, err);
    free(text);
    fclose(f);
    return rc;
}

/* ---- the command line ---- */

struct args {
    int argc, i;
    char **argv;
};

/* The flag's name, and its value: behind "=" or the next argument. `takes` false: a flag without value, but "=" is heard. */
static int value_of(struct args *a, const char *flag, const char *eq, bool takes, const char **out, struct err *err)
{
    *out = eq ? eq + 1 : NULL;
    if (*out || !takes)
        return 0;
    if (a->i + 1 >= a->argc)
        return err_set(err, ERR_BAD_VALUE, "--%s: needs a value", flag);
    *out = a->argv[++a->i];
    return 0;
}

static int take_parameter(struct config *c, const char *text, struct err *err)
{
    const char *eq = strchr(text, '=');
    if (!eq)
        return err_set(err, ERR_BAD_VALUE, "--setParameter: must be name=value, not \"%s\"", text);
    char *name = arena_strndup(c->arena, text, (size_t)(eq - text));
    if (setting_take_parameter(c, name, eq + 1, err) != 0)
        return err_set(err, ERR_BAD_VALUE, "--setParameter %s: %s", name, err->msg);
    setting_given(c, arena_printf(c->arena, "setParameter.%s", name), eq + 1, 's');
    return 0;
}

/* -v, -vv, … and --verbose with or without a number of v. */
static int take_verbose(struct config *c, size_t v, struct err *err)
{
    char text[24];
    snprintf(text, sizeof(text), "%zu", v);
    if (setting_take(c, setting_by_key("systemLog.verbosity"), text, err) != 0)
        return err_set(err, ERR_BAD_VALUE, "-v: %s", err->msg);
    setting_given(c, "systemLog.verbosity", text, 'i');
    return 0;
}

static int unknown(const char *flag, struct err *err)
{
    const char *why = setting_refused_flag(flag);
    return err_set(err, ERR_BAD_VALUE, "--%s: %s", flag, why ? why : "unknown option; see --help");
}

/* A flag of the table: the first pass has seen it. */
static int take_setting(struct config *c, struct args *a, const char *flag, const char *eq, struct err *err)
{
    const struct setting *s = setting_by_flag(flag);
    const char *value;
    static const char types[] = {'i', 'd', 'b', 's', 's', 's', 's'};
    int rc;
    if (strcmp(s->key, "systemLog.verbosity") == 0) {
        size_t v = eq ? strspn(eq + 1, "v") : 1;
        if (v == 0 || (eq && eq[1 + v]))
            return err_set(err, ERR_BAD_VALUE, "--verbose: must be v, vv … vvvvv, not \"%s\"", eq + 1);
        return take_verbose(c, v, err);
    }
    if ((rc = value_of(a, flag, eq, s->type != SETTING_BOOL, &value, err)) != 0)
        return rc;
    if (!value)
        value = "true";
    if (setting_take(c, s, value, err) != 0)
        return err_set(err, ERR_BAD_VALUE, "--%s: %s", flag, err->msg);
    setting_given(c, s->key, value, types[s->type]);
    return 0;
}

/* first_pass: only --config, --help and --version are heard, so that flags win over the file wherever they stand. */
static int read_line(struct config *c, int argc, char **argv, bool first_pass, struct err *err)
{
    struct args a = {argc, 1, argv};
    int rc = 0;
    for (; a.i < argc && rc == 0; a.i++) {
        const char *arg = argv[a.i], *value;
        if (strcmp(arg, "-h") == 0)
            arg = "--help";
        if (strncmp(arg, "-f", 2) == 0 && !arg[2])
            arg = "--config";
        if (arg[0] == '-' && arg[1] == 'v' && strspn(arg + 1, "v") == strlen(arg + 1)) {
            rc = first_pass ? 0 : take_verbose(c, strlen(arg + 1), err);
            continue;
        }
        if (strncmp(arg, "--", 2) != 0 || !arg[2])
            return err_set(err, ERR_BAD_VALUE, "%s: unknown option; see --help", arg);
        const char *eq = strchr(arg, '=');
        char *flag = arena_strndup(c->arena, arg + 2, eq ? (size_t)(eq - arg - 2) : strlen(arg + 2));
        bool asks = strcmp(flag, "help") == 0 || strcmp(flag, "version") == 0;
        if (asks && eq)
            return err_set(err, ERR_BAD_VALUE, "--%s: takes no value", flag);
        if (strcmp(flag, "help") == 0) {
            c->action = CONFIG_HELP;
        } else if (strcmp(flag, "version") == 0) {
            if (c->action == CONFIG_RUN)
                c->action = CONFIG_VERSION;
        } else if (strcmp(flag, "config") == 0) {
            if ((rc = value_of(&a, flag, eq, true, &value, err)) == 0 && first_pass)
                c->config_file = value;
        } else if (strcmp(flag, "setParameter") == 0) {
            if ((rc = value_of(&a, flag, eq, true, &value, err)) == 0 && !first_pass)
                rc = take_parameter(c, value, err);
        } else if (!first_pass) {
            rc = take_setting(c, &a, flag, eq, err);
        } else {
            const struct setting *s = setting_by_flag(flag);
            if (!s)
                return unknown(flag, err); /* whether the next argument is its value nobody knows */
            if (s->type != SETTING_BOOL && !eq && strcmp(flag, "verbose") != 0)
                a.i++;
        }
    }
    return rc;
}

int config_load(int argc, char **argv, struct config *out, struct err *err)
{
    int rc = begin(out, err);
    out->argc = argc;
    out->argv = argv;
    if (rc != 0 || (rc = read_line(out, argc, argv, true, err)) != 0 || out->action != CONFIG_RUN)
        return rc;
    if (out->config_file) {
        if ((rc = read_file(out, out->config_file, err)) != 0)
            return rc;
        setting_given(out, "config", out->config_file, 's');
    }
    if ((rc = read_line(out, argc, argv, false, err)) != 0)
        return rc;
    return finish(out, err);
}

int config_load_text(const char *name, const char *text, size_t n, struct config *out, struct err *err)
{
    int rc = begin(out, err);
    if (rc != 0 || (rc = config_read_yaml(out, name, text, n, err)) != 0)
        return rc;
    return finish(out, err);
}

void config_free(struct config *c)
{
    arena_free(c->arena);
    *c = (struct config){0};
}
