/* The journal's rules, one by one: each test is named for the rule that it would miss. */
#include "tests/unit/storage/journal/journal_test.h"

START_TEST(a_new_journal_is_empty_and_opens_again)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    ck_assert_int_eq(journal_epoch(r.j), 1);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "");
    ck_assert_int_eq(journal_epoch(r.j), 2);
    rig_free(&r);
}
END_TEST

START_TEST(records_come_back_in_order_after_a_clean_stop)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 1);
    rig_append(&r, "b", 1000);
    rig_append(&r, "c", 0);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a b c ");
    rig_append(&r, "d", 17);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a b c d ");
    rig_free(&r);
}
END_TEST

START_TEST(written_records_survive_the_death_of_the_process)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 100);
    rig_append(&r, "b", 100);
    rig_write(&r);
    rig_append(&r, "c", 100); /* never handed to the kernel */
    rig_die(&r, false, 0);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a b ");
    rig_free(&r);
}
END_TEST

START_TEST(synced_records_survive_power_loss) /* J2 */
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct rig r;
        rig_init(&r);
        rig_open(&r);
        rig_append(&r, "a", 3000);
        rig_append(&r, "b", 3000);
        rig_sync(&r);
        rig_append(&r, "c", 3000);
        rig_append(&r, "d", 3000);
        rig_write(&r);
        rig_die(&r, true, seed);
        rig_open(&r);
        ck_assert_msg(strncmp(rig_seen(&r), "a b ", 4) == 0, "seed %d: %s", (int)seed, rig_seen(&r));
        rig_free(&r);
    }
}
END_TEST

START_TEST(batches_run_over_many_segments)
{
    struct rig r;
    char name[16], want[2048] = "";
    rig_init(&r);
    rig_open(&r);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "%d", i);
        rig_append(&r, name, (size_t)(i * 37 % 5000));
        sprintf(want + strlen(want), "%d ", i);
        if (i % 7 == 0)
            rig_write(&r);
    }
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), want);
    rig_free(&r);
}
END_TEST

/* ---- R1 ---- */

/* a | b (4096 bytes, page-aligned) | c: then b is lost, c stays. Returns c's position. */
static lsn_t write_abc_lose_b(struct rig *r)
{
    lsn_t a, b;

    rig_open(r);
    a = rig_append(r, "a", 2 * SEGMENT_HEAD - RECORD_HEAD - journal_tail(r->j)); /* ends on a page boundary */
    ck_assert_int_eq(a % 4096, 0);
    rig_sync(r);
    b = rig_append(r, "b", 4096 - RECORD_HEAD);
    rig_append_at(r, "c", 4096 - RECORD_HEAD, 77);
    rig_write(r);
    rig_die(r, false, 0);
    rig_zero(r, a, 600);
    return b;
}

START_TEST(r1_cut_tail_does_not_rise_again)
{
    struct rig r;
    lsn_t c;
    rig_init(&r);
    c = write_abc_lose_b(&r);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a ");
    /* START and d take exactly the place of b, so that c would follow d */
    ck_assert_int_eq(rig_append(&r, "d", 4096 - 2 * RECORD_HEAD), c);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a d ");
    rig_free(&r);
}
END_TEST

START_TEST(r1_power_fails_again_inside_the_tail_that_was_cut)
{
    struct rig r;
    lsn_t c, d;
    rig_init(&r);
    c = write_abc_lose_b(&r);
    rig_open(&r);
    d = rig_append(&r, "d", 4096 - 2 * RECORD_HEAD);
    ck_assert_int_eq(d, c);
    rig_sync(&r);
    rig_append(&r, "e", 4096 - RECORD_HEAD); /* where c is */
    rig_append(&r, "f", 4096 - RECORD_HEAD);
    /* not written: this power cut keeps c, the record of the first life */
    rig_die(&r, true, 1);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a d ");
    rig_append(&r, "g", 10);
    rig_die(&r, true, 2);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a d ");
    rig_free(&r);
}
END_TEST

