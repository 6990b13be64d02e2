/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "sys/tree.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tree_text.h"

#define N_THREADS 3
#define N_FILES   500
#define NOBODY    65534
#define HEX_A     "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" /* of "a" */
#define HEX_0     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" /* of "" */
#define MD5_A     "0cc175b9c0f1b6a831c399e269772661"

static struct pool *pool;

/* Only after the first test has forked: ThreadSanitizer wants no threads before. */
static struct pool *the_pool(void)
{
    struct err err = {0};
    int result = pool ? 0 : pool_new(N_THREADS, &pool, &err);
    ASSERT(result == 0);
    return pool;
}

static int group_end(void **state UNUSED)
{
    pool_free(pool);
    return scratch_end();
}

static const char *below(void **state, const char *name)
{
    return fs_join(&scratch_arena, *state, name);
}

static void make(void **state, const char *name, const char *text)
{
    scratch_put(*state, name, str_of(text));
}

static struct tree_opts opts_of(void **state, unsigned kinds)
{
    return (struct tree_opts){
        .folder = *state, .pool = the_pool(), .n_threads = N_THREADS, .kinds = kinds};
}

static void assert_hex(const uint8_t *digest, size_t n_bytes, const char *wanted)
{
    char hex[SHA256_HEX_SIZE];
    hex_encode(digest, n_bytes, hex);
    assert_string_equal(hex, wanted);
}

/* ---- lists ---- */

TEST_IN_SCRATCH(test_list_round_trip)
{
    static const char TEXT[] =
        HEX_0 "  .hidden\n" HEX_A "  a b/c\n\\" HEX_A "  new\\nline\\\\\n" HEX_0 "  z\n";
    struct tree_list list;
    uint8_t written[SHA256_BYTES], own[SHA256_BYTES], of_text[SHA256_BYTES];
    const char *path = below(state, "list");
    PASSES(tree_text_read(tree_list_read, &scratch_arena, STR_LIT(TEXT), &list, ERR));
    assert_int_equal(list.n, 4);
    assert_string_equal(list.files[2].path, "new\nline\\");
    PASSES(tree_list_write(&list, path, written, ERR));
    assert_true(str_eq(scratch_read(path), STR_LIT(TEXT)));
    tree_list_sha256(&list, own);
    sha256_of(STR_LIT(TEXT), of_text);
    assert_memory_equal(written, own, SHA256_BYTES);
    assert_memory_equal(own, of_text, SHA256_BYTES);
    PASSES(tree_list_read(&scratch_arena, path, &list, ERR));
    assert_int_equal(list.n, 4);
    assert_string_equal(list.files[0].path, ".hidden");
    assert_null(list.md5);
    assert_false(list.lacks_sha256);
}

TEST_IN_SCRATCH(test_bad_lists)
{
    static const char *const TEXTS[] = {
        HEX_A "  a",                 /* cut */
        HEX_A " a\n",                /* one blank */
        HEX_A " *a\n",               /* binary mode */
        HEX_A "  \n",                /* no path */
        HEX_A "  /a\n",              /* absolute */
        HEX_A "  a/../b\n",          /* upwards */
        HEX_A "  ./a\n",             /* not clean */
        HEX_A "  a//b\n",            /* empty part */
        HEX_A "  a/\n",              /* a folder */
        HEX_A "  b\n" HEX_A "  a\n", /* order */
        HEX_A "  a\n" HEX_A "  a\n", /* twice */
        HEX_A "  a\\b\n",            /* a backslash, and none first */
        "\\" HEX_A "  ab\n",         /* one first, and none in the path */
        "\\" HEX_A "  a\\tb\n",      /* an escape that is none */
        "CA978112" HEX_A "  a\n",    /* too long */
        MD5_A "  a\n",               /* not SHA-256 */
        "\n",                        /* empty line */
        "\\" HEX_A "  a\r\\n\n",     /* a bare CR and an escape */
        HEX_A "  a\r/../\n",         /* a stray CR does not hide anything */
    };
    struct tree_list list;
    for (EACH(row, TEXTS)) {
        const char *path = below(state, "bad");
        FAILS(tree_text_read(tree_list_read, &scratch_arena, str_of(*row), &list, ERR), ERR_PARSE);
        scratch_write(path, str_of(*row));
        FAILS(tree_list_read(&scratch_arena, path, &list, ERR), ERR_PARSE);
    }
}

