/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "sys/digest_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/rng.h"
#include "sys/tree.h"
#include "tests/unit/scratch.h"

#define N_MANY     UINT64_C(100000)
#define N_CHILDREN 4
#define N_SAVES    30
#define N_KILLS    25
#define DAY_NS     (INT64_C(86400) * NS_PER_S)
#define START_NS   (20000 * DAY_NS)

/* ---- a clock that the test sets ---- */

static int64_t wall_ns = START_NS;

static int64_t read_wall(void *ctx UNUSED)
{
    return wall_ns;
}

static struct clock_src test_clock(void)
{
    struct clock_src clock = clock_system();
    clock.wall_ns = read_wall;
    return clock;
}

/* The machine's clock, some seconds later: files that were just written are settled. */
static int64_t read_later(void *ctx UNUSED)
{
    struct clock_src clock = clock_system();
    return clock.wall_ns(clock.ctx) + 10 * NS_PER_S;
}

static struct clock_src later_clock(void)
{
    struct clock_src clock = clock_system();
    clock.wall_ns = read_later;
    return clock;
}

/* ---- helpers ---- */

static const char *cache_path(void **state)
{
    return fs_join(&scratch_arena, *state, "digests");
}

static struct digest_cache *open_cache(const char *path, struct clock_src clock)
{
    return digest_cache_open(path, clock);
}

static void save(struct digest_cache *cache)
{
    assert_true(digest_cache_save(cache));
}

static struct digest_key key_of(uint64_t number)
{
    return (struct digest_key){.device = number % 3,
                               .inode = number,
                               .size_bytes = number * 7,
                               .mtime_ns = (int64_t)number,
                               .ctime_ns = (int64_t)number + 1};
}

/* Digests that follow from the key, so that a wrong one is seen. */
static struct digest_value value_of(uint64_t number)
{
    struct digest_value value = {.size_bytes = number * 7};
    for (size_t idx = 0; idx < SHA256_BYTES; idx++) {
        value.sha256[idx] = (uint8_t)(number * 31 + idx);
    }
    for (size_t idx = 0; idx < MD5_BYTES; idx++) {
        value.md5[idx] = (uint8_t)(number * 17 + idx);
    }
    return value;
}

static void add(struct digest_cache *cache, uint64_t number, unsigned kinds)
{
    struct digest_key key = key_of(number);
    struct digest_value value = value_of(number);
    digest_cache_add(cache, &key, kinds, &value);
}

/* Found with the right digest, or not found; never a wrong one. */
static bool finds(const struct digest_cache *cache, uint64_t number, unsigned kinds)
{
    struct digest_key key = key_of(number);
    struct digest_value wanted = value_of(number), value;
    if (!digest_cache_find(cache, &key, kinds, &value)) {
        return false;
    }
    assert_int_equal(value.size_bytes, wanted.size_bytes);
    if (kinds & DIGEST_SHA256) {
        assert_memory_equal(value.sha256, wanted.sha256, SHA256_BYTES);
    }
    if (kinds & DIGEST_MD5) {
        assert_memory_equal(value.md5, wanted.md5, MD5_BYTES);
    }
    return true;
}

/* Of the file on the disk. */
static size_t n_records(const char *path)
{
    const size_t others = sizeof(DIGEST_CACHE_MAGIC) - 1 + DIGEST_CACHE_CRC_BYTES;
    struct stat info;
    if (stat(path, &info) < 0) {
        return 0;
    }
    assert_int_equal(((size_t)info.st_size - others) % sizeof(struct digest_record), 0);
    return ((size_t)info.st_size - others) / sizeof(struct digest_record);
}

/* ---- one process ---- */

