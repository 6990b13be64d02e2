/* SPDX-License-Identifier: Apache-2.0 */
/* From a small tree to shards: what is stored where, what is refused, what is kept. */
#include "unit.h"

#include "base/crc32c.h"
#include "prep/draw.h"
#include "prep/pack_check.h"
#include "prep/pack_file.h"
#include "prep/packing.h"
#include "prep/png.h"
#include "prep/shard_file.h"
#include "scratch.h"

#define W       24
#define H       16
#define N       5
#define CLASSES 19

static struct dataset small(void)
{
    const struct dataset_group described[2] = {{.name = STR_LIT("images"),
                                                .split = STR_LIT("train"),
                                                .role = ROLE_IMAGE,
                                                .glob = STR_LIT("img/*_i.png"),
                                                .n_files = N,
                                                .n_folders = -1,
                                                .format = FILE_PNG,
                                                .width = W,
                                                .height = H},
                                               {.name = STR_LIT("labels"),
                                                .split = STR_LIT("train"),
                                                .role = ROLE_LABEL,
                                                .glob = STR_LIT("lab/*_l.png"),
                                                .n_files = N,
                                                .n_folders = -1,
                                                .format = FILE_PNG,
                                                .width = W,
                                                .height = H,
                                                .pair_of = STR_LIT("images"),
                                                .pair_from = STR_LIT("img/"),
                                                .pair_to = STR_LIT("lab/"),
                                                .pair_from_end = STR_LIT("_i.png"),
                                                .pair_to_end = STR_LIT("_l.png")}};
    struct dataset_group *groups = arena_array(&scratch_arena, struct dataset_group, 2);
    memcpy(groups, described, sizeof(described));
    return (struct dataset){
        .id = STR_LIT("small"),
        .groups = groups,
        .n_groups = 2,
        .pack = {.kind = PACK_SEGMENTS, .short_side = -1, .n_classes = CLASSES}};
}

static void write_png(const char *folder, const char *name, const uint8_t *pixels, uint32_t width,
                      int n_channels)
{
    struct png_picture picture = {
        .pixels = pixels, .width = width, .height = H, .n_channels = n_channels, .bits = 8};
    uint8_t *bytes = NULL;
    size_t len = 0;
    PASSES(png_encode(&picture, &bytes, &len, ERR));
    scratch_write(fs_join(&scratch_arena, folder, name), (struct str){(const char *)bytes, len});
    free(bytes);
}

static void draw_pair(unsigned idx, uint8_t *rgb, uint8_t *labels)
{
    draw_street_labels(idx, W, H, labels);
    draw_street(idx, W, H, labels, rgb);
}

static const char *make_tree(const char *folder)
{
    const char *tree = fs_join(&scratch_arena, folder, "tree");
    PASSES(fs_mkdir_p(fs_join(&scratch_arena, tree, "img"), ERR));
    PASSES(fs_mkdir_p(fs_join(&scratch_arena, tree, "lab"), ERR));
    for (unsigned idx = 0; idx < N; idx++) {
        uint8_t rgb[W * H * 3], labels[W * H];
        draw_pair(idx, rgb, labels);
        write_png(tree, arena_printf(&scratch_arena, "img/%u_i.png", idx), rgb, W, 3);
        write_png(tree, arena_printf(&scratch_arena, "lab/%u_l.png", idx), labels, W, 1);
    }
    return tree;
}

/* Two samples a shard: 4096 for the header, 4096 for the entries, 1536 each. */
#define SHARD_BYTES (2 * 4096 + 2 * 1536)

static int pack(const char *tree, const char *out, size_t n_threads, struct packing_result *result,
                struct err *err)
{
    CLEANUP(samples) struct samples samples = {0};
    struct dataset dataset = small();
    struct tree_source source = {.folder = tree};
    struct samples_opts find = {
        .dataset = &dataset, .split = STR_LIT("train"), .source = &source, .n_threads = n_threads};
    struct packing_opts opts = {.folder = out,
                                .dataset_id = dataset.id,
                                .split = find.split,
                                .shard_bytes = SHARD_BYTES,
                                .source = &source,
                                .samples = &samples,
                                .n_threads = n_threads};
    return samples_find(&scratch_arena, &find, &samples, err) < 0
               ? -1
               : packing_write(&scratch_arena, &opts, result, err);
}

static struct check_result check(const char *out)
{
    struct check_result result;
    PASSES(check_folder(&scratch_arena, out, 2, &result, ERR));
    return result;
}

static void assert_same_folders(const char *a, const char *b)
{
    struct fs_names left, right;
    PASSES(fs_list(&scratch_arena, a, &left, ERR));
    PASSES(fs_list(&scratch_arena, b, &right, ERR));
    assert_int_equal(left.n, right.n);
    for (size_t idx = 0; idx < left.n; idx++) {
        struct str x = scratch_read(fs_join(&scratch_arena, a, left.items[idx]));
        struct str y = scratch_read(fs_join(&scratch_arena, b, right.items[idx]));
        assert_string_equal(left.items[idx], right.items[idx]);
        assert_true(str_eq(x, y));
    }
}