/* Longer than the buffer that a list is read through, and a line over its end. */
TEST_IN_SCRATCH(test_long_list)
{
    struct tree_list list = {.n = 30000}, again;
    uint8_t before[SHA256_BYTES], after[SHA256_BYTES];
    list.files = arena_array(&scratch_arena, struct tree_file, list.n);
    for (size_t idx = 0; idx < list.n; idx++) {
        list.files[idx].path = arena_printf(&scratch_arena, "folder/%08zu", idx);
        memset(list.files[idx].sha256, (int)(idx & 255), SHA256_BYTES);
    }
    PASSES(tree_list_write(&list, below(state, "list"), before, ERR));
    PASSES(tree_list_read(&scratch_arena, below(state, "list"), &again, ERR));
    assert_int_equal(again.n, list.n);
    tree_list_sha256(&again, after);
    assert_memory_equal(before, after, SHA256_BYTES);
    char *line = arena_alloc(&scratch_arena, 3u << 20, 1);
    memset(line, 'a', 3u << 20);
    scratch_write(below(state, "line"), (struct str){line, 3u << 20});
    FAILS(tree_list_read(&scratch_arena, below(state, "line"), &again, ERR), ERR_PARSE);
}

TEST_IN_SCRATCH(test_published_lists)
{
    static const char TEXT[] = "D41D8CD98F00B204E9800998ECF8427E *./b/empty\r\n" MD5_A
                               "  a\r\n" MD5_A " *a\r\n\\" MD5_A "  c\\\\d";
    struct tree_list list;
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(TEXT), &list, ERR));
    assert_int_equal(list.n, 3);
    assert_true(list.lacks_sha256);
    assert_string_equal(list.files[0].path, "a");
    assert_string_equal(list.files[1].path, "b/empty");
    assert_string_equal(list.files[2].path, "c\\d");
    assert_hex(list.md5[1], MD5_BYTES, "d41d8cd98f00b204e9800998ecf8427e");
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(HEX_A "  b\n" HEX_0 "  a\n"),
                          &list, ERR));
    assert_false(list.lacks_sha256);
    assert_string_equal(list.files[0].path, "a");
    static const char *const BAD[] = {
        MD5_A "  a\nd41d8cd98f00b204e9800998ecf8427e  a\n", /* two digests */
        MD5_A "  a\n" HEX_A "  b\n",                        /* two kinds */
        MD5_A "  ../a\n", "MD5 (a) = " MD5_A "\n"};
    for (EACH(row, BAD)) {
        FAILS(tree_text_read(tree_sums_read, &scratch_arena, str_of(*row), &list, ERR), ERR_PARSE);
    }
}

/* ---- trees ---- */

static void make_small_tree(void **state)
{
    make(state, "a/x", "a");
    make(state, "a-b", "");
    make(state, "a.b", "a");
    make(state, "ab/deep/er/file", "");
    make(state, "new\nline", "a");
}

TEST_IN_SCRATCH(test_hash_in_path_order)
{
    static const char *const PATHS[] = {"a-b", "a.b", "a/x", "ab/deep/er/file", "new\nline"};
    struct tree_opts opts = opts_of(state, DIGEST_SHA256 | DIGEST_MD5);
    struct tree_list list;
    make_small_tree(state);
    assert_int_equal(mkdir(below(state, "empty-folder"), 0755), 0);
    PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
    assert_int_equal(list.n, ARRAY_LEN(PATHS));
    for (size_t idx = 0; idx < list.n; idx++) {
        assert_string_equal(list.files[idx].path, PATHS[idx]);
    }
    assert_hex(list.files[1].sha256, SHA256_BYTES, HEX_A);
    assert_hex(list.md5[1], MD5_BYTES, MD5_A);
    assert_hex(list.files[0].sha256, SHA256_BYTES, HEX_0);
}

