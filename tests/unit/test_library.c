/* SPDX-License-Identifier: Apache-2.0 */
/* base/library: a library that is opened when it is needed. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "base/library.h"

/* zlib, whose functions nothing here is linked with. */
#define FUNCTIONS(X)                                                                               \
    X(VALUE, const char *, zlibVersion, (void), ())                                                \
    X(FREE_VALUE, int, inflateEnd, (void *stream), (stream))

const char *zlibVersion(void);
int inflateEnd(void *stream);

LIBRARY_DEFINE("libz.so.1", FUNCTIONS)

static void it_is_opened_when_it_is_needed(void **state UNUSED)
{
    struct err err = {0};
    assert_false(LIBRARY_IS_OPEN(zlibVersion));
    assert_int_equal(inflateEnd(NULL), 0); /* nothing can be there to be freed */
    assert_false(LIBRARY_IS_OPEN(inflateEnd));
    assert_int_equal(library_open(&LIBRARY, &err), 0);
    assert_true(LIBRARY_IS_OPEN(zlibVersion));
    assert_true(LIBRARY_IS_OPEN(inflateEnd));
    assert_int_equal(zlibVersion()[0], '1');
    assert_int_equal(inflateEnd(NULL), -2); /* Z_STREAM_ERROR: the library's own answer */
    assert_int_equal(library_open(&LIBRARY, &err), 0);
}

static void one_that_is_not_there_is_named(void **state UNUSED)
{
    static const char *const NAMES[] = {"start"};
    _Atomic(library_fn) found[ARRAY_LEN(NAMES)] = {NULL};
    const struct library library = {"libreperf-none.so.3", NAMES, found, ARRAY_LEN(NAMES)};
    struct err err = {0};
    assert_int_equal(library_open(&library, &err), -1);
    assert_int_equal(err.code, ERR_INTERNAL);
    assert_non_null(strstr(err.msg, "libreperf-none.so.3: cannot open"));
}

static void one_that_lacks_a_function_is_not_opened(void **state UNUSED)
{
    static const char *const NAMES[] = {"zlibVersion", "zlib_no_such"};
    _Atomic(library_fn) found[ARRAY_LEN(NAMES)] = {NULL, NULL};
    const struct library library = {"libz.so.1", NAMES, found, ARRAY_LEN(NAMES)};
    struct err err = {0};
    assert_int_equal(library_open(&library, &err), -1);
    assert_string_equal(err.msg, "libz.so.1 on this machine has no zlib_no_such");
    assert_null(library_at(&library, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_opened_when_it_is_needed),
        cmocka_unit_test(one_that_is_not_there_is_named),
        cmocka_unit_test(one_that_lacks_a_function_is_not_opened),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