START_TEST(r1_each_start_takes_a_new_epoch_also_above_the_manifests)
{
    struct rig r;
    uint32_t e;
    rig_init(&r);
    rig_open(&r);
    e = journal_epoch(r.j);
    rig_die(&r, true, 3);
    rig_open(&r);
    ck_assert_int_gt(journal_epoch(r.j), e);
    rig_free(&r);
}
END_TEST

START_TEST(a_record_inside_a_payload_does_not_pose_as_one)
{
    struct rig r;
    uint64_t offset;
    size_t n;
    const uint8_t *file;
    uint8_t fake[256];
    struct record_head h = {.type = JOURNAL_BATCH, .flags = 3, .version = JOURNAL_VERSION, .epoch = 9};
    lsn_t at, end;
    rig_init(&r);
    rig_open(&r);
    rig_sync(&r);
    at = journal_tail(r.j);
    /* a payload that holds, at the right position, a header with a huge S, sealed without knowing the seed */
    h.lsn = at + 2 * RECORD_HEAD;
    h.synced_lsn = h.lsn;
    record_seal(&h, 0);
    memset(fake, 0, sizeof(fake));
    memcpy(fake + RECORD_HEAD, &h, sizeof(h));
    rig_make_room(&r, sizeof(fake));
    journal_append(r.j, slice_of(fake, sizeof(fake)), crc32c(0, fake, sizeof(fake)), 1, 1, &end);
    rig_write(&r);
    rig_die(&r, false, 0);
    file = file_mem_get(rig_disk(&r), rig_file(&r, at, &offset), &n);
    ck_assert(memcmp(file + offset + 2 * RECORD_HEAD, &h, sizeof(h)) == 0);
    rig_zero(&r, at, 8); /* the record is torn, what it holds is searched */
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "");
    rig_free(&r);
}
END_TEST

/* ---- R2 ---- */

static struct rig *r2_rig;
static int (*r2_datasync)(struct file *f);
static lsn_t r2_during;

static int append_during_sync(struct file *f)
{
    if (r2_rig) {
        struct rig *r = r2_rig;
        r2_rig = NULL;
        r2_during = rig_append(r, "late", 50);
        rig_write(r);
    }
    return r2_datasync(f);
}

START_TEST(r2_synced_leaves_out_what_was_written_during_the_sync)
{
    struct rig r;
    struct file_ops *ops;
    lsn_t a;
    rig_init(&r);
    ops = (struct file_ops *)file_fault_ops(r.disk);
    rig_open(&r);
    a = rig_append(&r, "a", 50);
    r2_datasync = ops->datasync;
    ops->datasync = append_during_sync;
    r2_rig = &r;
    ck_assert_int_eq(journal_sync_blocking(r.j, a), ENG_OK);
    ck_assert_int_gt(r2_during, a);
    ck_assert_int_eq(journal_written(r.j), r2_during);
    ck_assert_int_eq(journal_synced(r.j), a);
    rig_free(&r);
}
END_TEST

START_TEST(r2_a_record_carries_only_what_a_finished_sync_published)
{
    struct rig r;
    struct record_head h;
    uint64_t offset;
    size_t n;
    lsn_t a, b;
    rig_init(&r);
    rig_open(&r);
    a = rig_append(&r, "a", 50);
    rig_sync(&r);
    b = rig_append(&r, "b", 50); /* carries a */
    rig_append(&r, "c", 50);     /* carries a, too: b is not synced */
    rig_write(&r);
    const uint8_t *file = file_mem_get(rig_disk(&r), rig_file(&r, b, &offset), &n);
    memcpy(&h, file + offset, sizeof(h));
    ck_assert_int_eq(h.lsn, b);
    ck_assert_int_eq(h.synced_lsn, a);
    rig_free(&r);
}
END_TEST

/* ---- R3 ---- */

