/* SPDX-License-Identifier: Apache-2.0 */
/* A program of unit tests. TEST(what_holds) { ... } defines a test and enters it, so that its name is said once; the program's last line, UNIT_MAIN, runs
   them in the order of the file. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

static struct CMUnitTest unit_tests[64]; /* cmocka passes over entries without a name */
static size_t unit_n_tests;

#define UNIT_TEST(test, set_up, tear_down, parameter)                                              \
    static void test(void **parameter);                                                            \
    __attribute__((constructor)) static void enter_##test(void)                                    \
    {                                                                                              \
        ASSERT(unit_n_tests < ARRAY_LEN(unit_tests));                                              \
        unit_tests[unit_n_tests++] =                                                               \
            (struct CMUnitTest)cmocka_unit_test_setup_teardown(test, set_up, tear_down);           \
    }                                                                                              \
    static void test(void **parameter UNUSED)
#define TEST(test) UNIT_TEST(test, NULL, NULL, unit_no_state)
/* With what is done before and after this test alone, or NULL; `state` is cmocka's. */
#define TEST_WITH(test, set_up, tear_down) UNIT_TEST(test, set_up, tear_down, state)

static inline int unit_run(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(unit_tests, set_up, tear_down);
}

/* With what is done once before and after all of them, or NULL. */
#define UNIT_MAIN(set_up, tear_down)                                                               \
    int main(void)                                                                                 \
    {                                                                                              \
        return unit_run(set_up, tear_down);                                                        \
    }

#endif