static void verify(void **state, const struct tree_list *expected,
                   struct tree_verify_result *ret_result)
{
    struct tree_opts opts = opts_of(state, 0);
    PASSES(tree_verify(&scratch_arena, &opts, expected, ret_result, ERR));
}

static void assert_fault(const struct tree_difference *difference, enum tree_fault fault,
                         const char *path)
{
    assert_string_equal(TREE_FAULT_NAMES[difference->fault], TREE_FAULT_NAMES[fault]);
    assert_string_equal(difference->path, path);
}

TEST_IN_SCRATCH(test_verify_names_each_fault)
{
    struct tree_opts opts = opts_of(state, DIGEST_SHA256);
    struct tree_list before, after;
    struct tree_differences compared;
    struct tree_verify_result result;
    make_small_tree(state);
    PASSES(tree_hash(&scratch_arena, &opts, &before, ERR));
    verify(state, &before, &result);
    assert_int_equal(result.differences.n, 0);
    assert_int_equal(result.n_checked, 5);
    assert_int_equal(result.n_bytes_read, 3);
    make(state, "0-first", "new");
    make(state, "a.b", "b");
    make(state, "zz/last", "new");
    assert_int_equal(unlink(below(state, "a/x")), 0);
    verify(state, &before, &result);
    assert_int_equal(result.differences.n, 4);
    assert_fault(&result.differences.items[0], TREE_EXTRA, "0-first");
    assert_fault(&result.differences.items[1], TREE_CORRUPT, "a.b");
    assert_fault(&result.differences.items[2], TREE_MISSING, "a/x");
    assert_fault(&result.differences.items[3], TREE_EXTRA, "zz/last");
    PASSES(tree_hash(&scratch_arena, &opts, &after, ERR));
    tree_compare(&scratch_arena, &before, &after, &compared);
    assert_int_equal(compared.n, 4);
    for (size_t idx = 0; idx < 4; idx++) {
        assert_fault(&compared.items[idx], result.differences.items[idx].fault,
                     result.differences.items[idx].path);
    }
}

TEST_IN_SCRATCH(test_verify_by_md5)
{
    struct tree_list list;
    struct tree_verify_result result;
    make(state, "a", "a");
    make(state, "b", "a");
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(MD5_A "  a\n" MD5_A "  b\n"),
                          &list, ERR));
    verify(state, &list, &result);
    assert_int_equal(result.differences.n, 0);
    assert_int_equal(result.n_checked, 2);
    make(state, "b", "B");
    verify(state, &list, &result);
    assert_int_equal(result.differences.n, 1);
    assert_fault(&result.differences.items[0], TREE_CORRUPT, "b");
}

TEST_IN_SCRATCH(test_links)
{
    struct tree_opts opts = opts_of(state, DIGEST_SHA256);
    struct tree_list list;
    make(state, "d/real", "a");
    assert_int_equal(symlink("../d/real", below(state, "d/link")), 0);
    PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
    assert_int_equal(list.n, 2);
    assert_memory_equal(list.files[0].sha256, list.files[1].sha256, SHA256_BYTES);
    static const char *const TARGETS[] = {"/etc/passwd", "../../../../../../../etc/passwd",
                                          "nothing", "../d", "loop"};
    for (EACH(row, TARGETS)) {
        assert_int_equal(symlink(*row, below(state, "d/loop")), 0);
        FAILS_WITH(tree_hash(&scratch_arena, &opts, &list, ERR), ERR_INTEGRITY, "d/loop");
        assert_int_equal(unlink(below(state, "d/loop")), 0);
    }
    assert_int_equal(mkfifo(below(state, "d/pipe"), 0644), 0);
    FAILS_WITH(tree_hash(&scratch_arena, &opts, &list, ERR), ERR_INTEGRITY, "d/pipe");
}

TEST_IN_SCRATCH(test_absent_and_empty)
{
    struct tree_opts opts = opts_of(state, DIGEST_SHA256);
    struct tree_list list;
    PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
    assert_int_equal(list.n, 0);
    opts.folder = below(state, "none");
    FAILS(tree_hash(&scratch_arena, &opts, &list, ERR), ERR_NOT_FOUND);
}