static void refuse_after_flip(bool clean_stop, uint64_t where)
{
    struct rig r;
    lsn_t before;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 100);
    rig_sync(&r);
    before = journal_tail(r.j);
    rig_append(&r, "last", 100);
    rig_sync(&r);
    if (clean_stop) {
        journal_close(r.j);
        r.j = NULL;
    } else {
        while (journal_background_step(r.j)) /* the interval passes: a MARK follows */
            ;
        rig_die(&r, false, 0);
    }
    rig_flip(&r, before + where);
    ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT);
    ck_assert_msg(strstr(r.err.msg, "journal/0000000000000000.oj") && strstr(r.err.msg, "offset"), "%s", r.err.msg);
    rig_free(&r);
}

START_TEST(r3_bit_flip_in_last_synced_record_is_refused)
{
    refuse_after_flip(false, 20);               /* its header */
    refuse_after_flip(false, RECORD_HEAD + 50); /* its payload */
}
END_TEST

START_TEST(r3_bit_flip_in_last_record_is_refused_after_a_clean_stop)
{
    refuse_after_flip(true, 20);
    refuse_after_flip(true, RECORD_HEAD + 50);
}
END_TEST

START_TEST(r3_what_the_manifest_knows_counts)
{
    struct rig r;
    lsn_t before;
    rig_init(&r);
    rig_open(&r);
    before = journal_tail(r.j);
    rig_append(&r, "a", 100);
    rig_sync(&r);
    r.known_synced = journal_synced(r.j);
    rig_die(&r, false, 0);
    rig_flip(&r, before + RECORD_HEAD);
    ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT);
    rig_free(&r);
}
END_TEST

START_TEST(r3_one_mark_a_sync_and_no_sync_a_mark)
{
    struct rig r;
    struct eng_stats before = {0}, after = {0};
    lsn_t tail;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 100);
    rig_sync(&r);
    journal_stats(r.j, &before);
    tail = journal_tail(r.j);
    while (journal_background_step(r.j))
        ;
    ck_assert_int_eq(journal_tail(r.j), tail + RECORD_HEAD);
    ck_assert_int_eq(journal_written(r.j), journal_tail(r.j));
    ck_assert_int_eq(journal_synced(r.j), tail);
    journal_stats(r.j, &after);
    ck_assert_int_eq(before.journal_syncs, after.journal_syncs);
    rig_free(&r);
}
END_TEST

START_TEST(r3_a_mark_between_question_and_append_leaves_the_room_promised)
{
    struct rig r;
    struct eng_call c;
    lsn_t end;
    size_t n;
    uint8_t *p;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 1000);
    rig_sync(&r);
    n = (size_t)journal_load(&r.j->room) - 2 * RECORD_HEAD; /* the largest that fits */
    ck_assert(journal_fits(r.j, n));
    ck_assert(!journal_fits(r.j, n + 8) || r.j->active->next);
    eng_call_init(&c, rig_wake);
    mutex_lock(&r.j->lock);
    ck_assert(sync_step(r.j)); /* the MARK */
    mutex_unlock(&r.j->lock);
    p = calloc(1, n);
    journal_append(r.j, slice_of(p, n), crc32c(0, p, n), 1, 1, &end);
    free(p);
    rig_free(&r);
}
END_TEST

/* ---- R4 ---- */

START_TEST(r4_a_header_gives_S_though_its_payload_is_torn)
{
    struct rig r;
    lsn_t start, a;
    rig_init(&r);
    rig_open(&r);
    start = journal_tail(r.j);
    a = rig_append(&r, "a", 1000);
    rig_sync(&r);
    rig_append(&r, "b", 3000); /* carries a's end */
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_flip(&r, start + RECORD_HEAD + 5);
    rig_flip(&r, a + RECORD_HEAD + 2000);
    ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT);
    rig_free(&r);
}
END_TEST

START_TEST(r4_damage_is_searched_at_every_8th_byte)
{
    struct rig r;
    lsn_t start, a;
    rig_init(&r);
    rig_open(&r);
    start = journal_tail(r.j);
    a = rig_append(&r, "a", 1000);
    rig_sync(&r);
    rig_append(&r, "b", 8 * 32); /* c starts at a multiple of 8 alone */
    ck_assert_int_ne(journal_tail(r.j) % 16, 0);
    rig_append(&r, "c", 100);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_zero(&r, start, 64);
    rig_zero(&r, a, 64);
    ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT); /* c says that a was durable */
    rig_free(&r);
}
END_TEST

