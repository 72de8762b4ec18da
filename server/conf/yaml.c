/* A configuration file: YAML by libyaml, of which sections, scalars and lists of scalars are used. What is wrong is told with the line where it
 * stands. Aliases are followed by libyaml into the same node, so that walking down only along known sections ends. */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "server/base/buf.h"
#include "server/conf/settings_private.h"

#define KEY_MAX    200
#define SEEN_MAX   64
#define PARAMETERS "setParameter"

struct reader {
    struct config *c;
    const char *name; /* of the file */
    yaml_document_t doc;
    struct err *err;
    char seen[SEEN_MAX][KEY_MAX]; /* keys of this file so far */
    size_t n_seen;
};

static int line_of(const yaml_node_t *n)
{
    return (int)n->start_mark.line + 1;
}

static int bad(struct reader *r, const yaml_node_t *at, const char *key, const char *what)
{
    return err_set(r->err, ERR_BAD_VALUE, "%s:%d: %s: %s", r->name, line_of(at), key, what);
}

/* The scalar as a C string, NULL if there is a NUL in it. */
static const char *text_of(struct reader *r, const yaml_node_t *n)
{
    if (memchr(n->data.scalar.value, 0, n->data.scalar.length))
        return NULL;
    return arena_strndup(r->c->arena, (const char *)n->data.scalar.value, n->data.scalar.length);
}

static bool is_null(const yaml_node_t *n)
{
    const char *s = (const char *)n->data.scalar.value;
    return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (n->data.scalar.length == 0 || strcmp(s, "~") == 0 || strcmp(s, "null") == 0);
}

static bool seen_before(struct reader *r, const char *key)
{
    for (size_t i = 0; i < r->n_seen; i++)
        if (strcmp(r->seen[i], key) == 0)
            return true;
    if (r->n_seen < SEEN_MAX)
        strcpy(r->seen[r->n_seen++], key);
    return false;
}

/* Is `key` a section: do keys start with it, ours or those that are refused by name? */
static bool is_section(const char *key)
{
    size_t n = strlen(key);
    for (const struct setting *s = settings; s->key; s++)
        if (strncmp(s->key, key, n) == 0 && s->key[n] == '.')
            return true;
    return strcmp(key, PARAMETERS) == 0 || setting_refused_section(key);
}

/* A list of scalars, joined by commas. */
static const char *joined(struct reader *r, const yaml_node_t *n)
{
    struct buf b;
    buf_init(&b);
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        const yaml_node_t *item = yaml_document_get_node(&r->doc, *i);
        const char *text = item && item->type == YAML_SCALAR_NODE ? text_of(r, item) : NULL;
        if (!text) {
            buf_free(&b);
            return NULL;
        }
        if (b.len)
            buf_byte(&b, ',');
        buf_append(&b, text, strlen(text));
    }
    const char *out = arena_strndup(r->c->arena, b.len ? (const char *)b.p : "", b.len);
    buf_free(&b);
    return out;
}

static char given_type(const struct setting *s)
{
    switch (s->type) {
    case SETTING_INT:
        return 'i';
    case SETTING_DOUBLE:
        return 'd';
    case SETTING_BOOL:
        return 'b';
    default:
        return 's';
    }
}

static int take_parameter(struct reader *r, const yaml_node_t *at, const char *key, const yaml_node_t *v)
{
    const char *text = v->type == YAML_SCALAR_NODE ? text_of(r, v) : NULL;
    if (!text)
        return bad(r, v, key, "must be a text or a number");
    if (setting_take_parameter(r->c, key + sizeof(PARAMETERS), text, r->err) != 0)
        return bad(r, at, key, r->err->msg);
    setting_given(r->c, key, text, 's');
    return 0;
}

/* systemLog.destination says what systemLog.path says already. */
static int take_destination(struct reader *r, const char *key, const yaml_node_t *v)
{
    const char *text = v->type == YAML_SCALAR_NODE ? text_of(r, v) : NULL;
    if (!text || strcmp(text, "file") != 0)
        return bad(r, v, key, "must be file; syslog is not available yet");
    return 0;
}

static int take(struct reader *r, const yaml_node_t *at, const char *key, const yaml_node_t *v)
{
    const struct setting *s = setting_by_key(key);
    const char *why = s ? NULL : setting_refused_key(key), *text = NULL;
    if (!s && strncmp(key, PARAMETERS ".", sizeof(PARAMETERS)) == 0)
        return take_parameter(r, at, key, v);
    if (strcmp(key, "systemLog.destination") == 0)
        return take_destination(r, key, v);
    if (!s)
        return bad(r, at, key, why ? why : "unknown setting");
    if (v->type == YAML_SCALAR_NODE && !is_null(v))
        text = text_of(r, v);
    else if (v->type == YAML_SEQUENCE_NODE && (s->type == SETTING_LIST || s->type == SETTING_SET))
        text = joined(r, v);
    if (!text)
        return bad(r, v->type == YAML_SCALAR_NODE ? at : v, key, "has no value that it can take");
    if (setting_take(r->c, s, text, r->err) != 0)
        return bad(r, at, key, r->err->msg);
    setting_given(r->c, key, text, given_type(s));
    return 0;
}

/* `prefix` is "" or a section with its dot. */
static int read_section(struct reader *r, const yaml_node_t *map, const char *prefix)
{
    char key[KEY_MAX];
    int rc;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *k = yaml_document_get_node(&r->doc, p->key), *v = yaml_document_get_node(&r->doc, p->value);
        const char *name = k && k->type == YAML_SCALAR_NODE ? text_of(r, k) : NULL;
        if (!name || !v || !*name)
            return bad(r, k ? k : map, *prefix ? prefix : "the file", "a key must be a text");
        if (strlen(prefix) + strlen(name) + 2 > sizeof(key))
            return bad(r, k, prefix, "a key is too long");
        strcpy(key, prefix);
        strcat(key, name);
        if (seen_before(r, key))
            return bad(r, k, key, "is given twice");
        if (is_section(key)) {
            if (is_null(v))
                continue; /* all its lines are comments */
            if (v->type != YAML_MAPPING_NODE)
                return bad(r, k, key, "must be a section");
            strcat(key, ".");
            rc = read_section(r, v, key);
        } else {
            rc = take(r, k, key, v);
        }
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int read_document(struct reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->doc);
    if (!root || is_null(root))
        return 0;
    if (root->type != YAML_MAPPING_NODE)
        return bad(r, root, "the file", "must be made of sections");
    return read_section(r, root, "");
}

int config_read_yaml(struct config *c, const char *name, const char *text, size_t n, struct err *err)
{
    struct reader *r = ov_calloc(1, sizeof(*r));
    yaml_parser_t parser;
    int rc = 0;
    r->c = c;
    r->name = name;
    r->err = err;
    if (!yaml_parser_initialize(&parser)) {
        free(r);
        return err_set(err, ERR_INTERNAL_ERROR, "%s: no memory", name);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    for (int i = 0; rc == 0; i++) {
        if (!yaml_parser_load(&parser, &r->doc)) {
            rc = err_set(err, ERR_BAD_VALUE, "%s:%d: this is not YAML: %s", name, (int)parser.problem_mark.line + 1,
                         parser.problem ? parser.problem : "no memory");
            break;
        }
        bool end = !yaml_document_get_root_node(&r->doc);
        if (!end && i > 0)
            rc = bad(r, yaml_document_get_root_node(&r->doc), "the file", "must be one document");
        else
            rc = read_document(r);
        yaml_document_delete(&r->doc);
        if (end)
            break;
    }
    yaml_parser_delete(&parser);
    free(r);
    return rc;
}
