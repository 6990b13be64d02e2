/* SPDX-License-Identifier: Apache-2.0 */
/* A program of unit tests. TEST(what_holds) { ... } defines a test and enters it, so that its name is said once; main runs them in the order of the
   file. */
#pragma once

#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"

static struct CMUnitTest unit_tests[64]; /* cmocka passes over entries without a name */
static size_t unit_n_tests;

/* Each test begins with both empty: what its calls report, and what lives until it ends. */
static struct err unit_err;
static struct arena unit_arena;
#define ERR   (&unit_err)
#define ARENA (&unit_arena)

static inline void unit_begin(void)
{
    unit_err = (struct err){0};
    arena_release(&unit_arena);
}

/* for (EACH(row, ROWS)): over the rows of a table; where a test fails within, its end tells which row it was. */
static size_t unit_row; /* from 1 on; 0: none */
#define EACH(row, rows)                                                                            \
    __typeof__(&(rows)[0]) row = (rows);                                                           \
    (unit_row = row < (rows) + ARRAY_LEN(rows) ? (size_t)(row - (rows)) + 1 : 0) != 0;             \
    row++

static inline void unit_end(const char *test)
{
    if (unit_row > 0) {
        print_error("%s: at row %zu, counted from 0\n", test, unit_row - 1);
    }
    unit_row = 0;
}

/* A document as tests write it, with ' for "; one that has a " is as it should be. */
static inline char *json_text(const char *text)
{
    char *json = arena_strndup(&unit_arena, text, strlen(text));
    bool is_json = strchr(text, '"') != NULL;
    for (char *at = json; !is_json && (at = strchr(at, '\'')) != NULL;) {
        *at = '"';
    }
    return json;
}

static inline void unit_passes(int status, const char *call, const char *file, int line)
{
    if (status != 0 || unit_err.code != ERR_NONE) {
        print_error("%s: %d, \"%s\"\n", call, status, unit_err.msg);
        _fail(file, line);
    }
}

#define ERR_ANY ERR_CODE_COUNT
static inline void unit_fails(int status, enum err_code code, const char *call, const char *file,
                              int line)
{
    if (status != -1 || unit_err.code == ERR_NONE || (code != ERR_ANY && unit_err.code != code)) {
        print_error("%s: %d, error %d: \"%s\"\n", call, status, (int)unit_err.code, unit_err.msg);
        _fail(file, line);
    }
}

/* A call that reports into ERR, which is emptied before: it returns 0, or -1 with this code (ERR_ANY: some code); SAYS: and with a text that
   holds this one. */
#define PASSES(call) (unit_err = (struct err){0}, unit_passes((call), #call, __FILE__, __LINE__))
#define FAILS(call, code)                                                                          \
    (unit_err = (struct err){0}, unit_fails((call), (code), #call, __FILE__, __LINE__))
#define SAYS(text)                                                                                 \
    do {                                                                                           \
        if (!strstr(unit_err.msg, (text))) {                                                       \
            fail_msg("\"%s\" does not say \"%s\"", unit_err.msg, (text));                          \
        }                                                                                          \
    } while (0)

#define FAILS_WITH(call, code, text)                                                               \
    do {                                                                                           \
        FAILS(call, code);                                                                         \
        SAYS(text);                                                                                \
    } while (0)

/* The text with its first FROM become TO, in ARENA. */
static inline char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at) {
        fail_msg("\"%s\" is not in \"%s\"", from, text);
    }
    return arena_printf(ARENA, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

#define UNIT_TEST(test, set_up, tear_down, parameter)                                              \
    static void test(void **parameter);                                                            \
    static void begin_##test(void **state)                                                         \
    {                                                                                              \
        unit_begin();                                                                              \
        test(state);                                                                               \
        unit_row = 0;                                                                              \
    }                                                                                              \
    static int end_##test(void **state)                                                            \
    {                                                                                              \
        static const CMFixtureFunction after = tear_down;                                          \
        unit_end(#test);                                                                           \
        return after ? after(state) : 0;                                                           \
    }                                                                                              \
    __attribute__((constructor)) static void enter_##test(void)                                    \
    {                                                                                              \
        ASSERT(unit_n_tests < ARRAY_LEN(unit_tests));                                              \
        unit_tests[unit_n_tests++] =                                                               \
            (struct CMUnitTest){#test, begin_##test, set_up, end_##test, NULL};                    \
    }                                                                                              \
    static void test(void **parameter UNUSED)
#define TEST(test) UNIT_TEST(test, NULL, NULL, unit_no_state)
/* With what is done before and after this test alone, or NULL; `state` is cmocka's. */
#define TEST_WITH(test, set_up, tear_down) UNIT_TEST(test, set_up, tear_down, state)

/* What is done once before and after all tests of a program, which needs no such line where that is nothing. */
static CMFixtureFunction unit_set_up, unit_tear_down;
#define UNIT_MAIN(set_up, tear_down)                                                               \
    __attribute__((constructor)) static void enter_fixtures(void)                                  \
    {                                                                                              \
        unit_set_up = set_up;                                                                      \
        unit_tear_down = tear_down;                                                                \
    }

static inline int unit_run(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(unit_tests, unit_set_up, unit_tear_down);
}

#ifndef UNIT_OWN_MAIN
int main(void)
{
    return unit_run();
}
#endif
