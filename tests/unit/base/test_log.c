#include "server/base/log.h"

#include <bson/bson.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test.h"

static char dir[] = "/tmp/octavo-log-XXXXXX", path[64];

static void open_log(uint64_t rotate_bytes, bool append)
{
    if (!path[0]) {
        ck_assert_ptr_nonnull(mkdtemp(dir));
        snprintf(path, sizeof(path), "%s/o.log", dir);
    }
    ck_assert_int_eq(log_open(&(struct log_options){.path = path, .rotate_bytes = rotate_bytes, .append = append}), 0);
}

/* Closes the log, counts the files and removes them with their folder. */
static int close_log(void)
{
    int files = 0;
    char file[512];
    log_close();
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
        unlink(file);
        files++;
    }
    closedir(d);
    rmdir(dir);
    return files;
}

static char *read_log(void)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

START_TEST(a_line_is_json_in_mongods_shape)
{
    char q[64];
    bson_t doc;
    bson_iter_t it, sub;
    bson_error_t error;
    open_log(0, true);
    log_set_thread_name("loop7");
    log_line(LOG_WARNING, "NETWORK", 4711, "it \"failed\"\n", "\"port\":%d,\"name\":%s", 27017,
             log_quote("a\"b", 3, q, sizeof(q)));
    char *text = read_log();
    ck_assert_int_eq(text[strlen(text) - 1], '\n');
    char *zone = strstr(text, "+00:00");
    ck_assert_ptr_nonnull(zone);
    *zone = 'Z'; /* the form that libbson reads */
    memmove(zone + 1, zone + 6, strlen(zone + 6) + 1);
    ck_assert_msg(bson_init_from_json(&doc, text, -1, &error), "%s: %s", error.message, text);
    ck_assert(bson_iter_init_find(&it, &doc, "t") && BSON_ITER_HOLDS_DATE_TIME(&it));
    ck_assert(bson_iter_find(&it, "s") && !strcmp(bson_iter_utf8(&it, NULL), "W"));
    ck_assert(bson_iter_find(&it, "c") && !strcmp(bson_iter_utf8(&it, NULL), "NETWORK"));
    ck_assert(bson_iter_find(&it, "id") && bson_iter_int32(&it) == 4711);
    ck_assert(bson_iter_find(&it, "ctx") && !strcmp(bson_iter_utf8(&it, NULL), "loop7"));
    ck_assert(bson_iter_find(&it, "msg") && !strcmp(bson_iter_utf8(&it, NULL), "it \"failed\"\n"));
    ck_assert(bson_iter_find(&it, "attr") && bson_iter_recurse(&it, &sub));
    ck_assert(bson_iter_find(&sub, "port") && bson_iter_int32(&sub) == 27017);
    ck_assert(bson_iter_find(&sub, "name") && !strcmp(bson_iter_utf8(&sub, NULL), "a\"b"));
    bson_destroy(&doc);
    close_log();
}
END_TEST

START_TEST(verbosity_decides_about_debug_lines)
{
    open_log(0, true);
    log_line(LOG_DEBUG1, "QUERY", 1, "silent", NULL);
    log_set_verbosity(1);
    log_line(LOG_DEBUG1, "QUERY", 2, "spoken", NULL);
    log_line(LOG_DEBUG2, "QUERY", 3, "silent", NULL);
    ck_assert(log_enabled(LOG_DEBUG1) && !log_enabled(LOG_DEBUG2) && log_enabled(LOG_INFO));
    char *text = read_log();
    ck_assert_ptr_null(strstr(text, "silent"));
    ck_assert_ptr_nonnull(strstr(text, "spoken"));
    close_log();
}
END_TEST

START_TEST(quoting_is_valid_json_for_any_bytes_and_any_room)
{
    char in[300], out[1000];
    bson_t doc;
    for (int i = 0; i < 300; i++)
        in[i] = (char)i;
    memcpy(in + 256, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x99\xed\xa0\x80\xc0\xaf",
           14); /* é € octopus surrogate overlong */
    for (size_t room = 3; room < sizeof(out); room++) {
        char json[1100];
        log_quote(in, 270, out, room);
        ck_assert_uint_lt(strlen(out), room);
        snprintf(json, sizeof(json), "{\"x\":%s}", out);
        ck_assert_msg(bson_init_from_json(&doc, json, -1, NULL), "%s", json);
        bson_destroy(&doc);
    }
    ck_assert_str_eq(log_quote("\xc3\xa9\xff", 3, out, sizeof(out)), "\"\xc3\xa9\\ufffd\"");
    ck_assert_str_eq(log_quote("\xed\xa0\x80", 3, out, sizeof(out)), "\"\\ufffd\\ufffd\\ufffd\"");
    ck_assert_str_eq(log_quote("abc", 3, out, 2), "");
}
END_TEST