START_TEST(r4_damage_above_S_is_a_torn_tail)
{
    struct rig r;
    lsn_t a, b;
    rig_init(&r);
    rig_open(&r);
    a = rig_append(&r, "a", 1000);
    rig_sync(&r);
    b = rig_append(&r, "b", 1000);
    rig_append(&r, "c", 1000);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_flip(&r, a + RECORD_HEAD + 500);
    (void)b;
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a ");
    rig_free(&r);
}
END_TEST

static lsn_t fill_three_segments(struct rig *r, bool sync, lsn_t firsts[3])
{
    char name[16];
    int n = 1;

    rig_open(r);
    firsts[0] = 0;
    for (int i = 0; n < 3; i++) {
        struct segment *before = r->j->active;
        snprintf(name, sizeof(name), "%d", i);
        rig_append(r, name, 1500);
        if (r->j->active != before)
            firsts[n++] = r->j->active->first;
    }
    rig_append(r, "end", 1500);
    rig_write(r);
    if (sync) {
        rig_sync(r);
        while (journal_background_step(r->j))
            ;
    }
    return journal_tail(r->j);
}

START_TEST(r4_a_missing_segment_below_S_is_refused)
{
    for (int gone = 0; gone < 3; gone++) {
        struct rig r;
        lsn_t firsts[3];
        char path[SEGMENT_PATH_BYTES];
        const struct file_ops *fs;
        rig_init(&r);
        fill_three_segments(&r, true, firsts);
        r.known_synced = journal_synced(r.j);
        rig_die(&r, false, 0);
        fs = file_fault_ops(r.disk);
        segment_path(firsts[gone], path);
        ck_assert_int_eq(fs->remove(fs, path), 0);
        ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT);
        ck_assert_msg(strstr(r.err.msg, "missing") != NULL, "%s", r.err.msg);
        rig_free(&r);
    }
}
END_TEST

START_TEST(r4_a_missing_segment_above_S_is_a_torn_tail)
{
    struct rig r;
    lsn_t firsts[3];
    char path[SEGMENT_PATH_BYTES];
    const struct file_ops *fs;
    size_t n;
    rig_init(&r);
    fill_three_segments(&r, false, firsts);
    rig_die(&r, false, 0);
    fs = file_fault_ops(r.disk);
    segment_path(firsts[1], path);
    ck_assert_int_eq(fs->remove(fs, path), 0);
    rig_open(&r);
    n = r.n_seen;
    ck_assert_int_gt(n, 3);
    rig_append(&r, "more", 10);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_int_eq(r.n_seen, n + 1);
    rig_free(&r);
}
END_TEST

START_TEST(a_rotten_sector_does_not_cost_the_segment)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 10);
    journal_close(r.j);
    rig_zero(&r, 0, 512); /* the header; its copy remains */
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a ");
    rig_free(&r);
}
END_TEST

START_TEST(a_newer_format_is_refused)
{
    struct rig r;
    size_t n;
    uint8_t *file;
    rig_init(&r);
    rig_open(&r);
    journal_close(r.j);
    r.j = NULL;
    file = (uint8_t *)file_mem_get(rig_disk(&r), "journal/0000000000000000.oj", &n);
    store_le32(file + 8, JOURNAL_VERSION + 1);
    store_le32(file + 60, crc32c(0, file, 60));
    ck_assert_int_eq(rig_try_open(&r), ENG_CORRUPT);
    ck_assert(strstr(r.err.msg, "newer format") != NULL);
    rig_free(&r);
}
END_TEST

/* ---- R5 ---- */

