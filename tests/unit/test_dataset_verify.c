/* SPDX-License-Identifier: Apache-2.0 */
/* Trees made here, checked against descriptions made here: what each check finds, and what it reports as not checked. */
#include "unit.h"

#include "store/dataset_verify.h"
#include "tests/unit/scratch.h"
#include "tfrecord.h"

#define DATE "2026-11-21T10:00:00.000Z"

struct bench { /* one tree and its description */
    struct arena arena;
    struct store store;
    struct pool *pool;
    struct dataset_here here;
    struct dataset_group groups[2];
    struct dataset_split splits[1];
    struct dataset_synthetic_split synthetic_splits[1];
    struct tree_file files[32];
    size_t n_files;
    struct dataset_verified v;
};

static struct dataset_group group_of(const char *name, const char *glob, enum file_format format)
{
    return (struct dataset_group){.name = str_of(name),
                                  .split = STR_LIT("train"),
                                  .role = ROLE_OTHER,
                                  .glob = str_of(glob),
                                  .n_files = -1,
                                  .n_folders = -1,
                                  .folder_min = -1,
                                  .folder_max = -1,
                                  .format = format,
                                  .width = -1,
                                  .height = -1,
                                  .channels = -1,
                                  .n_lines = -1};
}

static void begin(struct bench *b, const char *folder)
{
    *b = (struct bench){.store = STORE_EMPTY};
    PASSES(store_open(&b->arena, folder, &b->store, ERR));
    PASSES(pool_new(2, &b->pool, ERR));
    b->splits[0] = (struct dataset_split){STR_LIT("train"), -1, -1};
    b->here = (struct dataset_here){.dataset = {.id = STR_LIT("m"),
                                                .splits = b->splits,
                                                .n_splits = 1,
                                                .groups = b->groups,
                                                .n_groups = 1,
                                                .allows_others = true},
                                    .name = "m"};
}

static void bench_cleanup(struct bench *b)
{
    pool_free(b->pool);
    store_close(&b->store);
    arena_release(&b->arena);
}

/* Written below the tree; in the list unless is_extra. */
static void put(struct bench *b, const char *path, struct str bytes, bool is_extra)
{
    scratch_put(dataset_tree_path(&b->store, b->here.name), path, bytes);
    if (!is_extra) {
        b->files[b->n_files].path = path;
        sha256_of(bytes, b->files[b->n_files++].sha256);
    }
}

/* Paths were added in byte order. */
static void seal_tree(struct bench *b)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    const char *folder = dataset_tree_path(&b->store, b->here.name);
    struct tree_list list = {.files = b->files, .n = b->n_files};
    struct dataset_record record = {.is_synthetic = b->here.is_synthetic,
                                    .date = STR_LIT(DATE),
                                    .splits = b->synthetic_splits,
                                    .n_splits = b->here.is_synthetic ? 1 : 0,
                                    .seen = {.id = STR_LIT("m"), .has_list = true}};
    PASSES(tree_list_write(&list, fs_join(&b->arena, folder, DATASET_TREE_LIST),
                           record.seen.list_sha256, ERR));
    record.seen.n_files = (int64_t)b->n_files;
    dataset_record_encode(&record, &text);
    scratch_write(fs_join(&b->arena, folder, DATASET_TREE_JSON), strbuf_str(&text));
}

static int try_verify(struct bench *b, enum verify_depth depth, struct err *err)
{
    const struct dataset_verify_opts opts = {
        .depth = depth, .pool = b->pool, .n_threads = 2, .clock = clock_system()};
    b->v = (struct dataset_verified){0};
    return dataset_verify(&b->arena, &b->store, &b->here, &opts, &b->v, err);
}

static void verify(struct bench *b, enum verify_depth depth)
{
    PASSES(try_verify(b, depth, ERR));
}

static void has_fault(const struct bench *b, enum dataset_fault_kind kind, const char *path,
                      const char *why)
{
    for (size_t idx = 0; idx < b->v.n_faults; idx++) {
        const struct dataset_fault *fault = &b->v.faults[idx];
        if (fault->kind == kind && strcmp(fault->path, path) == 0 &&
            (!why || (fault->why && strstr(fault->why, why)))) {
            return;
        }
    }
    fail_msg("no fault %s of %s", DATASET_FAULTS[kind], path);
}

