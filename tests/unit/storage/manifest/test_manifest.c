/* The manifest: edits are atomic and durable, damage is told from a torn last edit, a full disk is survived. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/base/crc.h"
#include "server/base/rand.h"
#include "storage/manifest/manifest_private.h"
#include "tests/lib/file_fault.h"
#include "tests/lib/test.h"

static struct manifest *must_open(const struct file_ops *fs)
{
    struct manifest *m;
    struct eng_error err;
    enum eng_result r = manifest_open(fs, &m, &err);
    ck_assert_msg(r == ENG_OK, "manifest_open: %d %s", r, err.msg);
    return m;
}

static enum eng_result try_open(struct file_mem *disk, struct eng_error *err)
{
    struct manifest *m;
    enum eng_result r = manifest_open(file_mem_ops(disk), &m, err);
    manifest_close(m);
    return r;
}

/* Edit k: adds run k, removes run k - 3, counts k keys into keyspace k % 5. */
static enum eng_result apply(struct manifest *m, uint64_t k, struct eng_error *err)
{
    struct manifest_run run = {.id = k, .order = 1000 - k % 7, .bytes = 10 * k, .min_ts = k, .max_ts = 2 * k};
    struct manifest_count count = {.keyspace = k % 5, .count = (int64_t)k};
    uint64_t gone = k - 3;
    struct manifest_edit e = {.add = &run,
                              .n_add = 1,
                              .remove = &gone,
                              .n_remove = k > 3,
                              .counts = &count,
                              .n_counts = 1,
                              .replay_from = 100 * k,
                              .synced = 100 * k + 1,
                              .max_ts = 2 * k,
                              .epoch = (uint32_t)k};
    return manifest_apply(m, &e, err);
}

static void must_apply(struct manifest *m, uint64_t k)
{
    struct eng_error err;
    enum eng_result r = apply(m, k, &err);
    ck_assert_msg(r == ENG_OK, "manifest_apply: %d %s", r, err.msg);
}

/* How many edits 1 .. k the state holds; checks that it is exactly those. */
static uint64_t edits_in(const struct manifest *m)
{
    const struct manifest_state *s = manifest_state(m);
    uint64_t k = s->epoch;
    int64_t want[5] = {0};

    if (k == 0) {
        ck_assert(s->n_runs == 0 && s->n_counts == 0 && s->replay_from == 0);
        return 0;
    }
    ck_assert_int_eq(s->replay_from, 100 * k);
    ck_assert_int_eq(s->synced, 100 * k + 1);
    ck_assert_int_eq(s->n_runs, OV_MIN(k, 3));
    ck_assert_int_ge(s->next_run_id, k + 1);
    for (size_t i = 0; i < s->n_runs; i++) {
        ck_assert(s->runs[i].id + 3 > k && s->runs[i].id <= k);
        ck_assert_int_eq(s->runs[i].bytes, 10 * s->runs[i].id);
        ck_assert(i == 0 || s->runs[i - 1].order < s->runs[i].order);
    }
    for (uint64_t i = 1; i <= k; i++)
        want[i % 5] += (int64_t)i;
    for (size_t i = 0; i < s->n_counts; i++) {
        ck_assert_int_eq(s->counts[i].count, want[s->counts[i].keyspace]);
        want[s->counts[i].keyspace] = 0;
        ck_assert(i == 0 || s->counts[i - 1].keyspace < s->counts[i].keyspace);
    }
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(want[i], 0);
    return k;
}

static const char *current_file(struct file_mem *disk)
{
    static char name[32];
    size_t n;
    const uint8_t *p = file_mem_get(disk, "CURRENT", &n);
    snprintf(name, sizeof(name), "%.25s", (const char *)p);
    return name;
}

/* Where edit number `number` of the file lies. */
static uint64_t edit_at(struct file_mem *disk, int number, uint64_t *end)
{
    size_t n;
    const uint8_t *p = file_mem_get(disk, current_file(disk), &n);
    uint64_t at = MANIFEST_HEAD;
    for (; number-- > 0;)
        at += (EDIT_HEAD + load_le32(p + at + 4) + 7) & ~7u;
    *end = at + ((EDIT_HEAD + load_le32(p + at + 4) + 7) & ~7u);
    return at;
}