START_TEST(r5_what_replay_found_after_a_failed_sync_survives_power_loss)
{
    int found = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        char first[64];
        rig_init(&r);
        rig_open(&r);
        file_fault_restart(r.disk, false, &(struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC, .seed = seed});
        rig_append(&r, "a", 3000);
        rig_append(&r, "b", 3000);
        ck_assert_int_eq(journal_sync_blocking(r.j, journal_tail(r.j)), ENG_READ_ONLY);
        rig_die(&r, false, seed);
        rig_open(&r); /* the page cache still shows them */
        snprintf(first, sizeof(first), "%s", rig_seen(&r));
        found += strcmp(first, "a b ") == 0;
        rig_append(&r, "c", 10); /* a later sync succeeds, for what it covers */
        rig_sync(&r);
        strcat(first, "c ");
        rig_die(&r, true, seed);
        rig_open(&r);
        ck_assert_msg(strcmp(rig_seen(&r), first) == 0, "seed %d: %s, was %s", (int)seed, rig_seen(&r), first);
        rig_free(&r);
    }
    ck_assert_int_eq(found, 100);
}
END_TEST

/* ---- R7 ---- */

static void fill_and_release(struct rig *r, int segments)
{
    char name[16];
    for (int i = 0, rolls = 0; rolls < segments; i++) {
        struct segment *before = r->j->active;
        snprintf(name, sizeof(name), "%d", i);
        r->from = rig_append(r, name, 3000);
        rolls += r->j->active != before;
        if (r->j->active != before) {
            rig_sync(r);
            r->from = journal_tail(r->j);
            journal_release(r->j, r->from);
        }
    }
    rig_sync(r);
    r->from = r->known_synced = journal_synced(r->j);
}

START_TEST(released_segments_are_made_over)
{
    struct rig r;
    struct eng_stats st = {0};
    rig_init(&r);
    rig_open(&r);
    fill_and_release(&r, 12);
    journal_stats(r.j, &st);
    ck_assert_int_gt(st.journal_recycled, 3);
    ck_assert_int_le(st.journal_segments, 6);
    ck_assert_int_le(file_mem_used(rig_disk(&r)), 6 * 64 * 1024);
    rig_append(&r, "new", 10);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_open(&r); /* and their old bytes are not read as records */
    ck_assert_str_eq(rig_seen(&r), "new ");
    rig_free(&r);
}
END_TEST

START_TEST(r7_a_segment_that_a_backup_links_is_not_made_over)
{
    struct rig r;
    char path[SEGMENT_PATH_BYTES];
    uint8_t *copy;
    const uint8_t *now;
    size_t n, m;
    rig_init(&r);
    rig_open(&r);
    fill_and_release(&r, 4); /* past the small ones */
    segment_path(r.j->active->first, path);
    rig_make_room(&r, 40000);
    file_mem_link(rig_disk(&r), path, "backup.oj");
    fill_and_release(&r, 1);
    rig_sync(&r);
    now = file_mem_get(rig_disk(&r), "backup.oj", &n);
    copy = malloc(n);
    memcpy(copy, now, n);
    fill_and_release(&r, 8);
    now = file_mem_get(rig_disk(&r), "backup.oj", &m);
    ck_assert_int_eq(n, m);
    ck_assert(memcmp(copy, now, n) == 0);
    free(copy);
    rig_free(&r);
}
END_TEST

START_TEST(release_never_takes_the_active_segment_or_what_is_not_synced)
{
    struct rig r;
    struct eng_stats st = {0};
    rig_init(&r);
    rig_open(&r);
    for (int i = 0; i < 20; i++)
        rig_append(&r, "a", 3000);
    rig_write(&r);
    journal_release(r.j, journal_tail(r.j));
    journal_stats(r.j, &st);
    ck_assert_int_ge(st.journal_segments, 2);
    rig_sync(&r);
    journal_release(r.j, journal_tail(r.j));
    ck_assert_ptr_eq(r.j->segments, r.j->active);
    rig_append(&r, "b", 3000);
    rig_free(&r);
}
END_TEST

/* ---- R8 ---- */

START_TEST(r8_a_batch_in_parts_comes_back_whole)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 100);
    rig_append(&r, "big", 500000); /* many segments */
    rig_append(&r, "z", 100);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a big z ");
    ck_assert_int_eq(r.seen_bytes, 500200);
    rig_free(&r);
}
END_TEST

