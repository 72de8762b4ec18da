/* What every unit test program needs: libcheck, and a main that reports in the one form that the runners add up. */
#ifndef OV_TEST_H
#define OV_TEST_H

#include <check.h>

/* Runs one suite named `name` whose tests `add` puts into the test case, prints "suite NAME: N passed, N failed" as the last
 * line and returns the exit status of main: 0 if none failed. Each test runs in a process of its own, at most
 * CK_DEFAULT_TIMEOUT seconds (30 unless set); CK_FORK=no and CK_RUN_CASE help in a debugger. */
int test_main(const char *name, void (*add)(TCase *tc));

/* The main of a test program:
 *     static void add_tests(TCase *tc) { tcase_add_test(tc, replay_cuts_a_torn_tail); }
 *     TEST_MAIN("storage/journal", add_tests) */
#define TEST_MAIN(name, add)             \
    int main(void)                       \
    {                                    \
        return test_main((name), (add)); \
    }

#endif