START_TEST(a_new_manifest_is_empty)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    ck_assert_int_eq(edits_in(m), 0);
    ck_assert_int_eq(manifest_new_run_id(m), 1);
    ck_assert_int_eq(manifest_new_run_id(m), 2);
    manifest_close(m);
    file_mem_free(disk);
}
END_TEST

START_TEST(edits_survive_power_loss)
{
    struct file_mem *disk = file_mem_new();
    for (uint64_t k = 1; k < 30; k++) {
        struct manifest *m = must_open(file_mem_ops(disk));
        ck_assert_int_eq(edits_in(m), k - 1);
        must_apply(m, k);
        ck_assert_int_eq(edits_in(m), k);
        manifest_close(m);
        file_mem_crash(disk, k);
    }
    file_mem_free(disk);
}
END_TEST

START_TEST(drops_are_kept_until_forgotten)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    struct manifest_count counts[] = {{9, 5}, {7, 2}, {9, 1}, {3, -1}};
    struct manifest_drop drops[] = {{9, 100}, {4, 50}};
    uint64_t forget[] = {9, 77};
    struct eng_error err;
    const struct manifest_state *s;

    ck_assert_int_eq(
        manifest_apply(m, &(struct manifest_edit){.counts = counts, .n_counts = 4, .drops = drops, .n_drops = 2}, &err),
        ENG_OK);
    s = manifest_state(m);
    ck_assert_int_eq(s->n_counts, 3);
    ck_assert_int_eq(s->counts[0].keyspace, 3);
    ck_assert_int_eq(s->counts[0].count, -1);
    ck_assert_int_eq(s->counts[2].keyspace, 9);
    ck_assert_int_eq(s->counts[2].count, 6);
    ck_assert_int_eq(s->n_drops, 2);
    ck_assert_int_eq(s->drops[0].keyspace, 4);
    ck_assert_int_eq(s->drops[1].ts, 100);
    ck_assert_int_eq(manifest_apply(m, &(struct manifest_edit){.forget = forget, .n_forget = 2}, &err), ENG_OK);
    manifest_close(m);
    m = must_open(file_mem_ops(disk));
    s = manifest_state(m);
    ck_assert_int_eq(s->n_drops, 1);
    ck_assert_int_eq(s->drops[0].keyspace, 4);
    ck_assert_int_eq(s->n_counts, 2);
    ck_assert_int_eq(s->counts[1].keyspace, 7);
    manifest_close(m);
    file_mem_free(disk);
}
END_TEST

START_TEST(ids_of_removed_runs_are_not_given_out_again)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    struct manifest_run run = {.id = 41, .order = 1};
    uint64_t id = 41;
    struct eng_error err;
    ck_assert_int_eq(manifest_apply(m, &(struct manifest_edit){.add = &run, .n_add = 1}, &err), ENG_OK);
    ck_assert_int_eq(manifest_apply(m, &(struct manifest_edit){.remove = &id, .n_remove = 1}, &err), ENG_OK);
    manifest_close(m);
    for (int i = 0; i < 2; i++) {
        m = must_open(file_mem_ops(disk));
        ck_assert_int_gt(manifest_new_run_id(m), 41);
        manifest_close(m);
    }
    file_mem_free(disk);
}
END_TEST

START_TEST(a_torn_last_edit_is_dropped_wherever_it_is_torn)
{
    struct file_mem *disk = file_mem_new(), *copy;
    struct manifest *m = must_open(file_mem_ops(disk));
    uint64_t from, to;
    must_apply(m, 1);
    must_apply(m, 2);
    manifest_close(m);
    from = edit_at(disk, 2, &to);
    for (uint64_t at = from; at < to; at++) {
        copy = file_mem_copy(disk);
        file_mem_zero(copy, current_file(copy), at, to - at);
        m = must_open(file_mem_ops(copy));
        ck_assert(edits_in(m) == 1 || at >= to - 8); /* the last bytes are zero anyway */
        if (edits_in(m) == 1)
            must_apply(m, 2);
        ck_assert_int_eq(edits_in(m), 2);
        manifest_close(m);
        file_mem_free(copy);
    }
    file_mem_free(disk);
}
END_TEST

