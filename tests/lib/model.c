/* The model: reference-counted values, so that a snapshot is an array of pointers. */
#include "tests/lib/model.h"

#include <stdlib.h>

#include "server/base/arena.h"
#include "server/base/assert.h"

struct model_value *model_value_new(size_t n)
{
    struct model_value *v = ov_malloc(sizeof(*v) + n);
    v->refs = 1;
    v->n = n;
    return v;
}

struct model_value *model_value_ref(struct model_value *v)
{
    if (v)
        v->refs++;
    return v;
}

void model_value_unref(struct model_value *v)
{
    if (v && --v->refs == 0)
        free(v);
}

void model_state_copy(struct model_state *to, const struct model_state *from)
{
    for (size_t i = 0; i < MODEL_KEYS; i++)
        to->values[i] = model_value_ref(from->values[i]);
}

void model_state_clear(struct model_state *s)
{
    for (size_t i = 0; i < MODEL_KEYS; i++) {
        model_value_unref(s->values[i]);
        s->values[i] = NULL;
    }
}

size_t model_state_count(const struct model_state *s)
{
    size_t n = 0;
    for (size_t i = 0; i < MODEL_KEYS; i++)
        n += s->values[i] != NULL;
    return n;
}

void model_init(struct model *m)
{
    *m = (struct model){.first = 1};
}

static void free_log(struct model *m, size_t from)
{
    for (size_t i = from; i < m->n; i++) {
        for (size_t k = 0; k < m->log[i].n; k++)
            model_value_unref(m->log[i].changes[k].value);
        free(m->log[i].changes);
    }
    m->n = from;
}

void model_deinit(struct model *m)
{
    free_log(m, 0);
    free(m->log);
    model_state_clear(&m->base);
    model_state_clear(&m->now);
}

static void apply(struct model_state *s, const struct model_commit *c)
{
    for (size_t k = 0; k < c->n; k++) {
        model_value_unref(s->values[c->changes[k].key]);
        s->values[c->changes[k].key] = model_value_ref(c->changes[k].value);
    }
}

void model_commit(struct model *m, uint64_t ts, struct model_change *changes, size_t n)
{
    if (m->n == m->cap) {
        m->cap = OV_MAX(256, m->cap * 2);
        m->log = ov_realloc(m->log, m->cap * sizeof(*m->log));
    }
    m->log[m->n++] = (struct model_commit){ts, changes, n};
    apply(&m->now, &m->log[m->n - 1]);
}

uint64_t model_commits(const struct model *m)
{
    return m->first + m->n - 1;
}

uint64_t model_ts_of(const struct model *m, uint64_t number)
{
    if (number < m->first)
        return 0;
    return number - m->first < m->n ? m->log[number - m->first].ts : UINT64_MAX;
}

void model_at(const struct model *m, uint64_t number, struct model_state *out)
{
    OV_ASSERT(number + 1 >= m->first && number <= model_commits(m));
    model_state_copy(out, &m->base);
    for (uint64_t i = m->first; i <= number; i++)
        apply(out, &m->log[i - m->first]);
}

void model_rewind(struct model *m, uint64_t number)
{
    OV_ASSERT(number + 1 >= m->first && number <= model_commits(m));
    for (uint64_t i = m->first; i <= number; i++)
        apply(&m->base, &m->log[i - m->first]);
    free_log(m, 0);
    m->first = number + 1;
    model_state_clear(&m->now);
    model_state_copy(&m->now, &m->base);
}