START_TEST(r8_an_unfinished_batch_is_void_and_stays_so)
{
    struct rig r;
    lsn_t end;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 100);
    rig_sync(&r);
    end = rig_append(&r, "big", 30000);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_flip(&r, end - 100); /* the last part is torn */
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a ");
    rig_append(&r, "b", 100);
    rig_append(&r, "big2", 30000);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a b big2 ");
    ck_assert_int_eq(r.seen_bytes, 30200);
    rig_free(&r);
}
END_TEST

START_TEST(r8_a_foreign_last_part_does_not_finish_a_batch)
{
    /* A first part, then a new epoch, then a record marked as a last part: written by hand, as no writer would */
    struct rig r;
    struct record_head h = {
        .type = JOURNAL_BATCH, .flags = JOURNAL_LAST, .version = JOURNAL_VERSION, .len = 8, .first_ts = 1, .count = 1};
    uint64_t offset;
    size_t n;
    uint8_t *file;
    lsn_t at;
    rig_init(&r);
    rig_open(&r);
    at = journal_tail(r.j);
    h.epoch = journal_epoch(r.j);
    h.payload_crc = crc32c(0, "voidvoid", 8);
    file = (uint8_t *)file_mem_get(rig_disk(&r), rig_file(&r, at, &offset), &n);
    for (int i = 0; i < 3; i++) { /* first part, MARK, last part */
        h.lsn = at;
        h.type = i == 1 ? JOURNAL_MARK : JOURNAL_BATCH;
        h.flags = i == 0 ? JOURNAL_FIRST : i == 2 ? JOURNAL_LAST : 0;
        record_seal(&h, r.j->active->seed);
        memcpy(file + at, &h, sizeof(h));
        memcpy(file + at + RECORD_HEAD, "voidvoid", 8);
        at += RECORD_HEAD + 8;
    }
    rig_die(&r, false, 0);
    rig_open(&r);
    ck_assert_int_eq(journal_tail(r.j), at + RECORD_HEAD); /* all three were read */
    ck_assert_str_eq(rig_seen(&r), "");
    rig_free(&r);
}
END_TEST

START_TEST(r8_all_space_of_a_batch_is_ready_before_it_is_appended)
{
    struct rig r;
    struct eng_call c;
    rig_init(&r);
    rig_open(&r);
    eng_call_init(&c, rig_wake);
    ck_assert(!journal_fits(r.j, 300000));
    ck_assert_int_eq(journal_reserve(r.j, 300000, &c), ENG_PENDING);
    rig_wakes = 0;
    while (!journal_fits(r.j, 300000)) {
        ck_assert_int_eq(rig_wakes, 0);
        ck_assert(journal_background_step(r.j));
    }
    while (rig_wakes == 0)
        ck_assert(journal_background_step(r.j));
    ck_assert_int_eq(journal_reserve(r.j, 300000, &c), ENG_OK);
    ck_assert_int_eq(journal_reserve(r.j, JOURNAL_BATCH_MAX + 1, &c), ENG_TOO_LARGE);
    rig_free(&r);
}
END_TEST

/* ---- R10 ---- */

START_TEST(r10_a_full_disk_refuses_for_now_and_writes_go_on_when_there_is_room)
{
    struct rig r;
    struct eng_call c;
    struct eng_error err;
    rig_init(&r);
    rig_open(&r);
    file_mem_set_capacity(rig_disk(&r), 16 * 1024);
    rig_append(&r, "a", 100);
    eng_call_init(&c, rig_wake);
    for (int i = 0; i < 3; i++) {
        rig_wakes = 0;
        ck_assert_int_eq(journal_reserve(r.j, 16000, &c), ENG_PENDING);
        while (rig_wakes == 0)
            ck_assert(journal_background_step(r.j));
        ck_assert_int_eq(journal_reserve(r.j, 16000, &c), ENG_DISK_FULL);
    }
    ck_assert(!file_mem_exists(rig_disk(&r), SEGMENT_TMP)); /* nothing half-made is left */
    rig_append(&r, "b", 100);                               /* what fits goes on */
    rig_sync(&r);
    file_mem_set_capacity(rig_disk(&r), 0);
    rig_append(&r, "c", 16000);
    rig_sync(&r);
    journal_error(r.j, &err);
    ck_assert_int_eq(err.result, ENG_OK);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a b c ");
    rig_free(&r);
}
END_TEST