START_TEST(the_file_rotates_by_size_and_loses_nothing)
{
    open_log(2000, true);
    for (int i = 0; i < 40; i++)
        log_line(LOG_INFO, "CONTROL", 9, "filling the file", NULL);
    int lines = 0;
    for (const char *p = read_log(); (p = strchr(p, '\n')); p++)
        lines++;
    ck_assert(lines > 0 && lines < 20);
    ck_assert_int_ge(close_log(), 3);
}
END_TEST

START_TEST(an_existing_file_is_renamed_unless_appending)
{
    open_log(0, true);
    log_line(LOG_INFO, "CONTROL", 1, "first", NULL);
    open_log(0, true);
    ck_assert_ptr_nonnull(strstr(read_log(), "first"));
    open_log(0, false);
    ck_assert_str_eq(read_log(), "");
    open_log(0, false); /* in the same second: a name of its own */
    ck_assert_int_eq(close_log(), 3);
}
END_TEST

START_TEST(reopening_follows_logrotate)
{
    char moved[80];
    open_log(0, true);
    log_line(LOG_INFO, "CONTROL", 1, "before", NULL);
    snprintf(moved, sizeof(moved), "%s.1", path);
    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert_int_eq(log_reopen(), 0);
    log_line(LOG_INFO, "CONTROL", 2, "after", NULL);
    ck_assert_ptr_null(strstr(read_log(), "before"));
    ck_assert_ptr_nonnull(strstr(read_log(), "after"));
    ck_assert_int_eq(close_log(), 2);
}
END_TEST

START_TEST(a_path_that_cannot_be_opened_is_reported)
{
    ck_assert_int_eq(log_open(&(struct log_options){.path = "/nowhere/at/all/o.log", .append = true}), ENOENT);
}
END_TEST

struct seen {
    int n;
    char first[64], last[64];
};

static void look(void *arg, const char *line, size_t n)
{
    struct seen *s = arg;
    const char *id = memmem(line, n, "\"id\":", 5);
    ck_assert_int_eq(line[n - 1], '}');
    snprintf(s->n++ ? s->last : s->first, 64, "%.*s", (int)(strchr(id, ',') - id), id);
}

START_TEST(the_newest_lines_are_kept_oldest_first)
{
    struct seen s = {0}, w = {0};
    open_log(0, true);
    log_line(LOG_WARNING, "CONTROL", 1, "a start-up warning", NULL);
    log_startup_done();
    log_line(LOG_WARNING, "CONTROL", 2, "a later warning", NULL);
    for (int i = 3; i <= 1500; i++)
        log_line(LOG_INFO, "CONTROL", i, "line", NULL);
    ck_assert_uint_eq(log_recent(false, look, &s), 1500);
    ck_assert_int_eq(s.n, 1024);
    ck_assert_str_eq(s.first, "\"id\":477");
    ck_assert_str_eq(s.last, "\"id\":1500");
    ck_assert_uint_eq(log_recent(true, look, &w), 1);
    ck_assert_str_eq(w.first, "\"id\":1");
    close_log();
}
END_TEST

START_TEST(long_attributes_are_not_cut)
{
    open_log(0, true);
    log_line(LOG_INFO, "COMMAND", 5, "long", "\"x\":\"%0100000d\"", 1);
    ck_assert_uint_gt(strlen(read_log()), 100000);
    ck_assert_ptr_nonnull(strstr(read_log(), "1\"}}\n"));
    close_log();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_line_is_json_in_mongods_shape);
    tcase_add_test(tc, verbosity_decides_about_debug_lines);
    tcase_add_test(tc, quoting_is_valid_json_for_any_bytes_and_any_room);
    tcase_add_test(tc, the_file_rotates_by_size_and_loses_nothing);
    tcase_add_test(tc, an_existing_file_is_renamed_unless_appending);
    tcase_add_test(tc, reopening_follows_logrotate);
    tcase_add_test(tc, a_path_that_cannot_be_opened_is_reported);
    tcase_add_test(tc, the_newest_lines_are_kept_oldest_first);
    tcase_add_test(tc, long_attributes_are_not_cut);
}

TEST_MAIN("base/log", add_tests)