TEST_IN_SCRATCH(counts_and_folders)
{
    CLEANUP(bench) struct bench b;
    begin(&b, *state);
    b.groups[0] = group_of("all", "c*/*.txt", FILE_TEXT);
    b.groups[0].n_files = 3;
    b.groups[0].n_folders = 2;
    b.groups[0].folder_min = 1;
    b.groups[0].folder_max = 2;
    put(&b, "c1/a.txt", STR_LIT("1\n"), false);
    put(&b, "c1/b.txt", STR_LIT("2\n"), false);
    put(&b, "c2/a.txt", STR_LIT("3\n"), false);
    put(&b, "other", STR_LIT("?"), false);
    seal_tree(&b);
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.n_faults, 0);
    assert_int_equal(b.v.verdict, VERDICT_PARTLY); /* the list has no trusted digest */
    assert_int_equal(b.v.n_not_checked, 1);
    assert_int_equal(b.v.n_headers, 3);
    b.here.dataset.allows_others = false;
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.verdict, VERDICT_WRONG);
    has_fault(&b, FAULT_EXTRA, "other", "no group");
    b.here.dataset.allows_others = true;
    b.groups[0].n_files = 4;
    b.groups[0].n_folders = 3;
    b.groups[0].folder_max = 1;
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.n_of[FAULT_COUNT], 3);
    has_fault(&b, FAULT_COUNT, "c1", "expected 1 to 1 files in the folder, found 2");
    /* A trusted digest of the list makes it hold. */
    b.groups[0].n_files = 3;
    b.groups[0].n_folders = 2;
    b.groups[0].folder_max = 2;
    b.here.dataset.has_list_sha256 = true;
    memcpy(b.here.dataset.list_sha256, b.v.tree.seen.list_sha256, SHA256_BYTES);
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.verdict, VERDICT_HOLDS);
    verify(&b, DEPTH_QUICK);
    assert_int_equal(b.v.verdict, VERDICT_PARTLY);
    assert_int_equal(b.v.n_headers, 0);
}

TEST_IN_SCRATCH(what_is_not_stated_is_said)
{
    CLEANUP(bench) struct bench b;
    begin(&b, *state);
    b.groups[0] = group_of("some", "*.txt", FILE_ANY);
    put(&b, "a.txt", STR_LIT("1"), false);
    seal_tree(&b);
    verify(&b, DEPTH_DEEP);
    assert_int_equal(b.v.n_faults, 0);
    assert_int_equal(b.v.n_not_checked, 2);
    assert_non_null(strstr(b.v.not_checked[1], "the number of files of group some: not stated"));
    b.here.dataset.n_groups = 0;
    verify(&b, DEPTH_DEEP);
    assert_non_null(strstr(b.v.not_checked[1], "names no groups"));
}

TEST_IN_SCRATCH(partners_are_found_both_ways)
{
    CLEANUP(bench) struct bench b;
    begin(&b, *state);
    b.here.dataset.n_groups = 2;
    b.groups[0] = group_of("images", "img/*", FILE_ANY);
    b.groups[0].n_files = 2;
    b.groups[1] = group_of("labels", "lab/*", FILE_ANY);
    b.groups[1].n_files = 2;
    b.groups[1].pair_of = STR_LIT("images");
    b.groups[1].pair_from = STR_LIT("img");
    b.groups[1].pair_to = STR_LIT("lab");
    b.groups[1].pair_from_end = STR_LIT(".i");
    b.groups[1].pair_to_end = STR_LIT(".l");
    put(&b, "img/1.i", STR_LIT("1"), false);
    put(&b, "img/2.i", STR_LIT("2"), false);
    put(&b, "lab/1.l", STR_LIT("3"), false);
    put(&b, "lab/3.l", STR_LIT("4"), false);
    seal_tree(&b);
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.n_faults, 2);
    has_fault(&b, FAULT_MISSING, "lab/2.l", "the partner of img/2.i");
    has_fault(&b, FAULT_EXTRA, "lab/3.l", "no partner in group images");
}

