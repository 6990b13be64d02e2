/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "store/lock_file.h"
#include "store/noun.h"
#include "tests/unit/scratch.h"

#define DATE "2026-11-21T10:00:00.000Z"

static struct lock one_file(uint8_t first)
{
    static struct lock_item item[2];
    struct lock lock = {.kind = LOCK_DATASET,
                        .id = STR_LIT("d.1"),
                        .items = item,
                        .n_items = 1,
                        .n_files = 3,
                        .file_bytes = 12};
    item[0] = (struct lock_item){.name = STR_LIT("a.tar"),
                                 .size_bytes = 5,
                                 .has_md5 = true,
                                 .has_sha256 = true,
                                 .piece_bytes = 65536,
                                 .pieces_path = STR_LIT("d.1.a.tar.pieces"),
                                 .url = STR_LIT("https://a.example/a.tar"),
                                 .date = STR_LIT(DATE)};
    memset(item[0].md5, 7, MD5_BYTES);
    memset(item[0].sha256, first, SHA256_BYTES);
    return lock;
}

static void a_lock_is_written_and_read(void **state)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct lock lock = one_file(9);
    struct lock read = {0};
    bool is_new = false;
    assert_int_equal(lock_read(&arena, *state, LOCK_DATASET, "d.1", &read, &err), -1);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    err = (struct err){0};
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), 0);
    assert_true(is_new);
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), 0);
    assert_false(is_new);
    assert_int_equal(lock_read(&arena, *state, LOCK_DATASET, "d.1", &read, &err), 0);
    assert_int_equal(read.n_items, 1);
    assert_int_equal(read.items[0].size_bytes, 5);
    assert_int_equal(read.items[0].sha256[31], 9);
    assert_string_equal(read.items[0].date.ptr, DATE);
    assert_null(read.items[0].commit.ptr);
    assert_false(read.has_list);
    assert_int_equal(read.n_files, 3);
    /* What comes later is added; what is there already is not changed. */
    lock.has_list = true;
    memset(lock.list_sha256, 4, SHA256_BYTES);
    lock.items[0].date = STR_LIT("2027-01-01T00:00:00.000Z");
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), 0);
    assert_true(is_new);
    assert_int_equal(lock_read(&arena, *state, LOCK_DATASET, "d.1", &read, &err), 0);
    assert_true(read.has_list);
    assert_string_equal(read.items[0].date.ptr, DATE);
}

static void drift_is_an_integrity_error(void **state)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct lock lock = one_file(9);
    bool is_new = false;
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), 0);
    lock = one_file(8);
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "a.tar: locked on 2026-11-21 with SHA-256 0909"));
    assert_non_null(strstr(err.msg, "found 0808"));
    err = (struct err){0};
    lock = one_file(9);
    lock.items[0].size_bytes = 6;
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), -1);
    assert_non_null(strstr(err.msg, "with 5 bytes, found 6"));
    err = (struct err){0};
    lock = one_file(9);
    lock.items[0].has_sha256 = false;
    lock.items[0].md5[0] = 6;
    assert_int_equal(lock_settle(&arena, *state, &lock, &is_new, &err), -1);
    assert_non_null(strstr(err.msg, "MD5"));
}