TEST_IN_SCRATCH(samples_lie_where_the_format_says)
{
    const char *tree = make_tree(*state), *out = fs_join(&scratch_arena, *state, "out");
    struct packing_result result = {0};
    PASSES(pack(tree, out, 2, &result, ERR));
    assert_int_equal(result.n_shards, 3);
    for (unsigned idx = 0; idx < N; idx++) {
        uint8_t rgb[W * H * 3], labels[W * H];
        struct str bytes =
            scratch_read(arena_printf(&scratch_arena, "%s/%05u.shard", out, idx / 2));
        struct shard_header header;
        struct shard_entry entry;
        memcpy(&header, bytes.ptr, sizeof(header));
        memcpy(&entry, bytes.ptr + SHARD_ALIGN + idx % 2 * sizeof(entry), sizeof(entry));
        draw_pair(idx, rgb, labels);
        assert_int_equal(header.n_samples, idx < 4 ? 2 : 1);
        assert_int_equal(header.first_sample, idx / 2 * 2);
        assert_int_equal(header.total_bytes, bytes.len);
        assert_int_equal(entry.offset, 8192 + idx % 2 * 1536);
        assert_int_equal(entry.bytes, W * H * 4);
        assert_int_equal(entry.label, -1);
        assert_int_equal(entry.width * 100 + entry.height, W * 100 + H);
        assert_memory_equal(bytes.ptr + entry.offset, rgb, sizeof(rgb));
        assert_memory_equal(bytes.ptr + entry.offset + sizeof(rgb), labels, sizeof(labels));
        assert_int_equal(entry.crc32c, crc32c_table(0, bytes.ptr + entry.offset, entry.bytes));
    }
    assert_int_equal(check(out).n_faults, 0);
}

TEST_IN_SCRATCH(threads_do_not_change_bytes)
{
    const char *tree = make_tree(*state), *one = fs_join(&scratch_arena, *state, "one");
    struct packing_result result = {0};
    PASSES(pack(tree, one, 1, &result, ERR));
    for (size_t n_threads = 2; n_threads < 7; n_threads += 2) {
        const char *more = arena_printf(&scratch_arena, "%s/%zu", (char *)*state, n_threads);
        PASSES(pack(tree, more, n_threads, &result, ERR));
        assert_same_folders(one, more);
    }
}

/* What a crash at any place leaves behind: some whole shards, one half written, the head, no pack.json. */
TEST_IN_SCRATCH(a_death_is_taken_up)
{
    const char *tree = make_tree(*state), *whole = fs_join(&scratch_arena, *state, "whole");
    struct packing_result result = {0};
    PASSES(pack(tree, whole, 1, &result, ERR));
    struct str text = scratch_read(fs_join(&scratch_arena, whole, PACK_NAME));
    int64_t head = str_find(text, STR_LIT("  \"shards\": ["));
    assert_true(head > 0);
    for (unsigned n_whole = 0; n_whole <= 3; n_whole++) {
        const char *out = arena_printf(&scratch_arena, "%s/after-%u", (char *)*state, n_whole);
        PASSES(fs_mkdir_p(out, ERR));
        scratch_write(fs_join(&scratch_arena, out, PLAN_NAME), str_sub(text, 0, (size_t)head));
        for (unsigned idx = 0; idx < n_whole; idx++) {
            const char *name = arena_printf(&scratch_arena, "%05u.shard", idx);
            scratch_write(fs_join(&scratch_arena, out, name),
                          scratch_read(fs_join(&scratch_arena, whole, name)));
        }
        scratch_write(arena_printf(&scratch_arena, "%s/%05u.shard.part", out, n_whole),
                      STR_LIT("half"));
        PASSES(pack(tree, out, 2, &result, ERR));
        assert_int_equal(result.n_kept, n_whole);
        assert_same_folders(whole, out);
    }
}

/* Each byte of a shard, one after the other: changed, it is a fault, and packing again repairs it. */
TEST_IN_SCRATCH(every_byte_counts)
{
    const char *tree = make_tree(*state), *out = fs_join(&scratch_arena, *state, "out");
    struct packing_result result = {0};
    PASSES(pack(tree, out, 1, &result, ERR));
    const char *path = fs_join(&scratch_arena, out, "00001.shard");
    struct str good = scratch_read(path);
    char *bytes = arena_strndup(&scratch_arena, good.ptr, good.len);
    for (size_t idx = 0; idx < good.len; idx += idx < 130 ? 1 : 61) {
        bytes[idx] ^= 1;
        scratch_write(path, (struct str){bytes, good.len});
        struct check_result found = check(out);
        if (found.n_faults != 1 || strncmp(found.faults[0], "00001.shard: ", 13) != 0) {
            fail_msg("byte %zu: %zu faults", idx, found.n_faults);
        }
        bytes[idx] ^= 1;
    }
    bytes[9000] ^= 1;
    scratch_write(path, (struct str){bytes, good.len});
    PASSES(pack(tree, out, 1, &result, ERR));
    assert_int_equal(result.n_kept, 2);
    assert_true(str_eq(scratch_read(path), good));
}