/* Sizes around the borders of blocks and of the buffers; each digest against OpenSSL's own over the whole file. */
TEST_IN_SCRATCH(test_many_sizes)
{
    struct tree_opts opts = opts_of(state, DIGEST_SHA256 | DIGEST_MD5);
    struct tree_list list;
    struct rng rng;
    size_t room = 700000;
    char *bytes = arena_alloc(&scratch_arena, room, 1);
    rng_init(&rng, 11);
    for (size_t idx = 0; idx < room; idx++) {
        bytes[idx] = (char)rng_u64(&rng);
    }
    for (size_t idx = 0; idx < N_FILES; idx++) {
        size_t len = idx < 200 ? idx : idx < 480 ? rng_below(&rng, 20000) : rng_below(&rng, room);
        const char *path = below(state, arena_printf(&scratch_arena, "file-%03zu", idx));
        scratch_write(path, (struct str){bytes + rng_below(&rng, room - len + 1), len});
    }
    for (unsigned kinds = DIGEST_MD5; kinds <= (DIGEST_MD5 | DIGEST_SHA256); kinds++) {
        opts.kinds = kinds;
        PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
        assert_int_equal(list.n, N_FILES);
        for (size_t idx = 0; idx < N_FILES; idx++) {
            struct digest_value value;
            PASSES(digest_file(below(state, list.files[idx].path), kinds, &value, ERR));
            assert_memory_equal(value.sha256, list.files[idx].sha256, SHA256_BYTES);
            assert_int_equal(list.md5 != NULL, (kinds & DIGEST_MD5) != 0);
            if (list.md5) {
                assert_memory_equal(value.md5, list.md5[idx], MD5_BYTES);
            }
        }
    }
}

static void note_progress(void *ctx, uint64_t files_done, uint64_t files_total)
{
    uint64_t *last = ctx;
    assert_true(files_done >= *last && files_done <= files_total);
    *last = files_done;
}

TEST_IN_SCRATCH(test_progress_and_stop)
{
    struct tree_opts opts = opts_of(state, DIGEST_SHA256);
    struct tree_list list;
    uint64_t last = 0;
    make_small_tree(state);
    opts.on_progress = note_progress;
    opts.progress_ctx = &last;
    PASSES(tree_hash(&scratch_arena, &opts, &list, ERR));
    assert_int_equal(last, 5);
    scratch_stop();
    FAILS(tree_hash(&scratch_arena, &opts, &list, ERR), ERR_INTERRUPTED);
    scratch_go_on();
}

/* As a user who is not root, whom the mode stops; 0 when all is as it should be. */
static int check_unreadable(void **state)
{
    static const char LIST[] = HEX_A "  a\n" HEX_A "  a.b\n";
    struct tree_verify_result result;
    struct tree_opts opts;
    struct tree_list list;
    struct err err = {0};
    pool = NULL; /* its threads are the parent's */
    if ((geteuid() == 0 && setuid(NOBODY) < 0) ||
        tree_text_read(tree_list_read, &scratch_arena, STR_LIT(LIST), &list, &err) < 0) {
        return 1;
    }
    opts = opts_of(state, DIGEST_SHA256);
    if (tree_verify(&scratch_arena, &opts, &list, &result, &err) < 0) {
        return 2;
    }
    if (result.differences.n != 1 || result.n_checked != 1 ||
        result.differences.items[0].fault != TREE_UNREADABLE ||
        strcmp(result.differences.items[0].path, "a.b") != 0) {
        return 3;
    }
    if (tree_hash(&scratch_arena, &opts, &list, &err) == 0 || err.code != ERR_IO ||
        !strstr(err.msg, "a.b")) {
        return 4;
    }
    pool_free(opts.pool);
    return 0;
}

TEST_IN_SCRATCH(test_unreadable)
{
    int status = -1;
    make(state, "a", "a");
    make(state, "a.b", "a");
    assert_int_equal(chmod(below(state, "a.b"), 0), 0);
    assert_int_equal(chmod(scratch_folder, 0755), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(check_unreadable(state));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

UNIT_MAIN(scratch_group_start, group_end)