TEST_IN_SCRATCH(bytes_and_names)
{
    CLEANUP(bench) struct bench b;
    begin(&b, *state);
    b.groups[0] = group_of("pictures", "*.png", FILE_PNG);
    b.groups[0].n_files = 3;
    put(&b, "a.png", STR_LIT("no png"), false);
    put(&b, "b.png", STR_LIT("no png either"), false);
    put(&b, "c.png", STR_LIT("nor this"), false);
    seal_tree(&b);
    b.groups[0].odd_paths = (struct str[]){STR_LIT("b.png")};
    b.groups[0].n_odd = 1;
    put(&b, "c.png", STR_LIT("another"), true);
    put(&b, "new.png", STR_LIT("new"), true);
    verify(&b, DEPTH_NORMAL);
    assert_int_equal(b.v.n_of[FAULT_CORRUPT], 1);
    assert_int_equal(b.v.n_of[FAULT_HEADER], 1);
    assert_int_equal(b.v.n_of[FAULT_EXTRA], 1);
    has_fault(&b, FAULT_HEADER, "a.png", "the signature of a PNG");
    has_fault(&b, FAULT_CORRUPT, "c.png", "its digest differs; expected the signature");
    has_fault(&b, FAULT_EXTRA, "new.png", NULL);
    has_fault(&b, FAULT_COUNT, "pictures", "expected 3 files, found 4");
}

#define JPEG_HEAD                                                                                  \
    "\xff\xd8\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00"     \
    "\x00\x3f\x00"
#define LARGE (300u << 10)

/* Larger than the part of a JPEG that is read when its head and its end are right. */
TEST_IN_SCRATCH(large_pictures)
{
    CLEANUP(bench) struct bench b;
    char *bytes;
    begin(&b, *state);
    bytes = arena_array(&b.arena, char, LARGE);
    memset(bytes, 0x12, LARGE);
    memcpy(bytes, JPEG_HEAD, sizeof(JPEG_HEAD) - 1);
    b.groups[0] = group_of("pictures", "*.jpg", FILE_JPEG);
    b.groups[0].width = 3;
    put(&b, "cut.jpg", (struct str){bytes, LARGE}, false);
    memcpy(bytes + LARGE - 2, "\xff\xd9", 2);
    put(&b, "good.jpg", (struct str){bytes, LARGE}, false);
    bytes[10] = 4;
    put(&b, "wide.jpg", (struct str){bytes, LARGE}, false);
    seal_tree(&b);
    for (enum verify_depth depth = DEPTH_NORMAL; depth <= DEPTH_DEEP; depth++) {
        verify(&b, depth);
        assert_int_equal(b.v.n_faults, 2);
        has_fault(&b, FAULT_HEADER, "cut.jpg", "with no end marker");
        has_fault(&b, FAULT_HEADER, "wide.jpg", "expected 3 pixels of width, found 4");
    }
}

TEST_IN_SCRATCH(synthetic_are_held_against_what_was_made)
{
    CLEANUP(bench) struct bench b;
    uint8_t records[64];
    size_t len = add_record(records, "one");
    len += add_record(records + len, "two");
    begin(&b, *state);
    b.here.is_synthetic = true;
    b.here.name = "m.synthetic";
    b.synthetic_splits[0] = (struct dataset_synthetic_split){STR_LIT("train"), 4, 2};
    b.groups[0] = group_of("records", "*", FILE_TFRECORD);
    b.groups[0].role = ROLE_RECORDS;
    b.groups[0].n_files = 100; /* the original's */
    put(&b, "r0", (struct str){(const char *)records, len}, false);
    put(&b, "r1", (struct str){(const char *)records, len}, false);
    seal_tree(&b);
    verify(&b, DEPTH_DEEP);
    assert_int_equal(b.v.n_faults, 0);
    assert_true(b.v.tree.is_synthetic);
    b.synthetic_splits[0].n_samples = 5;
    seal_tree(&b);
    verify(&b, DEPTH_DEEP);
    has_fault(&b, FAULT_COUNT, "records", "expected 5 samples, found 4");
}

TEST_IN_SCRATCH(a_tree_of_another_is_refused)
{
    CLEANUP(bench) struct bench b;
    begin(&b, *state);
    b.groups[0] = group_of("all", "*", FILE_ANY);
    FAILS(try_verify(&b, DEPTH_QUICK, ERR), ERR_FETCH);
    put(&b, "a", STR_LIT("1"), false);
    b.synthetic_splits[0] = (struct dataset_synthetic_split){STR_LIT("train"), 1, 1};
    b.here.is_synthetic = true; /* a synthetic dataset's record in the place of the original */
    seal_tree(&b);
    b.here.is_synthetic = false;
    FAILS_WITH(try_verify(&b, DEPTH_QUICK, ERR), ERR_INTEGRITY, "says that it is m, synthetic");
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
