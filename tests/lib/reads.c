/* Collections for tests of what reads. */
#include "tests/lib/reads.h"

#include <stdio.h>

#include "tests/lib/json.h"
#include "tests/lib/test.h"

/* Keys of tests: four bytes a number, in its order. The executions never look into a key. */
static void encode(struct buf *key, int v)
{
    store_be32(buf_reserve(key, 4), (uint32_t)v ^ 0x80000000u);
    key->len += 4;
}

static void index_doc(struct fix *f, uint64_t rid, int id)
{
    struct buf key;
    uint8_t value[8];
    buf_init(&key);
    store_be64(value, rid);
    encode(&key, id);
    fix_put(f, f->indexes[0].keyspace, buf_slice(&key), slice_of(value, 8));
    key.len = 0;
    encode(&key, id % 10);
    buf_be64(&key, rid);
    fix_put(f, f->indexes[1].keyspace, buf_slice(&key), slice_of(NULL, 0));
    key.len = 0;
    encode(&key, id % 3);
    encode(&key, id * 7 % DOCS);
    buf_be64(&key, rid);
    fix_put(f, f->indexes[2].keyspace, buf_slice(&key), slice_of(NULL, 0));
    buf_free(&key);
}

void fix_put(struct fix *f, uint64_t keyspace, struct slice key, struct slice value)
{
    eng_step_enter(f->db.e);
    struct eng_txn *t = eng_begin(f->db.e, 0, 0);
    eng_put(t, keyspace, key, value, ENG_INSERT);
    ck_assert_int_eq(db_commit(&f->db, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_end(t);
    eng_step_leave(f->db.e);
}

void fix_delete_doc(struct fix *f, int id)
{
    uint8_t key[8];
    store_be64(key, (uint64_t)id + 1);
    eng_step_enter(f->db.e);
    struct eng_txn *t = eng_begin(f->db.e, 0, 0);
    eng_del(t, f->coll.records, slice_of(key, 8));
    ck_assert_int_eq(db_commit(&f->db, t, ENG_DUR_LOCAL, NULL), ENG_OK);
    eng_end(t);
    eng_step_leave(f->db.e);
}

static void put_doc(struct fix *f, int id)
{
    struct buf doc;
    uint8_t key[8];
    buf_init(&doc);
    size_t at = bw_begin(&doc);
    bw_i32(&doc, "_id", id);
    bw_i32(&doc, "a", id % 10);
    bw_i32(&doc, "b", id % 3);
    bw_i32(&doc, "c", id * 7 % DOCS);
    bw_end(&doc, at);
    store_be64(key, (uint64_t)id + 1);
    fix_put(f, f->coll.records, slice_of(key, 8), buf_slice(&doc));
    buf_free(&doc);
    index_doc(f, (uint64_t)id + 1, id);
}

static void wake(struct op_host *h, struct operation *op)
{
    (void)h, (void)op;
}

void fix_new(struct fix *f, int debug_pending)
{
    static struct op_host host = {wake};
    memset(f, 0, sizeof(*f));
    f->a = arena_new(0);
    err_init(&f->err, f->a);
    f->op = (struct operation){.host = &host, .arena = f->a};
    f->coll = (struct collection){
        .ns = "t.c", .records = keyspace_id(KEYSPACE_DOCS, 7), .indexes = f->indexes, .n_indexes = 3, .rt = &f->rt};
    for (unsigned i = 0; i < 3; i++)
        f->indexes[i] = (struct index_def){.keyspace = keyspace_id(i ? KEYSPACE_INDEX : KEYSPACE_UNIQUE, 8 + i),
                                           .is_id = i == 0,
                                           .n_fields = i == 2 ? 2 : 1,
                                           .rt = &f->index_rt[i]};
    db_new(&f->db);
    for (int i = 0; i < DOCS; i++) {
        put_doc(f, i);
        if (i == DOCS / 2)
            db_flush(&f->db);
    }
    f->db.opt.debug_pending = debug_pending;
    f->db.opt.debug_seed = 11;
    db_reopen(&f->db);
}

void fix_free(struct fix *f)
{
    db_free(&f->db);
    arena_free(f->a);
}

struct slice fix_key(struct fix *f, const char *json_array)
{
    struct buf key;
    struct biter it;
    struct belem e;
    char text[200];
    buf_init(&key);
    snprintf(text, sizeof(text), "{k: %s}", json_array);
    for (biter_init(&it, bval_doc(bdoc_get(J(text), "k"))); biter_next(&it, &e);)
        encode(&key, bval_i32(e.v));
    struct slice s = arena_slice(f->a, buf_slice(&key));
    buf_free(&key);
    return s;
}

struct slice fix_after(struct fix *f, struct slice key)
{
    uint8_t *p = arena_alloc(f->a, key.n + 9);
    memcpy(p, key.p, key.n);
    memset(p + key.n, 0xff, 9);
    return slice_of(p, key.n + 9);
}

struct plan_interval fix_interval(struct fix *f, const char *from, const char *upto)
{
    return (struct plan_interval){.from = fix_key(f, from), .to = fix_after(f, fix_key(f, upto))};
}

void fix_next_step(struct fix *f)
{
    eng_step_leave(f->db.e);
    f->steps++;
    eng_step_enter(f->db.e);
}

void fix_wait(struct fix *f)
{
    eng_step_leave(f->db.e);
    f->steps++;
    while (!atomic_exchange(&f->db.woken, 0))
        db_pump(&f->db);
    eng_step_enter(f->db.e);
}
