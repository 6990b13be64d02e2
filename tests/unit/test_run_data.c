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
    const char *folder = fs_join(&scratch_arena, *state, below);
    PASSES(fs_mkdir_p(folder, ERR));
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
    const char *folder;
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    PASSES(find(state, "cityscapes.synthetic", &data, ERR));
    assert_true(data.is_synthetic);
    assert_int_equal(data.n_samples, 4);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "synthetic twin of cityscapes");
    PASSES(run_data_check(&data, ERR));
    /* The synthetic dataset is not the original. */
    FAILS(find(state, "cityscapes", &data, ERR), ERR_USAGE);
    SAYS("Its synthetic version is there: --data cityscapes.synthetic");
    folder = pack_at(state, "elsewhere", PACK("cityscapes", "false", "2975"));
    PASSES(find(state, folder, &data, ERR));
    assert_false(data.is_synthetic);
    assert_string_equal(plan_data_name(&scratch_arena, &data), "cityscapes");
    /* A synthetic dataset that claims to be the original. */
    folder = pack_at(state, "forged", PACK("cityscapes", "false", "9"));
    FAILS(find(state, folder, &data, ERR), ERR_INTEGRITY);
    SAYS("has 2975 samples; found 9");
}

TEST_IN_SCRATCH(other_data_is_refused)
{
    struct plan_data data = {0};
    const char *folder = pack_at(state, "here", PACK("cityscapes", "true", "4"));
    PASSES(find(state, folder, &data, ERR));
    pack_at(state, "here", PACK("cityscapes", "true", "5"));
    FAILS(run_data_check(&data, ERR), ERR_INTEGRITY);
    SAYS("the run was planned with one of SHA-256");
    assert_int_equal(unlink(fs_join(&scratch_arena, folder, "pack.json")), 0);
    FAILS(run_data_check(&data, ERR), ERR_INTEGRITY);
    /* Shards of a synthetic dataset in the original's place. */
    pack_at(state, "packed/cityscapes/train", PACK("cityscapes", "true", "4"));
    FAILS(find(state, "cityscapes", &data, ERR), ERR_INTEGRITY);
    FAILS(find(state, "reperf-cpu", &data, ERR), ERR_USAGE);
    FAILS(find(state, "./nowhere", &data, ERR), ERR_USAGE);
    folder = pack_at(state, "bad", "{\"dataset\":\"cityscapes\"}");
    FAILS(find(state, folder, &data, ERR), ERR_MANIFEST);
}

TEST_IN_SCRATCH(data_of_another_split_or_tree_is_refused)
{
    struct plan_data data = {0};
    const char *tree = fs_join(&scratch_arena, *state, "trees/cityscapes.synthetic");
#define TREE(sha256)                                                                               \
    "{\"schema_version\":1,\"dataset\":\"cityscapes\",\"synthetic\":true,\"recipe\":null,"         \
    "\"date\":\"2026-11-21T00:00:00Z\",\"blobs\":[],\"archives\":[],\"splits\":[],"                \
    "\"list_sha256\":\"" sha256 "\",\"files\":1,\"file_bytes\":1}"
    pack_at(state, "packed/cityscapes.synthetic/train", PACK_OF("cityscapes", "true", "val", "4"));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
    SAYS("split val, not train");
    pack_at(state, "packed/cityscapes.synthetic/train", PACK("cityscapes", "true", "4"));
    PASSES(fs_mkdir_p(tree, ERR));
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), str_of(TREE(HEX)));
    PASSES(find(state, "cityscapes.synthetic", &data, ERR));
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), str_of(TREE(OTHER)));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
    SAYS("the store's tree has 1123");
    scratch_write(fs_join(&scratch_arena, tree, "tree.json"), STR_LIT("{}"));
    FAILS(find(state, "cityscapes.synthetic", &data, ERR), ERR_INTEGRITY);
}

TEST(none_is_nothing_to_check)
{
    struct plan_data none = {0};
    PASSES(run_data_check(&none, ERR));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
