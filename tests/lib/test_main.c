/* The main of every unit test program. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/test.h"

int test_main(const char *name, void (*add)(TCase *tc))
{
    setenv("CK_DEFAULT_TIMEOUT", "30", 0); /* read when the test case is made */
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create(name);
    add(tc);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner), run = srunner_ntests_run(runner);
    srunner_free(runner);
    printf("suite %s: %d passed, %d failed\n", name, run - failed, failed);
    return failed || run == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
