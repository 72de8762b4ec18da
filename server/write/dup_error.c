/* E11000. Its text is parsed by applications: blanks and braces are part of it. */
#include "server/write/dup_error.h"

static struct bval shown(struct bval v)
{
    return bval_is_missing(v) ? BVAL_NULL : v;
}

static void key_text(struct buf *out, const struct index_def *def, const struct bval *values)
{
    enum { VALUE_MAX = 4096 }; /* a long string is cut: the message is for reading, keyValue has all of it */
    buf_printf(out, "{ ");
    for (uint32_t i = 0; i < def->n_fields; i++) {
        buf_printf(out, "%s%s: ", i ? ", " : "", def->paths[i].text);
        bval_to_shell(out, shown(values[i]), VALUE_MAX);
    }
    buf_printf(out, " }");
    buf_byte(out, 0);
}

static struct slice key_info(struct arena *a, const struct index_def *def, const struct bval *values)
{
    struct buf b;
    buf_init(&b);
    size_t doc = bw_begin(&b);
    bw_rawdoc(&b, "keyPattern", def->key_pattern);
    size_t kv = bw_doc(&b, "keyValue");
    for (uint32_t i = 0; i < def->n_fields; i++)
        bw_val(&b, def->paths[i].text, shown(values[i]));
    bw_end(&b, kv);
    bw_end(&b, doc);
    struct slice info = arena_slice(a, buf_slice(&b));
    buf_free(&b);
    return info;
}

int dup_key_error(struct err *e, struct arena *a, const char *ns, const struct index_def *def,
                  const struct bval *values)
{
    struct buf text;
    buf_init(&text);
    key_text(&text, def, values);
    err_set(e, ERR_DUPLICATE_KEY, "E11000 duplicate key error collection: %s index: %s dup key: %s", ns, def->name,
            (const char *)text.p);
    buf_free(&text);
    e->info = key_info(a, def, values);
    return e->code;
}