TEST_IN_SCRATCH(test_add_save_find)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    const unsigned both = DIGEST_MD5 | DIGEST_SHA256;
    assert_int_equal(n_records(cache_path(state)), 0);
    assert_false(finds(cache, 1, DIGEST_SHA256));
    add(cache, 1, DIGEST_SHA256);
    add(cache, 2, DIGEST_MD5);
    add(cache, 3, both);
    save(cache);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(n_records(cache_path(state)), 4);
        assert_true(finds(cache, 1, DIGEST_SHA256));
        assert_false(finds(cache, 1, DIGEST_MD5));
        assert_false(finds(cache, 1, both));
        assert_true(finds(cache, 2, DIGEST_MD5));
        assert_false(finds(cache, 2, DIGEST_SHA256));
        assert_true(finds(cache, 3, both));
        assert_false(finds(cache, 4, DIGEST_SHA256));
        digest_cache_free(cache); /* the second round: from the disk */
        cache = open_cache(cache_path(state), test_clock());
    }
}

TEST_IN_SCRATCH(test_each_part_of_the_key_counts)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    struct digest_value value;
    add(cache, 5, DIGEST_SHA256);
    save(cache);
    for (size_t idx = 0; idx < 5; idx++) {
        struct digest_key key = key_of(5);
        uint64_t words[5];
        memcpy(words, &key, sizeof(words));
        words[idx]++;
        memcpy(&key, words, sizeof(key));
        assert_false(digest_cache_find(cache, &key, DIGEST_SHA256, &value));
    }
    assert_true(finds(cache, 5, DIGEST_SHA256));
}

/* A file that was changed takes the place of what it was. */
TEST_IN_SCRATCH(test_newer_replaces)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    struct digest_key key = key_of(9);
    struct digest_value value = value_of(9), found;
    add(cache, 9, DIGEST_SHA256);
    save(cache);
    key.ctime_ns += 100;
    value.sha256[0] ^= 1;
    digest_cache_add(cache, &key, DIGEST_SHA256, &value);
    digest_cache_add(cache, &key, DIGEST_SHA256, &value); /* a second name of it */
    save(cache);
    assert_int_equal(n_records(cache_path(state)), 1);
    assert_false(finds(cache, 9, DIGEST_SHA256));
    assert_true(digest_cache_find(cache, &key, DIGEST_SHA256, &found));
    assert_memory_equal(found.sha256, value.sha256, SHA256_BYTES);
}

TEST_IN_SCRATCH(test_many)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    for (int part = 0; part < 2; part++) {
        for (uint64_t number = (uint64_t)part; number < N_MANY; number += 2) {
            add(cache, number, DIGEST_SHA256);
        }
        save(cache);
    }
    assert_int_equal(n_records(cache_path(state)), N_MANY);
    for (uint64_t number = 0; number < N_MANY; number++) {
        assert_true(finds(cache, number, DIGEST_SHA256));
    }
    for (uint64_t number = N_MANY; number < 2 * N_MANY; number++) {
        assert_false(finds(cache, number, DIGEST_SHA256));
    }
}

TEST_IN_SCRATCH(test_a_year_is_the_end)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    add(cache, 1, DIGEST_SHA256);
    save(cache);
    wall_ns += DIGEST_CACHE_DAYS * DAY_NS;
    assert_true(finds(cache, 1, DIGEST_SHA256));
    wall_ns += DAY_NS;
    assert_false(finds(cache, 1, DIGEST_SHA256));
    add(cache, 2, DIGEST_SHA256);
    save(cache);
    assert_int_equal(n_records(cache_path(state)), 1); /* and is gone from the disk */
    wall_ns = START_NS;
}

TEST_IN_SCRATCH(test_settled)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), test_clock());
    struct digest_key key = {.mtime_ns = START_NS - 3 * NS_PER_S,
                             .ctime_ns = START_NS - 3 * NS_PER_S};
    assert_true(digest_cache_is_settled(cache, &key, 2 * NS_PER_S));
    assert_false(digest_cache_is_settled(cache, &key, 3 * NS_PER_S));
    key.ctime_ns = START_NS - NS_PER_S;
    assert_false(digest_cache_is_settled(cache, &key, 2 * NS_PER_S));
    key.ctime_ns = START_NS + 100 * NS_PER_S; /* a clock that went backwards */
    assert_false(digest_cache_is_settled(cache, &key, 2 * NS_PER_S));
    CLEANUP(fd) int fd = open(*state, O_RDONLY | O_CLOEXEC);
    assert_int_equal(digest_cache_slack_ns(fd), 2 * NS_PER_S);
    CLEANUP(fd) int proc = open("/proc", O_RDONLY | O_CLOEXEC);
    assert_int_equal(digest_cache_slack_ns(proc), 120 * NS_PER_S);
}