static void fail_for_good(uint32_t kind)
{
    struct rig r;
    struct eng_call c, w;
    struct eng_error err;
    lsn_t synced, end;
    rig_init(&r);
    rig_open(&r);
    synced = rig_append(&r, "a", 100);
    rig_sync(&r);
    file_fault_restart(r.disk, false, &(struct fault_plan){.fail_at = 1, .kinds = kind, .seed = 5});
    end = rig_append(&r, "b", 100);
    eng_call_init(&c, rig_wake);
    eng_call_init(&w, rig_wake);
    rig_wakes = 0;
    ck_assert_int_eq(journal_sync(r.j, end, &c), ENG_PENDING);
    while (rig_wakes == 0)
        (void)journal_background_step(r.j);
    ck_assert_int_eq(journal_sync(r.j, end, &c), ENG_READ_ONLY);
    ck_assert_int_eq(journal_sync(r.j, end, &w), ENG_READ_ONLY); /* and those who come later */
    ck_assert_int_eq(journal_sync(r.j, synced, &w), ENG_OK);     /* what was promised stays so */
    ck_assert_int_eq(journal_reserve(r.j, 10, &w), ENG_READ_ONLY);
    ck_assert(!journal_fits(r.j, 10));
    ck_assert_int_eq(journal_sync_blocking(r.j, end), ENG_READ_ONLY);
    journal_error(r.j, &err);
    ck_assert_int_eq(err.result, ENG_READ_ONLY);
    ck_assert(strstr(err.msg, "journal/") != NULL);
    rig_die(&r, false, 0);
    rig_open(&r);
    ck_assert(strncmp(rig_seen(&r), "a ", 2) == 0);
    rig_append(&r, "c", 10);
    rig_free(&r);
}

START_TEST(r10_a_failed_sync_is_for_good)
{
    fail_for_good(FAULT_DATASYNC);
}
END_TEST

START_TEST(r10_a_failed_write_is_for_good)
{
    fail_for_good(FAULT_PWRITE);
}
END_TEST

START_TEST(r11_timestamps_of_cut_records_count)
{
    struct rig r;
    rig_init(&r);
    write_abc_lose_b(&r);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "a ");
    ck_assert_int_ge(r.last_ts, 77);
    rig_die(&r, true, 1); /* at once again: nothing but START has been written since */
    rig_open(&r);
    ck_assert_int_ge(r.last_ts, 77);
    rig_free(&r);
}
END_TEST

START_TEST(replay_starts_where_the_manifest_says)
{
    struct rig r;
    rig_init(&r);
    rig_open(&r);
    rig_append(&r, "a", 3000);
    r.from = rig_append(&r, "b", 30000);
    rig_append(&r, "c", 3000);
    rig_append(&r, "d", 100000);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "c d ");
    r.from = journal_tail(r.j);
    journal_close(r.j);
    rig_open(&r);
    ck_assert_str_eq(rig_seen(&r), "");
    rig_free(&r);
}
END_TEST

START_TEST(cancelled_calls_are_not_woken)
{
    struct rig r;
    struct eng_call a, b;
    lsn_t end;
    rig_init(&r);
    rig_open(&r);
    end = rig_append(&r, "a", 100);
    eng_call_init(&a, rig_wake);
    eng_call_init(&b, rig_wake);
    ck_assert_int_eq(journal_sync(r.j, end, &a), ENG_PENDING);
    ck_assert_int_eq(journal_sync(r.j, end, &b), ENG_PENDING);
    journal_cancel(r.j, &b);
    rig_wakes = 0;
    ck_assert(journal_background_step(r.j));
    ck_assert_int_eq(rig_wakes, 1);
    ck_assert_int_eq(journal_sync(r.j, end, &a), ENG_OK);
    rig_free(&r);
}
END_TEST