START_TEST(damage_before_the_last_edit_is_refused)
{
    struct file_mem *disk = file_mem_new(), *copy;
    struct manifest *m = must_open(file_mem_ops(disk));
    struct eng_error err;
    uint64_t end;
    must_apply(m, 1);
    must_apply(m, 2);
    must_apply(m, 3);
    manifest_close(m);
    edit_at(disk, 2, &end);
    for (uint64_t at = 0; at < end; at++) {
        copy = file_mem_copy(disk);
        file_mem_flip(copy, current_file(copy), at);
        ck_assert_int_eq(try_open(copy, &err), at >= end - 4 ? err.result : ENG_CORRUPT); /* padding is not looked at */
        file_mem_free(copy);
    }
    file_mem_free(disk);
}
END_TEST

START_TEST(a_lost_or_damaged_CURRENT_is_refused)
{
    struct file_mem *disk = file_mem_new();
    const struct file_ops *fs = file_mem_ops(disk);
    struct manifest *m = must_open(fs);
    struct eng_error err;
    must_apply(m, 1);
    manifest_close(m);
    m = must_open(fs);
    manifest_close(m);
    file_mem_flip(disk, "CURRENT", 20);
    ck_assert_int_eq(try_open(disk, &err), ENG_CORRUPT); /* names a file that is not there */
    file_mem_flip(disk, "CURRENT", 20);
    ck_assert_int_eq(try_open(disk, &err), ENG_OK);
    file_mem_cut(disk, "CURRENT", 10);
    ck_assert_int_eq(try_open(disk, &err), ENG_CORRUPT);
    ck_assert_int_eq(fs->remove(fs, "CURRENT"), 0);
    ck_assert_int_eq(try_open(disk, &err), ENG_CORRUPT);
    file_mem_free(disk);
}
END_TEST

START_TEST(a_newer_format_is_refused)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    struct eng_error err;
    uint8_t *p;
    size_t n;
    manifest_close(m);
    p = (uint8_t *)file_mem_get(disk, current_file(disk), &n);
    store_le32(p + 8, MANIFEST_VERSION + 1);
    store_le32(p + 28, crc32c(0, p, 28));
    ck_assert_int_eq(try_open(disk, &err), ENG_CORRUPT);
    ck_assert(strstr(err.msg, "newer format") != NULL);
    file_mem_free(disk);
}
END_TEST

START_TEST(it_does_not_grow_without_end)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    for (uint64_t k = 1; k <= 20000; k++)
        must_apply(m, k);
    manifest_close(m);
    ck_assert_int_lt(file_mem_used(disk), 2 << 20);
    m = must_open(file_mem_ops(disk));
    ck_assert_int_eq(edits_in(m), 20000);
    manifest_close(m);
    file_mem_free(disk);
}
END_TEST

START_TEST(a_full_disk_is_survived)
{
    struct file_mem *disk = file_mem_new();
    struct manifest *m = must_open(file_mem_ops(disk));
    struct eng_error err;
    uint64_t k = 0;
    file_mem_set_capacity(disk, 80 * 1024);
    while (apply(m, k + 1, &err) == ENG_OK)
        k++;
    ck_assert_int_eq(err.result, ENG_DISK_FULL);
    ck_assert_int_eq(edits_in(m), k);
    ck_assert_int_eq(apply(m, k + 1, &err), ENG_DISK_FULL);
    file_mem_set_capacity(disk, 0);
    must_apply(m, k + 1);
    manifest_close(m);
    m = must_open(file_mem_ops(disk));
    ck_assert_int_eq(edits_in(m), k + 1);
    manifest_close(m);
    file_mem_free(disk);
}
END_TEST

START_TEST(nothing_is_accepted_after_a_failed_sync)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct file_fault *d = file_fault_new(&(struct fault_plan){0});
        struct manifest *m = must_open(file_fault_ops(d));
        struct eng_error err;
        uint64_t k;
        must_apply(m, 1);
        file_fault_restart(d, false, &(struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC, .seed = seed});
        ck_assert_int_eq(apply(m, 2, &err), ENG_IO);
        ck_assert_int_eq(edits_in(m), 1);
        ck_assert_int_eq(apply(m, 2, &err), ENG_READ_ONLY);
        manifest_close(m);
        m = must_open(file_fault_ops(d)); /* R5: what this one shows has to last */
        k = edits_in(m);
        must_apply(m, k + 1);
        manifest_close(m);
        m = must_open(file_fault_survivor(d));
        ck_assert_int_eq(edits_in(m), k + 1);
        manifest_close(m);
        file_fault_free(d);
    }
}
END_TEST