/* ---- damage ---- */

/* Nothing wrong is returned, and the next save writes a valid cache. */
static void check_damaged(const char *path)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(path, test_clock());
    for (uint64_t number = 0; number < 20; number++) {
        finds(cache, number, DIGEST_SHA256);
    }
    add(cache, 100, DIGEST_SHA256);
    save(cache);
    assert_true(finds(cache, 100, DIGEST_SHA256));
    digest_cache_free(cache);
    cache = open_cache(path, test_clock());
    assert_true(finds(cache, 100, DIGEST_SHA256));
    for (uint64_t number = 0; number < 20; number++) {
        finds(cache, number, DIGEST_SHA256);
    }
}

static struct str make_small(const char *path)
{
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(path, test_clock());
    for (uint64_t number = 0; number < 20; number++) {
        add(cache, number, DIGEST_SHA256);
    }
    save(cache);
    return scratch_read(path);
}

TEST_IN_SCRATCH(test_flipped_and_cut)
{
    const char *path = cache_path(state);
    struct str whole = make_small(path);
    char *bytes = arena_alloc(&scratch_arena, whole.len, 1);
    log_set_level(LOG_ERROR);
    for (size_t at = 0; at < whole.len; at++) {
        memcpy(bytes, whole.ptr, whole.len);
        bytes[at] ^= (char)(1 << (at % 8));
        scratch_write(path, (struct str){bytes, whole.len});
        check_damaged(path);
    }
    for (size_t len = 0; len < whole.len; len += 13) {
        scratch_write(path, (struct str){whole.ptr, len});
        check_damaged(path);
    }
    log_set_level(LOG_INFO);
}

/* ---- several processes ---- */

TEST_IN_SCRATCH(test_the_other_ones_records_stay)
{
    CLEANUP(digest_cache) struct digest_cache *one = open_cache(cache_path(state), test_clock());
    CLEANUP(digest_cache) struct digest_cache *two = open_cache(cache_path(state), test_clock());
    add(one, 1, DIGEST_SHA256);
    add(two, 2, DIGEST_SHA256);
    save(one);
    save(two);
    assert_false(finds(one, 2, DIGEST_SHA256)); /* it has not looked again */
    assert_true(finds(two, 1, DIGEST_SHA256));
    assert_true(finds(two, 2, DIGEST_SHA256));
}

static int save_many(const char *path, uint64_t child)
{
    struct digest_cache *cache = digest_cache_open(path, test_clock());
    for (uint64_t round = 0; round < N_SAVES; round++) {
        add(cache, 1000 * child + round, DIGEST_SHA256);
        if (!digest_cache_save(cache)) {
            return 2;
        }
    }
    digest_cache_free(cache);
    return 0;
}

TEST_IN_SCRATCH(test_savers_at_once)
{
    const char *path = cache_path(state);
    pid_t pids[N_CHILDREN];
    for (uint64_t child = 0; child < N_CHILDREN; child++) {
        pids[child] = fork();
        if (pids[child] == 0) {
            _exit(save_many(path, child));
        }
    }
    for (size_t child = 0; child < N_CHILDREN; child++) {
        int status = -1;
        assert_int_equal(waitpid(pids[child], &status, 0), pids[child]);
        assert_int_equal(status, 0);
    }
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(path, test_clock());
    assert_int_equal(n_records(path), N_CHILDREN * N_SAVES);
    for (uint64_t child = 0; child < N_CHILDREN; child++) {
        for (uint64_t round = 0; round < N_SAVES; round++) {
            assert_true(finds(cache, 1000 * child + round, DIGEST_SHA256));
        }
    }
}

