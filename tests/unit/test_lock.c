/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "store/artifact.h"
#include "store/lock_file.h"
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

TEST_IN_SCRATCH(a_lock_is_written_and_read)
{
    struct lock lock = one_file(9);
    struct lock read = {0};
    bool is_new = false;
    PASSES(lock_read(ARENA, *state, LOCK_DATASET, "d.1", &read, ERR));
    assert_null(read.id.ptr);
    PASSES(lock_settle(ARENA, *state, &lock, &is_new, ERR));
    assert_true(is_new);
    PASSES(lock_settle(ARENA, *state, &lock, &is_new, ERR));
    assert_false(is_new);
    PASSES(lock_read(ARENA, *state, LOCK_DATASET, "d.1", &read, ERR));
    assert_int_equal(read.n_items, 1);
    assert_int_equal(read.items[0].size_bytes, 5);
    assert_int_equal(read.items[0].sha256[31], 9);
    assert_string_equal(read.items[0].date.ptr, DATE);
    assert_null(read.items[0].commit.ptr);
    assert_false(read.has_list);
    assert_int_equal(read.n_files, 3);
    /* Later facts are added; existing ones are not changed. */
    lock.has_list = true;
    memset(lock.list_sha256, 4, SHA256_BYTES);
    lock.items[0].date = STR_LIT("2027-01-01T00:00:00.000Z");
    PASSES(lock_settle(ARENA, *state, &lock, &is_new, ERR));
    assert_true(is_new);
    PASSES(lock_read(ARENA, *state, LOCK_DATASET, "d.1", &read, ERR));
    assert_true(read.has_list);
    assert_string_equal(read.items[0].date.ptr, DATE);
}

TEST_IN_SCRATCH(drift_is_an_integrity_error)
{
    struct lock lock = one_file(9);
    bool is_new = false;
    PASSES(lock_settle(ARENA, *state, &lock, &is_new, ERR));
    lock = one_file(8);
    FAILS(lock_settle(ARENA, *state, &lock, &is_new, ERR), ERR_INTEGRITY);
    SAYS("a.tar: locked on 2026-11-21 with SHA-256 0909");
    SAYS("found 0808");
    lock = one_file(9);
    lock.items[0].size_bytes = 6;
    FAILS_WITH(lock_settle(ARENA, *state, &lock, &is_new, ERR), ERR_ANY, "with 5 bytes, found 6");
    lock = one_file(9);
    lock.items[0].has_sha256 = false;
    lock.items[0].md5[0] = 6;
    FAILS_WITH(lock_settle(ARENA, *state, &lock, &is_new, ERR), ERR_ANY, "MD5");
}

TEST(sources_drift_by_commit)
{
    struct lock_item known = {.size_bytes = -1,
                              .commit = STR_LIT("0123456789abcdef0123456789abcdef01234567"),
                              .date = STR_LIT(DATE)};
    struct lock_item found = known;
    PASSES(lock_check_item(&known, &found, "x", ERR));
    found.tree = STR_LIT("1123456789abcdef0123456789abcdef01234567");
    PASSES(lock_check_item(&known, &found, "x", ERR));
    found.commit = found.tree;
    FAILS(lock_check_item(&known, &found, "x", ERR), ERR_INTEGRITY);
}

TEST(a_lock_fills_a_description)
{
    struct lock lock = one_file(9);
    struct dataset_file file = {.name = STR_LIT("a.tar"), .size_bytes = -1};
    struct dataset dataset = {.id = STR_LIT("d.1"), .files = &file, .n_files = 1};
    PASSES(lock_merge_dataset(ARENA, &lock, &dataset, ERR));
    assert_int_equal(dataset.files[0].size_bytes, 5);
    assert_true(dataset.files[0].has_sha256);
    assert_int_equal(dataset.files[0].sha256[0], 9);
    assert_int_equal(dataset.files[0].piece_bytes, 65536);
    assert_true(dataset.files[0].pieces_are_locks);
    assert_int_equal(file.size_bytes, -1); /* the caller's own are not written to */
    dataset.files[0].size_bytes = 6;
    FAILS(lock_merge_dataset(ARENA, &lock, &dataset, ERR), ERR_MANIFEST);
    SAYS("the lock of d.1 contradicts its description");
}

