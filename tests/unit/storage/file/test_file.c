/* One contract, two disks: the operating system's files and the ones in memory behave alike; then what only the disk in
 * memory does. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/file_fault.h"
#include "tests/lib/test.h"

static void count_names(void *arg, const char *name)
{
    ++*(int *)arg;
    ck_assert(strchr(name, '/') == NULL);
}

static void contract(const struct file_ops *fs)
{
    struct file *f, *g;
    char p[16];
    size_t got;
    uint64_t size;
    uint32_t links;
    int n = 0;

    ck_assert_int_eq(fs->open(fs, "none", 0, &f), ENOENT);
    ck_assert_ptr_null(f);
    ck_assert_int_eq(fs->open(fs, "sub/a", FILE_CREATE, &f), ENOENT);
    ck_assert_int_eq(fs->mkdir(fs, "sub"), 0);
    ck_assert_int_eq(fs->mkdir(fs, "sub"), 0);
    ck_assert_int_eq(fs->open(fs, "sub/a", FILE_CREATE, &f), 0);
    ck_assert_int_eq(fs->open(fs, "sub/a", FILE_CREATE | FILE_EXCL, &g), EEXIST);
    ck_assert_int_eq(fs->mkdir(fs, "sub/a"), ENOTDIR);
    ck_assert_int_eq(fs->pwrite(f, "hello", 5, 3), 0);
    ck_assert_int_eq(fs->size(f, &size), 0);
    ck_assert_int_eq(size, 8);
    ck_assert_int_eq(fs->pread(f, p, sizeof(p), 0, &got), 0);
    ck_assert_int_eq(got, 8);
    ck_assert(memcmp(p, "\0\0\0hello", 8) == 0);
    ck_assert_int_eq(fs->pread(f, p, sizeof(p), 100, &got), 0);
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(fs->truncate(f, 4), 0);
    ck_assert_int_eq(fs->allocate(f, 6), 0);
    ck_assert_int_eq(fs->pread(f, p, sizeof(p), 3, &got), 0);
    ck_assert(got == 3 && memcmp(p, "h\0\0", 3) == 0);
    ck_assert_int_eq(fs->allocate(f, 2), 0); /* never shrinks */
    ck_assert_int_eq(fs->size(f, &size), 0);
    ck_assert_int_eq(size, 6);
    ck_assert_int_eq(fs->datasync(f), 0);
    ck_assert_int_eq(fs->link_count(f, &links), 0);
    ck_assert_int_eq(links, 1);
    fs->close(f);

    ck_assert_int_eq(fs->open(fs, "sub/b", FILE_CREATE, &f), 0);
    ck_assert_int_eq(fs->pwrite(f, "b", 1, 0), 0);
    ck_assert_int_eq(fs->rename(fs, "sub/b", "sub/a"), 0); /* replaces */
    ck_assert_int_eq(fs->rename(fs, "sub/b", "sub/c"), ENOENT);
    ck_assert_int_eq(fs->list(fs, "sub", count_names, &n), 0);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(fs->list(fs, "nowhere", count_names, &n), ENOENT);
    ck_assert_int_eq(fs->sync_dir(fs, "sub"), 0);
    ck_assert_int_eq(fs->sync_dir(fs, ""), 0);
    ck_assert_int_eq(fs->remove(fs, "sub/a"), 0);
    ck_assert_int_eq(fs->remove(fs, "sub/a"), ENOENT);
    ck_assert_int_eq(fs->pread(f, p, 1, 0, &got), 0); /* an open file outlives its name */
    ck_assert(got == 1 && *p == 'b');
    fs->close(f);
    fs->close(NULL);

    ck_assert_int_eq(fs->open(fs, "ro", FILE_CREATE, &f), 0);
    fs->close(f);
    ck_assert_int_eq(fs->open(fs, "ro", FILE_READONLY, &f), 0);
    ck_assert_int_eq(fs->pwrite(f, "x", 1, 0), EBADF);
    fs->close(f);
    ck_assert_int_eq(fs->remove(fs, "ro"), 0);
}

START_TEST(posix_files_keep_the_contract)
{
    char dir[] = "/tmp/octavo-file-XXXXXX", cmd[64];
    const struct file_ops *fs;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    fs = file_posix_new(dir);
    contract(fs);
    file_posix_free(fs);
    snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
    ck_assert_int_eq(system(cmd), 0);
}
END_TEST

START_TEST(a_missing_data_directory_shows_at_the_first_call)
{
    const struct file_ops *fs = file_posix_new("/nonexistent/octavo");
    struct file *f;
    ck_assert_int_eq(fs->open(fs, "a", FILE_CREATE, &f), ENOENT);
    ck_assert_int_eq(fs->sync_dir(fs, ""), ENOENT);
    file_posix_free(fs);
}
END_TEST

START_TEST(memory_files_keep_the_contract)
{
    struct file_mem *m = file_mem_new();
    contract(file_mem_ops(m));
    file_mem_free(m);
}
END_TEST

