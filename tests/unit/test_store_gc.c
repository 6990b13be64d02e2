/* SPDX-License-Identifier: Apache-2.0 */
/* A gc beside another process, and one that cannot read a reference, are in tests/integration/test_store.sh. */
#include "unit.h"

#include "store/store_gc.h"

#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "tests/unit/scratch.h"

#define DAY_S STORE_GRACE_S

static struct store store;

static int setup(void **state)
{
    struct err err = {0};
    return scratch_make(state) == 0 ? store_open(&scratch_arena, *state, &store, &err) : -1;
}

static int teardown(void **state)
{
    store_close(&store);
    return scratch_remove(state);
}

struct blob {
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
};

static struct blob add(const char *text)
{
    struct blob blob;
    PASSES(store_add_text(&store, str_of(text), blob.sha256, ERR));
    hex_encode(blob.sha256, SHA256_BYTES, blob.hex);
    return blob;
}

static bool is_there(const struct blob *blob)
{
    return store_has(&store, blob->sha256, NULL);
}

static void refer(const char *name, const struct blob *blob)
{
    const char *text = arena_printf(&scratch_arena, "{\"blobs\": [\"sha256:%s\"]}", blob->hex);
    PASSES(store_ref_put(&store, "dataset", name, str_of(text), ERR));
}

/* gc as it would be `later_s` seconds from now. */
static int gc_later(int64_t later_s, bool is_dry_run, struct store_gc_result *ret_result,
                    struct err *err)
{
    struct clock_src clock = clock_system();
    struct store_gc_opts opts = {.is_dry_run = is_dry_run,
                                 .now_ns = clock.wall_ns(clock.ctx) + later_s * NS_PER_S,
                                 .grace_s = STORE_GRACE_S,
                                 .partial_grace_s = STORE_PARTIAL_GRACE_S};
    return store_gc(&scratch_arena, &store, &opts, ret_result, err);
}

static struct store_gc_result gc_ok(int64_t later_s, bool is_dry_run)
{
    struct store_gc_result result;
    PASSES(gc_later(later_s, is_dry_run, &result, ERR));
    return result;
}

TEST_WITH(test_only_old_and_unnamed_blobs_go, setup, teardown)
{
    struct digest_value value;
    struct blob kept = add("kept"), loose = add("loose");
    const char *path = fs_join(&scratch_arena, *state, "incoming/file");
    scratch_write(path, STR_LIT("with an alias"));
    PASSES(store_add_file(&store, path, NULL, &value, ERR));
    refer("a", &kept);
    struct store_gc_result result = gc_ok(DAY_S - 60, false);
    assert_int_equal(result.n, 0);
    assert_int_equal(result.n_kept, 1);
    assert_int_equal(result.n_young, 2);
    assert_true(is_there(&loose));
    struct store_gc_result would = gc_ok(DAY_S + 60, true);
    assert_true(is_there(&loose));
    result = gc_ok(DAY_S + 60, false);
    assert_int_equal(would.n, 3);
    assert_int_equal(result.n, 3);
    assert_int_equal(would.bytes, result.bytes);
    for (size_t idx = 0; idx < 3; idx++) {
        assert_string_equal(would.items[idx].name, result.items[idx].name);
        assert_false(fs_exists(store_path(&store, result.items[idx].name)));
    }
    assert_int_equal(result.items[2].kind, GC_ALIAS);
    assert_int_equal(result.bytes, 5 + 13 + SHA256_HEX_SIZE);
    assert_true(is_there(&kept));
    assert_true(fs_exists(path)); /* a person's file is not ours to remove */
    PASSES(store_ref_drop(&store, "dataset", "a", ERR));
    assert_int_equal(gc_ok(DAY_S + 60, false).n, 1);
    assert_false(is_there(&kept));
}

TEST_WITH(test_seen_again_is_young, setup, teardown)
{
    struct blob blob = add("twice");
    const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    struct store_gc_opts opts = {.grace_s = DAY_S, .partial_grace_s = DAY_S};
    struct clock_src clock = clock_system();
    struct store_gc_result result;
    const char *path =
        store_path(&store, arena_printf(&scratch_arena, "blobs/sha256/%s", blob.hex));
    assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
    add("twice");
    opts.now_ns = clock.wall_ns(clock.ctx);
    PASSES(store_gc(&scratch_arena, &store, &opts, &result, ERR));
    assert_true(is_there(&blob));
    assert_int_equal(result.n_young, 1);
}

TEST_WITH(test_leftovers, setup, teardown)
{
    const char *busy = store_partial(&store, "busy"), *idle = store_partial(&store, "idle");
    PASSES(fs_mkdir_p(busy, ERR));
    PASSES(fs_mkdir_p(idle, ERR));
    scratch_write(fs_join(&scratch_arena, busy, "data"), STR_LIT("12345"));
    scratch_write(fs_join(&scratch_arena, idle, "data"), STR_LIT("1234567"));
    scratch_write(store_path(&store, "tmp/XXabcd"), STR_LIT("dead"));
    scratch_write(store_path(&store, "quarantine/x"), STR_LIT("bad"));
    CLEANUP(fd) int fd = scratch_create(fs_join(&scratch_arena, busy, "lock"));
    assert_int_equal(flock(fd, LOCK_EX), 0);
    struct store_gc_result result = gc_ok(2 * DAY_S, false);
    assert_int_equal(result.n, 2); /* tmp and quarantine */
    assert_int_equal(result.bytes, 7);
    assert_int_equal(result.n_busy, 1);
    assert_int_equal(result.n_young, 1);
    result = gc_ok(8 * DAY_S, false);
    assert_int_equal(result.n, 1);
    assert_int_equal(result.items[0].kind, GC_PARTIAL);
    assert_int_equal(result.bytes, 7);
    assert_false(fs_exists(idle));
    assert_true(fs_exists(busy));
}

TEST_WITH(test_not_while_another_has_it_open, setup, teardown)
{
    struct store other = STORE_EMPTY;
    struct store_gc_result result;
    struct blob loose = add("loose");
    PASSES(store_open(&scratch_arena, *state, &other, ERR));
    FAILS(gc_later(2 * DAY_S, false, &result, ERR), ERR_USAGE);
    assert_true(is_there(&loose));
    assert_int_equal(gc_ok(2 * DAY_S, true).n, 1); /* asking is harmless */
    store_close(&other);
    assert_int_equal(gc_ok(2 * DAY_S, false).n, 1);
    assert_false(is_there(&loose));
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
