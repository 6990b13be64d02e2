/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "run/run_data.h"
#include "tests/unit/scratch.h"

#define HEX                    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER                  "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define PACK(id, synthetic, n) PACK_OF(id, synthetic, "train", n)
#define PACK_OF(id, synthetic, split, n)                                                           \
    "{\"schema_version\":1,\"dataset\":\"" id "\",\"synthetic\":" synthetic                        \
    ",\"kind\":\"segments\",\"split\":\"" split "\",\"n_samples\":" n ",\"source_sha256\":\"" HEX  \
    "\",\"shards\":[]}"

static const char *pack_at(void **state, const char *below, const char *text)
{
    struct err err = {0};
    const char *folder = fs_join(&scratch_arena, *state, below);
    assert_int_equal(fs_mkdir_p(folder, &err), 0);
    scratch_write(fs_join(&scratch_arena, folder, "pack.json"), str_of(text));
    return folder;
}

static int find(void **state, const char *text, struct plan_data *ret, struct err *err)
{
    return run_data_find(&scratch_arena, ".", *state, text, ret, err);
}

TEST_IN_SCRATCH(packed_data_is_found)
{
    struct plan_data data = {0};
    struct err err = {0};
    const char *folder;
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    assert_int_equal(find(state, "cityscapes.synthetic", &data, &err), 0);
    assert_true(data.is_synthetic);
    assert_int_equal(data.n_samples, 4);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "synthetic twin of cityscapes");
    assert_int_equal(run_data_check(&data, &err), 0);
    /* The synthetic dataset is not the original. */
    assert_int_equal(find(state, "cityscapes", &data, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.msg, "Its synthetic version is there: --data cityscapes.synthetic"));
    err = (struct err){0};
    folder = pack_at(state, "elsewhere", PACK("cityscapes", "false", "2975"));
    assert_int_equal(find(state, folder, &data, &err), 0);
    assert_false(data.is_synthetic);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "cityscapes");
    /* A synthetic dataset that claims to be the original. */
    folder = pack_at(state, "forged", PACK("cityscapes", "false", "9"));
    assert_int_equal(find(state, folder, &data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "has 2975 samples; found 9"));
}

TEST_IN_SCRATCH(other_data_is_refused)
{
    struct plan_data data = {0};
    struct err err = {0};
    const char *folder = pack_at(state, "here", PACK("cityscapes", "true", "4"));
    assert_int_equal(find(state, folder, &data, &err), 0);
    pack_at(state, "here", PACK("cityscapes", "true", "5"));
    assert_int_equal(run_data_check(&data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "the run was planned with one of SHA-256"));
    err = (struct err){0};
    assert_int_equal(unlink(fs_join(&scratch_arena, folder, "pack.json")), 0);
    assert_int_equal(run_data_check(&data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    err = (struct err){0};
    /* Shards of a synthetic dataset in the original's place. */
    pack_at(state, "packed/cityscapes/train", PACK("cityscapes", "true", "4"));
    assert_int_equal(find(state, "cityscapes", &data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    err = (struct err){0};
    assert_int_equal(find(state, "reperf-cpu", &data, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    err = (struct err){0};
    assert_int_equal(find(state, "./nowhere", &data, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    err = (struct err){0};
    folder = pack_at(state, "bad", "{\"dataset\":\"cityscapes\"}");
    assert_int_equal(find(state, folder, &data, &err), -1);
    assert_int_equal(err.code, ERR_MANIFEST);
}

TEST_IN_SCRATCH(data_of_another_split_or_tree_is_refused)
{
    struct plan_data data = {0};
    struct err err = {0};
    const char *tree = fs_join(&scratch_arena, *state, "trees/cityscapes.synthetic");
#define TREE(sha256)                                                                               \
    "{\"schema_version\":1,\"dataset\":\"cityscapes\",\"synthetic\":true,\"recipe\":null,"         \
    "\"date\":\"2026-11-21T00:00:00Z\",\"blobs\":[],\"archives\":[],\"splits\":[],"                \
    "\"list_sha256\":\"" sha256 "\",\"files\":1,\"file_bytes\":1}"
    pack_at(state, "packed/cityscapes.synthetic/train", PACK_OF("cityscapes", "true", "val", "4"));
    assert_int_equal(find(state, "cityscapes.synthetic", &data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "split val, not train"));
    err = (struct err){0};
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    assert_int_equal(fs_mkdir_p(tree, &err), 0);
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), str_of(TREE(HEX)));
    assert_int_equal(find(state, "cityscapes.synthetic", &data, &err), 0);
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), str_of(TREE(OTHER)));
    assert_int_equal(find(state, "cityscapes.synthetic", &data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
    assert_non_null(strstr(err.msg, "the store's tree has 1123"));
    err = (struct err){0};
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), STR_LIT("{}"));
    assert_int_equal(find(state, "cityscapes.synthetic", &data, &err), -1);
    assert_int_equal(err.code, ERR_INTEGRITY);
}

TEST(none_is_nothing_to_check)
{
    struct plan_data none = {0};
    struct err err = {0};
    assert_int_equal(run_data_check(&none, &err), 0);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
