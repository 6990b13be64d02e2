/* SPDX-License-Identifier: Apache-2.0 */
/* Choices kept in files: found under their key and no other, refused when a byte is wrong, overwritten. */
#include "unit.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "core/plan_book.h"

#define KEY   "cudnn 9.19.0; NVIDIA H100 80GB HBM3; conv_fwd f16 n256 c64"
#define OTHER "cudnn 9.19.0; NVIDIA H200; conv_fwd f16 n256 c64"

static char root[] = "/tmp/reperf-plans-XXXXXX";

static char *below(struct arena *arena, const char *name)
{
    return fs_join(arena, root, name);
}

TEST(found_again_under_its_key)
{
    const char *folder = below(ARENA, "a/b");
    const struct plan_choice choice = {"cudnn 62 2=1 12=-3", 123456};
    struct plan_choice found = {0};
    assert_false(plan_cache_find(folder, KEY, &found));
    plan_cache_put(folder, KEY, &choice);
    assert_true(plan_cache_find(folder, KEY, &found));
    assert_string_equal(found.plan, choice.plan);
    assert_int_equal(found.time_ns, choice.time_ns);
    assert_false(plan_cache_find(folder, OTHER, &found));
    const struct plan_choice better = {"cudnn 67", 99};
    plan_cache_put(folder, KEY, &better);
    assert_true(plan_cache_find(folder, KEY, &found));
    assert_string_equal(found.plan, "cudnn 67");
}

TEST(damage_is_refused_and_written_over)
{
    const char *folder = below(ARENA, "damage");
    const struct plan_choice choice = {"cudnn 62 2=1", 5};
    struct plan_choice found = {0};
    struct str text;
    plan_cache_put(folder, KEY, &choice);
    char *path = plan_cache_path(ARENA, folder, KEY);
    PASSES(fs_read(ARENA, path, PLAN_FILE_MAX, &text, ERR));
    log_set_level(LOG_ERROR);
    for (size_t len = 0; len + 1 < text.len; len++) { /* without the line's end it is whole */
        PASSES(fs_write_atomic(path, (struct str){text.ptr, len}, ERR));
        assert_false(plan_cache_find(folder, KEY, &found));
    }
    /* A choice of another key in this one's file. */
    PASSES(fs_read(ARENA, path, PLAN_FILE_MAX, &text, ERR));
    plan_cache_put(folder, OTHER, &choice);
    assert_int_equal(rename(plan_cache_path(ARENA, folder, OTHER), path), 0);
    assert_false(plan_cache_find(folder, KEY, &found));
    log_set_level(LOG_INFO);
    plan_cache_put(folder, KEY, &choice);
    assert_true(plan_cache_find(folder, KEY, &found));
}

TEST(strange_documents_are_refused)
{
    static const char *const BAD[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"schema_version\":2,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":0}",
        "{\"schema_version\":1,\"key\":\"other\",\"plan\":\"p\",\"time_ns\":0}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"\",\"time_ns\":0}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"a\\nb\",\"time_ns\":0}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":-1}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":1.5}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":9007199254740992000}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\"}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"plan\":\"p\",\"time_ns\":0}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":0,\"more\":1}",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":\"p\",\"time_ns\":0} x",
        "{\"schema_version\":1,\"key\":\"k\",\"plan\":3,\"time_ns\":0}",
    };
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        struct plan_choice choice = {.time_ns = -7};
        FAILS(plan_cache_parse(ARENA, str_of(BAD[i]), "k", &choice, ERR), ERR_PARSE);
        assert_int_equal(choice.time_ns, -7);
    }
    struct plan_choice choice = {0};
    PASSES(plan_cache_parse(
        ARENA, STR_LIT("{\"time_ns\":7,\"plan\":\"p\",\"key\":\"k\",\"schema_version\":1}"), "k",
        &choice, ERR));
    assert_int_equal(choice.time_ns, 7);
}

TEST(a_folder_that_cannot_be_written_is_no_error)
{
    const struct plan_choice choice = {"p", 1};
    struct plan_choice found;
    PASSES(fs_write_atomic(below(ARENA, "file"), STR_LIT("x"), ERR));
    log_set_level(LOG_ERROR);
    plan_cache_put(below(ARENA, "file/below"), KEY, &choice);
    assert_false(plan_cache_find(below(ARENA, "file/below"), KEY, &found));
    log_set_level(LOG_INFO);
}

TEST(folder_is_where_caches_are)
{
    assert_int_equal(setenv("XDG_CACHE_HOME", "/x/cache", 1), 0);
    assert_int_equal(setenv("HOME", "/x/home", 1), 0);
    assert_string_equal(plan_cache_folder(ARENA), "/x/cache/reperf/plans");
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0);
    assert_string_equal(plan_cache_folder(ARENA), "/x/home/.cache/reperf/plans");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_string_equal(plan_cache_folder(ARENA), "/x/home/.cache/reperf/plans");
    assert_int_equal(unsetenv("HOME"), 0);
    assert_null(plan_cache_folder(ARENA));
}

static int make_root(void **state UNUSED)
{
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state UNUSED)
{
    struct err err = {0};
    return fs_remove_tree(root, &err);
}

/* What one book has found or made, another takes as text, and finds without the folder. */
TEST(a_book_serves_another)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, PLAN_BOOK_TEXT_MAX);
    struct plan_book one;
    struct plan_book other;
    struct plan_choice found = {0};
    const char *folder = below(ARENA, "book");
    plan_book_open(&one, folder, "a device; a driver");
    plan_book_put(&one, "conv_fwd", &(struct plan_choice){"cudnn 5", 9});
    plan_book_put(&one, "conv_fwd", &(struct plan_choice){"cudnn 2", 7});
    plan_book_put(&one, "linear_fwd", &(struct plan_choice){"cublaslt 00", 3});
    plan_book_close(&one);
    plan_book_open(&one, folder, "a device; a driver");
    assert_true(plan_book_find(&one, "conv_fwd", &found));
    assert_false(plan_book_find(&one, "conv_bwd_data", &found));
    plan_book_write(&one, &text);
    assert_string_equal(text.ptr,
                        "7\tcudnn 2\tconv_fwd\n"); /* what nobody asked for stays in the folder */
    plan_book_open(&other, folder, "a device; another driver");
    assert_false(plan_book_find(&other, "conv_fwd", &found));
    PASSES(plan_book_read(&other, strbuf_str(&text), ERR));
    assert_true(plan_book_find(&other, "conv_fwd", &found));
    assert_string_equal(found.plan, "cudnn 2");
    assert_int_equal(found.time_ns, 7);
    static const char *const BAD[] = {"\n",        "7\n",        "7\tp\n",   "7\tp\t\n",
                                      "x\tp\tc\n", "-1\tp\tc\n", "7\t\tc\n", "7\tp\x01\tc\n"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        FAILS(plan_book_read(&other, str_of(BAD[i]), ERR), ERR_ANY);
        assert_true(ERR->code != ERR_NONE);
    }
    plan_book_close(&one);
    plan_book_close(&other);
}

UNIT_MAIN(make_root, remove_root)