static void sources_drift_by_commit(void **state UNUSED)
{
    struct err err = {0};
    struct lock_item known = {.size_bytes = -1,
                              .commit = STR_LIT("0123456789abcdef0123456789abcdef01234567"),
                              .date = STR_LIT(DATE)};
    struct lock_item found = known;
    assert_int_equal(lock_check_item(&known, &found, "x", &err), 0);
    found.tree = STR_LIT("1123456789abcdef0123456789abcdef01234567");
    assert_int_equal(lock_check_item(&known, &found, "x", &err), 0);
    found.commit = found.tree;
    assert_int_equal(lock_check_item(&known, &found, "x", &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
}

static void a_lock_fills_a_description(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct lock lock = one_file(9);
    struct dataset_file file = {.name = STR_LIT("a.tar"), .size_bytes = -1};
    struct dataset dataset = {.id = STR_LIT("d.1"), .files = &file, .n_files = 1};
    assert_int_equal(lock_merge_dataset(&arena, &lock, &dataset, &err), 0);
    assert_int_equal(dataset.files[0].size_bytes, 5);
    assert_true(dataset.files[0].has_sha256);
    assert_int_equal(dataset.files[0].sha256[0], 9);
    assert_int_equal(dataset.files[0].piece_bytes, 65536);
    assert_true(dataset.files[0].pieces_are_locks);
    assert_int_equal(file.size_bytes, -1); /* the caller's own are not written to */
    dataset.files[0].size_bytes = 6;
    assert_int_equal(lock_merge_dataset(&arena, &lock, &dataset, &err), -1);
    assert_int_equal(err.code, ERR_MANIFEST);
    assert_non_null(strstr(err.msg, "the lock of d.1 contradicts its description"));
}

static void a_bad_lock_is_refused(void **state)
{
    static const char *const BAD[] = {
        "{}",
        "{\"schema_version\":1,\"kind\":\"dataset\",\"id\":\"other\",\"items\":[],"
        "\"list_sha256\":null,\"files\":null,\"file_bytes\":null}",
        "{\"schema_version\":1,\"kind\":\"image\",\"id\":\"d.1\",\"items\":[],"
        "\"list_sha256\":null,\"files\":null,\"file_bytes\":null}",
        "{\"schema_version\":1,\"kind\":\"dataset\",\"id\":\"d.1\",\"items\":[],"
        "\"list_sha256\":\"00\",\"files\":null,\"file_bytes\":null}",
        "{\"schema_version\":1,\"kind\":\"dataset\",\"id\":\"d.1\",\"items\":[],"
        "\"list_sha256\":null,\"files\":null,\"file_bytes\":null,\"more\":1}",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct err err = {0};
        struct lock lock;
        char *path = NULL;
        assert_int_equal(lock_path(&arena, *state, LOCK_DATASET, "d.1", &path, &err), 0);
        assert_int_equal(fs_mkdir_p(fs_join(&arena, *state, "dataset"), &err), 0);
        scratch_write(path, str_of(BAD[idx]));
        assert_int_equal(lock_read(&arena, *state, LOCK_DATASET, "d.1", &lock, &err), -1);
        assert_int_equal(err.code, ERR_MANIFEST);
    }
}

static void nouns_are_resolved(void **state UNUSED)
{
    static const struct {
        const char *name;
        enum noun_kind kind;
        const char *text; /* NULL: refused */
    } ROWS[] = {
        {"cityscapes", NOUN_DATASET, "dataset:cityscapes"},
        {"dataset:cityscapes", NOUN_DATASET, "dataset:cityscapes"},
        {"cityscapes.synthetic", NOUN_DATASET, "dataset:cityscapes.synthetic"},
        {"reperf-cpu", NOUN_IMAGE, "image:reperf-cpu"},
        {"paddle-perf-hrnetw18", NOUN_REPORT, "report:paddle-perf-hrnetw18"},
        {"source:https://a.example/r.git@0123456789abcdef0123456789abcdef01234567", NOUN_SOURCE,
         "source:https://a.example/r.git@0123456789abcdef0123456789abcdef01234567"},
        {"source:https://a.example/r.git@main", NOUN_SOURCE, "source:https://a.example/r.git@main"},
        {"source:https://a.example/r.git@0123456", NOUN_SOURCE, NULL},
        {"image:cityscapes", NOUN_IMAGE, NULL},
        {"../cityscapes", NOUN_DATASET, NULL},
        {"dataset:../../etc", NOUN_DATASET, NULL},
        {"", NOUN_DATASET, NULL},
        {"nobody-knows-it", NOUN_DATASET, NULL},
        {"reperf-cpu.synthetic", NOUN_IMAGE, NULL},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct err err = {0};
        struct noun noun;
        int result = noun_resolve(&arena, ".", ROWS[idx].name, &noun, &err);
        if (ROWS[idx].text) {
            assert_int_equal(result, 0);
            assert_int_equal(noun.kind, ROWS[idx].kind);
            assert_string_equal(noun_text(&arena, &noun), ROWS[idx].text);
        } else {
            assert_int_equal(result, -1);
            assert_int_equal(err.code, ERR_USAGE);
        }
    }
}

static void a_report_needs_each_thing_once(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct nouns nouns;
    size_t n_datasets = 0;
    assert_int_equal(noun_of_report(&arena, ".", "paddle-perf-hrnetw18", &nouns, &err), 0);
    for (size_t idx = 0; idx < nouns.n; idx++) {
        n_datasets += nouns.items[idx].kind == NOUN_DATASET;
        assert_false(str_eq_z(nouns.items[idx].name, "synthetic"));
        if (idx > 0) {
            assert_true(nouns.items[idx - 1].kind <= nouns.items[idx].kind);
            assert_false(str_eq(nouns.items[idx - 1].name, nouns.items[idx].name));
        }
    }
    assert_true(n_datasets >= 1 && n_datasets < nouns.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lock_is_written_and_read, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(drift_is_an_integrity_error, scratch_make, scratch_remove),
        cmocka_unit_test(sources_drift_by_commit),
        cmocka_unit_test(a_lock_fills_a_description),
        cmocka_unit_test_setup_teardown(a_bad_lock_is_refused, scratch_make, scratch_remove),
        cmocka_unit_test(nouns_are_resolved),
        cmocka_unit_test(a_report_needs_each_thing_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("lock", tests, scratch_group_start, scratch_group_end);
}