/* One life with the plan, a second one with a power cut, a last look: each finds all acknowledged edits and at most one
 * more. */
static bool visit(struct fault_plan plan, uint64_t n, uint64_t seed, bool power)
{
    struct file_fault *d = file_fault_new(&plan);
    struct fault_plan second = {.seed = seed + 7 * n, .crash_at = 1 + (n * 7 + seed) % 25};
    struct manifest *m;
    struct eng_error err;
    uint64_t told = 0, found;
    bool fired;

    if (manifest_open(file_fault_ops(d), &m, &err) == ENG_OK) {
        for (int i = 0; i < 12; i++)
            told += apply(m, told + 1, &err) == ENG_OK;
        manifest_close(m);
    }
    fired = file_fault_fired(d);
    file_fault_restart(d, power, &(struct fault_plan){.seed = second.seed});
    m = must_open(file_fault_ops(d));
    found = edits_in(m);
    ck_assert_msg(found >= told && found <= told + 1, "call %d seed %d: %d told, %d found", (int)n, (int)seed,
                  (int)told, (int)found);
    manifest_close(m);

    told = found;
    file_fault_restart(d, false, &second);
    if (manifest_open(file_fault_ops(d), &m, &err) == ENG_OK) {
        ck_assert_int_eq(edits_in(m), told);
        for (int i = 0; i < 12; i++)
            told += apply(m, told + 1, &err) == ENG_OK;
        manifest_close(m);
    }
    m = must_open(file_fault_survivor(d));
    found = edits_in(m);
    ck_assert_msg(found >= told && found <= told + 1, "second life, call %d seed %d: %d told, %d found", (int)n,
                  (int)seed, (int)told, (int)found);
    manifest_close(m);
    file_fault_free(d);
    return fired;
}

static void matrix(struct fault_plan plan, bool power, uint64_t seeds)
{
    if (getenv("CRASH_SEEDS"))
        seeds = strtoull(getenv("CRASH_SEEDS"), NULL, 0);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        bool fired = true;
        for (uint64_t n = 1; fired; n++) {
            plan.seed = seed * 1000 + n;
            if (plan.crash_at)
                plan.crash_at = n;
            else
                plan.fail_at = n;
            fired = visit(plan, n, seed, power);
        }
    }
}

START_TEST(power_cut_at_every_call)
{
    matrix((struct fault_plan){.crash_at = 1}, true, 10);
}
END_TEST

START_TEST(faults_at_every_call)
{
    matrix((struct fault_plan){.fail_at = 1}, false, 4);
    matrix((struct fault_plan){.fail_at = 1}, true, 4);
    matrix((struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC}, true, 10);
    matrix((struct fault_plan){.fail_at = 1, .fail_for = 3, .fail_errno = ENOSPC, .kinds = FAULT_WRITES}, true, 4);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_new_manifest_is_empty);
    tcase_add_test(tc, edits_survive_power_loss);
    tcase_add_test(tc, drops_are_kept_until_forgotten);
    tcase_add_test(tc, ids_of_removed_runs_are_not_given_out_again);
    tcase_add_test(tc, a_torn_last_edit_is_dropped_wherever_it_is_torn);
    tcase_add_test(tc, damage_before_the_last_edit_is_refused);
    tcase_add_test(tc, a_lost_or_damaged_CURRENT_is_refused);
    tcase_add_test(tc, a_newer_format_is_refused);
    tcase_add_test(tc, it_does_not_grow_without_end);
    tcase_add_test(tc, a_full_disk_is_survived);
    tcase_add_test(tc, nothing_is_accepted_after_a_failed_sync);
    tcase_add_test(tc, power_cut_at_every_call);
    tcase_add_test(tc, faults_at_every_call);
}
TEST_MAIN("storage/manifest", add_tests)