START_TEST(faulty_files_without_faults_keep_the_contract)
{
    struct file_fault *d = file_fault_new(&(struct fault_plan){0});
    contract(file_fault_ops(d));
    ck_assert(!file_fault_fired(d));
    file_fault_free(d);
}
END_TEST

/* Over many seeds: is it always so, sometimes, never? */
START_TEST(power_cuts_keep_lose_and_tear)
{
    int kept = 0, lost = 0, torn = 0, name_kept = 0, renamed = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct file_mem *m = file_mem_new();
        const struct file_ops *fs = file_mem_ops(m);
        struct file *f;
        char buf[512];
        const uint8_t *p;
        size_t n;
        memset(buf, 'o', sizeof(buf));
        ck_assert_int_eq(fs->open(fs, "a", FILE_CREATE, &f), 0);
        ck_assert_int_eq(fs->pwrite(f, buf, sizeof(buf), 0), 0);
        ck_assert_int_eq(fs->datasync(f), 0);
        ck_assert_int_eq(fs->sync_dir(fs, ""), 0);
        memset(buf, 'n', sizeof(buf));
        ck_assert_int_eq(fs->pwrite(f, buf, sizeof(buf), 0), 0);
        fs->close(f);
        ck_assert_int_eq(fs->open(fs, "b", FILE_CREATE, &f), 0);
        fs->close(f);
        ck_assert_int_eq(fs->rename(fs, "a", "c"), 0);
        file_mem_crash(m, seed);
        name_kept += file_mem_exists(m, "b");
        renamed += file_mem_exists(m, "c");
        ck_assert(file_mem_exists(m, "a") != file_mem_exists(m, "c")); /* a rename is one step */
        p = file_mem_get(m, file_mem_exists(m, "a") ? "a" : "c", &n);
        ck_assert_int_eq(n, 512);
        kept += p[0] == 'n' && p[511] == 'n';
        lost += p[0] == 'o' && p[511] == 'o';
        torn += p[0] == 'n' && p[511] == 'o';
        file_mem_free(m);
    }
    ck_assert_int_eq(kept + lost + torn, 400);
    ck_assert(kept > 50 && lost > 50 && torn > 5);
    ck_assert(name_kept > 50 && name_kept < 350 && renamed > 50 && renamed < 350);
}
END_TEST

START_TEST(a_failed_sync_leaves_bytes_that_later_syncs_do_not_save)
{
    int lost = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct file_fault *d =
            file_fault_new(&(struct fault_plan){.fail_at = 1, .kinds = FAULT_DATASYNC, .seed = seed});
        const struct file_ops *fs = file_fault_ops(d);
        struct file *f;
        const uint8_t *p;
        size_t n;
        char c;
        ck_assert_int_eq(fs->open(fs, "a", FILE_CREATE, &f), 0);
        ck_assert_int_eq(fs->sync_dir(fs, ""), 0);
        ck_assert_int_eq(fs->pwrite(f, "a", 1, 0), 0);
        ck_assert_int_eq(fs->datasync(f), EIO);
        ck_assert_int_eq(fs->datasync(f), 0); /* the lie */
        ck_assert_int_eq(fs->pread(f, &c, 1, 0, &n), 0);
        ck_assert_int_eq(c, 'a');
        fs->close(f);
        (void)file_fault_survivor(d);
        p = file_mem_get(file_fault_disk(d), "a", &n);
        lost += p[0] != 'a';
        file_fault_free(d);
    }
    ck_assert(lost > 20 && lost < 100);
}
END_TEST

START_TEST(a_full_memory_disk_takes_no_more)
{
    struct file_mem *m = file_mem_new();
    const struct file_ops *fs = file_mem_ops(m);
    struct file *f;
    file_mem_set_capacity(m, 1000);
    ck_assert_int_eq(fs->open(fs, "a", FILE_CREATE, &f), 0);
    ck_assert_int_eq(fs->allocate(f, 1001), ENOSPC);
    ck_assert_int_eq(fs->allocate(f, 1000), 0);
    ck_assert_int_eq(fs->pwrite(f, "x", 1, 999), 0); /* room that was allocated */
    ck_assert_int_eq(fs->pwrite(f, "x", 1, 1000), ENOSPC);
    fs->close(f);
    file_mem_free(m);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, posix_files_keep_the_contract);
    tcase_add_test(tc, a_missing_data_directory_shows_at_the_first_call);
    tcase_add_test(tc, memory_files_keep_the_contract);
    tcase_add_test(tc, faulty_files_without_faults_keep_the_contract);
    tcase_add_test(tc, power_cuts_keep_lose_and_tear);
    tcase_add_test(tc, a_failed_sync_leaves_bytes_that_later_syncs_do_not_save);
    tcase_add_test(tc, a_full_memory_disk_takes_no_more);
}
TEST_MAIN("storage/file", add_tests)