TEST_IN_SCRATCH(a_bad_lock_is_refused)
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
    for (EACH(row, BAD)) {
        struct lock lock;
        char *path = NULL;
        PASSES(lock_path(ARENA, *state, LOCK_DATASET, "d.1", &path, ERR));
        PASSES(fs_mkdir_p(fs_join(ARENA, *state, "dataset"), ERR));
        scratch_write(path, str_of(*row));
        FAILS(lock_read(ARENA, *state, LOCK_DATASET, "d.1", &lock, ERR), ERR_MANIFEST);
    }
}

TEST(artifacts_are_resolved)
{
    static const struct {
        const char *name;
        enum artifact_kind kind;
        const char *text; /* NULL: refused */
    } ROWS[] = {
        {"cityscapes", ARTIFACT_DATASET, "dataset:cityscapes"},
        {"dataset:cityscapes", ARTIFACT_DATASET, "dataset:cityscapes"},
        {"cityscapes.synthetic", ARTIFACT_DATASET, "dataset:cityscapes.synthetic"},
        {"reperf-cpu", ARTIFACT_IMAGE, "image:reperf-cpu"},
        {"paddle-perf-hrnetw18", ARTIFACT_REPORT, "report:paddle-perf-hrnetw18"},
        {"source:https://a.example/r.git@0123456789abcdef0123456789abcdef01234567", ARTIFACT_SOURCE,
         "source:https://a.example/r.git@0123456789abcdef0123456789abcdef01234567"},
        {"source:https://a.example/r.git@main", ARTIFACT_SOURCE,
         "source:https://a.example/r.git@main"},
        {"source:https://a.example/r.git@0123456", ARTIFACT_SOURCE, NULL},
        {"image:cityscapes", ARTIFACT_IMAGE, NULL},
        {"../cityscapes", ARTIFACT_DATASET, NULL},
        {"dataset:../../etc", ARTIFACT_DATASET, NULL},
        {"", ARTIFACT_DATASET, NULL},
        {"nobody-knows-it", ARTIFACT_DATASET, NULL},
        {"reperf-cpu.synthetic", ARTIFACT_IMAGE, NULL},
    };
    for (EACH(row, ROWS)) {
        struct err err = {0};
        struct artifact artifact;
        int result = artifact_resolve(ARENA, ".", row->name, &artifact, &err);
        if (row->text) {
            assert_int_equal(result, 0);
            assert_int_equal(artifact.kind, row->kind);
            assert_string_equal(artifact_text(ARENA, &artifact), row->text);
        } else {
            assert_int_equal(result, -1);
            assert_int_equal(err.code, ERR_USAGE);
        }
    }
}

TEST(a_report_needs_each_thing_once)
{
    CLEANUP(opt_list) struct opt_list names = {0};
    struct artifacts artifacts;
    size_t n_datasets = 0;
    VEC_PUSH(&names, "paddle-perf-hrnetw18");
    PASSES(artifacts_of(ARENA, ".", &names, false, &artifacts, ERR));
    for (size_t idx = 0; idx < artifacts.n; idx++) {
        n_datasets += artifacts.items[idx].kind == ARTIFACT_DATASET;
        assert_false(str_eq_z(artifacts.items[idx].name, "synthetic"));
        if (idx > 0) {
            assert_true(artifacts.items[idx - 1].kind <= artifacts.items[idx].kind);
            assert_false(str_eq(artifacts.items[idx - 1].name, artifacts.items[idx].name));
        }
    }
    assert_true(n_datasets >= 1 && n_datasets < artifacts.n);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
