/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "base/fs.h"
#include "run/journal.h"
#include "scratch.h"

static const char *path_of(struct arena *arena, void **state)
{
    return fs_join(arena, *state, "journal.jsonl");
}

static void write_three(struct arena *arena, const char *path)
{
    CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
    struct journal_records records = {0};
    struct err err = {0};
    struct journal_record list[] = {
        {.state = J_PLANNED, .note = STR_LIT("a \"note\"\n")},
        {.state = J_STARTED, .case_id = STR_LIT("m/f/fp32/n1g1/bs1"), .repeat = 1, .attempt = 1},
        {.state = J_FINISHED,
         .case_id = STR_LIT("m/f/fp32/n1g1/bs1"),
         .repeat = 1,
         .attempt = 1,
         .exit_status = 137,
         .log_bytes = 12},
    };
    assert_int_equal(journal_open(&journal, arena, path, clock_system(), &records, &err), 0);
    assert_int_equal(records.n, 0);
    for (size_t idx = 0; idx < ARRAY_LEN(list); idx++) {
        assert_int_equal(journal_append(&journal, &list[idx], &err), 0);
    }
}

static void records_come_back_as_written(void **state)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct journal_records records = {0};
    struct err err = {0};
    const char *path = path_of(&arena, state);
    assert_int_equal(journal_read(&arena, path, &records, &err), 0); /* none yet */
    assert_int_equal(records.n, 0);
    write_three(&arena, path);
    assert_int_equal(journal_read(&arena, path, &records, &err), 0);
    assert_int_equal(records.n, 3);
    assert_true(str_eq_z(records.items[0].note, "a \"note\"\n"));
    assert_int_equal(records.items[2].state, J_FINISHED);
    assert_int_equal(records.items[2].exit_status, 137);
    assert_null(records.items[0].case_id.ptr);
}

/* Cut anywhere: what is left is a beginning of what was written, and more can be appended after it. */
static void every_cut_leaves_whole_records(void **state)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct str text;
    size_t n_before = 0;
    const char *path = path_of(&arena, state);
    write_three(&arena, path);
    assert_int_equal(fs_read(&arena, path, 1 << 20, &text, &err), 0);
    for (size_t len = 0; len <= text.len; len++) {
        CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
        struct journal_records records = {0};
        size_t n_lines = 0;
        for (size_t idx = 0; idx < len; idx++) {
            n_lines += text.ptr[idx] == '\n';
        }
        assert_int_equal(fs_write_atomic(path, str_sub(text, 0, len), &err), 0);
        assert_int_equal(journal_open(&journal, &arena, path, clock_system(), &records, &err), 0);
        assert_int_equal(records.n, n_lines);
        assert_true(records.n >= n_before);
        n_before = records.n;
        if (len % 37 == 0) {
            const struct journal_record more = {.state = J_RESUMED};
            assert_int_equal(journal_append(&journal, &more, &err), 0);
            assert_int_equal(journal_read(&arena, path, &records, &err), 0);
            assert_int_equal(records.n, n_lines + 1);
            assert_int_equal(records.items[n_lines].state, J_RESUMED);
        }
    }
}

static void every_flipped_bit_of_an_earlier_record_is_seen(void **state)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct str text;
    const char *path = path_of(&arena, state);
    size_t first = 0;
    write_three(&arena, path);
    assert_int_equal(fs_read(&arena, path, 1 << 20, &text, &err), 0);
    first = (size_t)((const char *)memchr(text.ptr, '\n', text.len) - text.ptr);
    char *changed = arena_strndup(&arena, text.ptr, text.len);
    for (size_t idx = 0; idx <= first; idx++) {
        struct journal_records records = {0};
        struct err found = {0};
        changed[idx] = (char)(changed[idx] ^ 1);
        assert_int_equal(fs_write_atomic(path, (struct str){changed, text.len}, &err), 0);
        assert_int_equal(journal_read(&arena, path, &records, &found), -1);
        assert_int_equal(found.code, ERR_INTEGRITY);
        changed[idx] = text.ptr[idx];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_come_back_as_written, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(every_cut_leaves_whole_records, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(every_flipped_bit_of_an_earlier_record_is_seen,
                                        scratch_make, scratch_remove),
    };
    return cmocka_run_group_tests_name("journal", tests, scratch_group_start, scratch_group_end);
}