static void put_label(const char *tree, uint8_t value)
{
    uint8_t rgb[W * H * 3], labels[W * H];
    draw_pair(3, rgb, labels);
    labels[5 * W + 7] = value;
    write_png(tree, "lab/3_l.png", labels, W, 1);
}
static void label_19(const char *tree)
{
    put_label(tree, CLASSES);
}
static void label_254(const char *tree)
{
    put_label(tree, 254);
}
static void narrow_label(const char *tree)
{
    static uint8_t labels[W * H];
    write_png(tree, "lab/3_l.png", labels, W - 1, 1);
}
static void narrow_image(const char *tree)
{
    static uint8_t rgb[W * H * 3];
    write_png(tree, "img/3_i.png", rgb, W - 1, 3);
}
static void no_label(const char *tree)
{
    assert_int_equal(unlink(fs_join(&scratch_arena, tree, "lab/3_l.png")), 0);
}
static void no_image(const char *tree)
{
    assert_int_equal(unlink(fs_join(&scratch_arena, tree, "img/3_i.png")), 0);
}
static void a_folder(const char *tree)
{
    no_label(tree);
    PASSES(fs_mkdir_p(fs_join(&scratch_arena, tree, "lab/3_l.png"), ERR));
}

TEST_IN_SCRATCH(what_does_not_fit_is_named)
{
    static const struct {
        const char *message;
        void (*make)(const char *tree);
    } faults[] = {
        {"lab/3_l.png: label 19 at x 7, y 5; expected 0 to 18 or 255", label_19},
        {"lab/3_l.png: label 254 at x 7, y 5; expected 0 to 18 or 255", label_254},
        {"lab/3_l.png: 23 x 16 pixels, its image has 24 x 16", narrow_label},
        {"img/3_i.png: 23 x 16 pixels, expected 24 x 16", narrow_image},
        {"open lab/3_l.png: No such file", no_label},
        {"group images: 4 files, expected 5", no_image},
        {"lab/3_l.png: not a regular file", a_folder},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(faults); idx++) {
        const char *folder = arena_printf(&scratch_arena, "%s/%zu", (char *)*state, idx);
        const char *tree = make_tree(folder), *out = fs_join(&scratch_arena, folder, "out");
        struct packing_result result = {0};
        faults[idx].make(tree);
        FAILS_WITH(pack(tree, out, 2, &result, ERR), ERR_INTEGRITY, faults[idx].message);
        assert_false(fs_exists(fs_join(&scratch_arena, out, PACK_NAME)));
    }
}

TEST_IN_SCRATCH(label_255_is_ignored_and_fine)
{
    const char *tree = make_tree(*state), *out = fs_join(&scratch_arena, *state, "out");
    struct packing_result result = {0};
    put_label(tree, 255);
    PASSES(pack(tree, out, 2, &result, ERR));
}

TEST_IN_SCRATCH(pack_json_is_strict)
{
    static const struct {
        const char *from, *to;
    } edits[] = {{"\"schema_version\": 1", "\"schema_version\": 2"},
                 {"\"kind\": \"segments\"", "\"kind\": \"classes\", \"kind\": \"tokens\""},
                 {"\"kind\": \"segments\"", "\"kind\": \"tokens\""},
                 {"\"n_classes\": 19", "\"n_classes\": 256"},
                 {"\"n_classes\": 19", "\"n_classes\": null"},
                 {"\"n_samples\": 5", "\"n_samples\": 6"},
                 {"\"n_samples\": 5", "\"n_samples\": -1"},
                 {"00001.shard", "../1.shard"},
                 {"00001.shard", "00002.shard"},
                 {"\"synthetic\": false", "\"synthetic\": 0"},
                 {"\"recipe\": {", "\"recipe\": 1, \"x\": {"}};
    const char *tree = make_tree(*state), *out = fs_join(&scratch_arena, *state, "out");
    struct packing_result result = {0};
    struct pack_file pack_file;
    PASSES(pack(tree, out, 2, &result, ERR));
    struct str text = scratch_read(fs_join(&scratch_arena, out, PACK_NAME));
    PASSES(pack_file_parse(&scratch_arena, text, "pack.json", &pack_file, ERR));
    CLEANUP(strbuf) struct strbuf again = STRBUF(PACK_TEXT_MAX);
    pack_file_text(&pack_file, &again);
    assert_true(str_eq(strbuf_str(&again), text));
    for (EACH(row, edits)) {
        struct str changed = str_of(replaced(text.ptr, row->from, row->to));
        FAILS(pack_file_parse(&scratch_arena, changed, "pack.json", &pack_file, ERR),
              ERR_INTEGRITY);
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