static NORETURN void save_for_ever(const char *path, uint64_t first)
{
    struct digest_cache *cache = digest_cache_open(path, test_clock());
    for (uint64_t number = first;; number++) {
        add(cache, number, DIGEST_SHA256);
        if (!digest_cache_save(cache)) {
            _exit(2);
        }
    }
}

/* Killed at any moment, the file on the disk is valid: nothing that was saved is lost. */
TEST_IN_SCRATCH(test_killed_savers)
{
    const char *path = cache_path(state);
    struct rng rng;
    size_t n_before = 0;
    rng_init(&rng, 8);
    for (uint64_t idx = 0; idx < N_KILLS; idx++) {
        struct timespec wait = {0, (long)rng_below(&rng, 20 * NS_PER_MS)};
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            save_for_ever(path, idx * 1000000);
        }
        nanosleep(&wait, NULL);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        CLEANUP(digest_cache) struct digest_cache *cache = open_cache(path, test_clock());
        assert_true(n_records(path) >= n_before);
        n_before = n_records(path);
    }
}

/* ---- trees ---- */

static struct pool *pool;

static struct tree_verify_result verify(const char *folder, struct digest_cache *cache,
                                        const struct tree_list *list)
{
    struct tree_opts opts = {
        .folder = folder, .pool = pool, .n_threads = 2, .kinds = DIGEST_SHA256, .cache = cache};
    struct tree_verify_result result;
    PASSES(tree_verify(&scratch_arena, &opts, list, &result, ERR));
    return result;
}

static struct tree_list make_tree(const char *folder)
{
    struct tree_opts opts = {
        .folder = folder, .pool = pool, .n_threads = 2, .kinds = DIGEST_SHA256};
    struct tree_list list;
    PASSES(fs_mkdir_p(folder, ERR));
    for (int idx = 0; idx < 200; idx++) {
        const char *name = arena_printf(&scratch_arena, "%03d", idx);
        scratch_write(fs_join(&scratch_arena, folder, name), str_of(name));
    }
    PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
    return list;
}

TEST_IN_SCRATCH(test_quick_reads_only_what_changed)
{
    const char *folder = fs_join(&scratch_arena, *state, "tree");
    const char *path = fs_join(&scratch_arena, folder, "017");
    struct tree_list list;
    struct stat info;
    PASSES(pool_new(2, &pool, ERR));
    list = make_tree(folder);
    CLEANUP(digest_cache) struct digest_cache *cache = open_cache(cache_path(state), later_clock());
    assert_int_equal(verify(folder, cache, &list).n_cached, 0);
    save(cache);
    struct tree_verify_result result = verify(folder, cache, &list);
    assert_int_equal(result.n_cached, 200);
    assert_int_equal(result.n_bytes_read, 0);
    assert_int_equal(result.differences.n, 0);
    /* Other bytes, the same size, and the old mtime restored, as somebody hiding the change might do. */
    assert_int_equal(stat(path, &info), 0);
    scratch_write(path, STR_LIT("XYZ"));
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    result = verify(folder, cache, &list);
    assert_int_equal(result.n_cached, 199);
    assert_int_equal(result.n_bytes_read, 3);
    assert_int_equal(result.differences.n, 1);
    assert_string_equal(result.differences.items[0].path, "017");
    pool_free(pool);
}

/* Files that were written a moment ago are not recorded: they could change in the same tick. */
TEST_IN_SCRATCH(test_racy_files_are_not_recorded)
{
    const char *folder = fs_join(&scratch_arena, *state, "tree");
    struct tree_list list;
    PASSES(pool_new(2, &pool, ERR));
    list = make_tree(folder);
    CLEANUP(digest_cache)
    struct digest_cache *cache = open_cache(cache_path(state), clock_system());
    verify(folder, cache, &list);
    save(cache);
    assert_int_equal(n_records(cache_path(state)), 0);
    assert_int_equal(verify(folder, cache, &list).n_cached, 0);
    pool_free(pool);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