START_TEST(r11_the_start_record_keeps_what_it_overwrites)
{
    struct rig r;
    lsn_t a;
    rig_init(&r);
    rig_open(&r);
    a = rig_append(&r, "a", 100);
    rig_sync(&r);
    rig_append_at(&r, "b", 1, 88);
    rig_write(&r);
    rig_die(&r, false, 0);
    rig_flip(&r, a + RECORD_HEAD); /* b is cut, and START takes its place */
    for (int i = 0; i < 3; i++) {
        rig_open(&r);
        ck_assert_str_eq(rig_seen(&r), "a ");
        ck_assert_int_ge(r.last_ts, 88);
        rig_die(&r, true, (uint64_t)i);
    }
    rig_free(&r);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, r11_the_start_record_keeps_what_it_overwrites);
    tcase_add_test(tc, a_new_journal_is_empty_and_opens_again);
    tcase_add_test(tc, records_come_back_in_order_after_a_clean_stop);
    tcase_add_test(tc, written_records_survive_the_death_of_the_process);
    tcase_add_test(tc, synced_records_survive_power_loss);
    tcase_add_test(tc, batches_run_over_many_segments);
    tcase_add_test(tc, r1_cut_tail_does_not_rise_again);
    tcase_add_test(tc, r1_power_fails_again_inside_the_tail_that_was_cut);
    tcase_add_test(tc, r1_each_start_takes_a_new_epoch_also_above_the_manifests);
    tcase_add_test(tc, a_record_inside_a_payload_does_not_pose_as_one);
    tcase_add_test(tc, r2_synced_leaves_out_what_was_written_during_the_sync);
    tcase_add_test(tc, r2_a_record_carries_only_what_a_finished_sync_published);
    tcase_add_test(tc, r3_bit_flip_in_last_synced_record_is_refused);
    tcase_add_test(tc, r3_bit_flip_in_last_record_is_refused_after_a_clean_stop);
    tcase_add_test(tc, r3_what_the_manifest_knows_counts);
    tcase_add_test(tc, r3_one_mark_a_sync_and_no_sync_a_mark);
    tcase_add_test(tc, r3_a_mark_between_question_and_append_leaves_the_room_promised);
    tcase_add_test(tc, r4_a_header_gives_S_though_its_payload_is_torn);
    tcase_add_test(tc, r4_damage_is_searched_at_every_8th_byte);
    tcase_add_test(tc, r4_damage_above_S_is_a_torn_tail);
    tcase_add_test(tc, r4_a_missing_segment_below_S_is_refused);
    tcase_add_test(tc, r4_a_missing_segment_above_S_is_a_torn_tail);
    tcase_add_test(tc, a_rotten_sector_does_not_cost_the_segment);
    tcase_add_test(tc, a_newer_format_is_refused);
    tcase_add_test(tc, r5_what_replay_found_after_a_failed_sync_survives_power_loss);
    tcase_add_test(tc, released_segments_are_made_over);
    tcase_add_test(tc, r7_a_segment_that_a_backup_links_is_not_made_over);
    tcase_add_test(tc, release_never_takes_the_active_segment_or_what_is_not_synced);
    tcase_add_test(tc, r8_a_batch_in_parts_comes_back_whole);
    tcase_add_test(tc, r8_an_unfinished_batch_is_void_and_stays_so);
    tcase_add_test(tc, r8_a_foreign_last_part_does_not_finish_a_batch);
    tcase_add_test(tc, r8_all_space_of_a_batch_is_ready_before_it_is_appended);
    tcase_add_test(tc, r10_a_full_disk_refuses_for_now_and_writes_go_on_when_there_is_room);
    tcase_add_test(tc, r10_a_failed_sync_is_for_good);
    tcase_add_test(tc, r10_a_failed_write_is_for_good);
    tcase_add_test(tc, r11_timestamps_of_cut_records_count);
    tcase_add_test(tc, replay_starts_where_the_manifest_says);
    tcase_add_test(tc, cancelled_calls_are_not_woken);
}
TEST_MAIN("storage/journal", add_tests)
