/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes at once, and those that are killed, are in tests/integration/test_store.sh. */
#include "unit.h"

#include "store/store.h"

#include <sys/stat.h>

#include "base/clock.h"
#include "tests/unit/scratch.h"

static struct store open_store(const char *folder)
{
    struct store store = STORE_EMPTY;
    PASSES(store_open(&scratch_arena, folder, &store, ERR));
    return store;
}

static const char *in_folder(void **state, const char *name)
{
    return fs_join(&scratch_arena, *state, name);
}

static const char *write_file(void **state, const char *name, const char *text)
{
    const char *path = in_folder(state, name);
    scratch_write(path, str_of(text));
    return path;
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode;
}

/* ---- opening ---- */

TEST_IN_SCRATCH(test_open_makes_a_store)
{
    struct store store = open_store(in_folder(state, "a/b/store"));
    assert_true(fs_is_dir(store_path(&store, "blobs/sha256")));
    store_close(&store);
    store = open_store(in_folder(state, "a/b/store"));
    store_close(&store);
}

TEST_IN_SCRATCH(test_open_refuses_other_folders)
{
    struct store store = STORE_EMPTY;
    write_file(state, "thesis.tex", "dear");
    FAILS_WITH(store_open(&scratch_arena, *state, &store, ERR), ERR_USAGE, "thesis.tex");
    assert_false(fs_exists(in_folder(state, "blobs")));
}

/* ---- blobs ---- */

TEST_IN_SCRATCH(test_add_file)
{
    struct store store = open_store(in_folder(state, "store"));
    const char *path = write_file(state, "abc", "abc");
    struct digest_value value;
    char md5[MD5_HEX_SIZE], sha256[SHA256_HEX_SIZE];
    uint8_t found[SHA256_BYTES];
    uint64_t size_bytes = 0;
    PASSES(store_add_file(&store, path, NULL, &value, ERR));
    hex_encode(value.md5, MD5_BYTES, md5);
    hex_encode(value.sha256, SHA256_BYTES, sha256);
    /* Source: RFC 1321 section A.5; FIPS 180-2 appendix B.1. */
    assert_string_equal(md5, "900150983cd24fb0d6963f7d28e17f72");
    assert_string_equal(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(store_has(&store, value.sha256, &size_bytes));
    assert_int_equal(size_bytes, 3);
    assert_int_equal(mode_of(store_blob_path(&store, value.sha256)) & 07777, 0444);
    assert_true(str_eq_z(scratch_read(store_blob_path(&store, value.sha256)), "abc"));
    assert_true(str_eq_z(scratch_read(path), "abc")); /* the file itself stays */
    PASSES(store_find_md5(&store, value.md5, found, ERR));
    assert_memory_equal(found, value.sha256, SHA256_BYTES);
    PASSES(store_add_file(&store, path, NULL, &value, ERR)); /* again */
    PASSES(store_add_text(&store, STR_LIT("abc"), found, ERR));
    assert_memory_equal(found, value.sha256, SHA256_BYTES);
    struct fs_names left;
    PASSES(fs_list(&scratch_arena, store_path(&store, "tmp"), &left, ERR));
    assert_int_equal(left.n, 0);
    store_close(&store);
}

TEST_IN_SCRATCH(test_absent)
{
    struct store store = open_store(in_folder(state, "store"));
    const uint8_t none[SHA256_BYTES] = {1};
    uint8_t found[SHA256_BYTES];
    struct digest_value value;
    assert_false(store_has(&store, none, NULL));
    FAILS(store_find_md5(&store, none, found, ERR), ERR_NOT_FOUND);
    FAILS(store_add_file(&store, in_folder(state, "none"), NULL, &value, ERR), ERR_NOT_FOUND);
    FAILS(store_add_file(&store, *state, NULL, &value, ERR), ERR_IO);
    store_close(&store);
}

static struct digest_value digest_of(const char *path)
{
    struct digest_value value;
    PASSES(digest_file(path, DIGEST_MD5 | DIGEST_SHA256, &value, ERR));
    return value;
}

TEST_IN_SCRATCH(test_adopt_refusals)
{
    struct store store = open_store(in_folder(state, "store"));
    const char *path = write_file(state, "store/tmp/one", "one");
    struct digest_value value = digest_of(path);
    value.size_bytes++;
    FAILS(store_adopt(&store, path, &value, ERR), ERR_INTEGRITY);
    assert_true(fs_exists(path));
    value.size_bytes--;
    assert_int_equal(link(path, in_folder(state, "second-name")), 0);
    FAILS(store_adopt(&store, path, &value, ERR), ERR_IO);
    assert_int_equal(unlink(in_folder(state, "second-name")), 0);
    assert_int_equal(symlink("one", in_folder(state, "store/tmp/link")), 0);
    FAILS(store_adopt(&store, in_folder(state, "store/tmp/link"), &value, ERR), ERR_IO);
    assert_false(store_has(&store, value.sha256, NULL));
    PASSES(store_adopt(&store, path, &value, ERR));
    assert_false(fs_exists(path));
    assert_true(store_has(&store, value.sha256, NULL));
    store_close(&store);
}

TEST_IN_SCRATCH(test_adopt_over_a_cut_blob)
{
    struct store store = open_store(in_folder(state, "store"));
    const char *path = write_file(state, "store/tmp/whole", "whole");
    struct digest_value value = digest_of(path);
    scratch_write(store_blob_path(&store, value.sha256), STR_LIT("wh"));
    PASSES(store_adopt(&store, path, &value, ERR));
    assert_true(str_eq_z(scratch_read(store_blob_path(&store, value.sha256)), "whole"));
    store_close(&store);
}

TEST_IN_SCRATCH(test_one_md5_of_two_files)
{
    struct store store = open_store(in_folder(state, "store"));
    const char *first = write_file(state, "store/tmp/first", "first");
    const char *second = write_file(state, "store/tmp/second", "second");
    struct digest_value value = digest_of(first);
    struct digest_value other = digest_of(second);
    uint8_t found[SHA256_BYTES];
    PASSES(store_adopt(&store, first, &value, ERR));
    memcpy(other.md5, value.md5, MD5_BYTES); /* as if somebody had made a collision */
    FAILS(store_adopt(&store, second, &other, ERR), ERR_INTEGRITY);
    PASSES(store_find_md5(&store, value.md5, found, ERR));
    assert_memory_equal(found, value.sha256, SHA256_BYTES);
    /* An alias whose blob is gone, or that is damaged, is ignored. */
    assert_int_equal(unlink(store_blob_path(&store, value.sha256)), 0);
    FAILS(store_find_md5(&store, value.md5, found, ERR), ERR_NOT_FOUND);
    store_close(&store);
}

/* ---- names ---- */

TEST(test_names_go_there_and_back)
{
    static const char *const NAMES[] = {"..",      ".",      "../../etc/passwd",
                                        "a/b:c@1", "%2E%2E", "\xff\x01\n\"",
                                        "...",     "-rf",    "docker.io/paddlepaddle/paddle:2.0.0"};
    char all[256] = {0};
    char *component;
    for (EACH(row, NAMES)) {
        PASSES(store_escape(&scratch_arena, *row, &component, ERR));
        assert_null(strchr(component, '/'));
        assert_true(component[0] != '.');
        assert_string_equal(store_unescape(&scratch_arena, component), *row);
    }
    for (int c = 1; c < 256; c++) {
        all[0] = (char)c;
        PASSES(store_escape(&scratch_arena, all, &component, ERR));
        assert_string_equal(store_unescape(&scratch_arena, component), all);
    }
    FAILS(store_escape(&scratch_arena, "", &component, ERR), ERR_USAGE);
    memset(all, 'a', STORE_NAME_MAX + 1);
    FAILS(store_escape(&scratch_arena, all, &component, ERR), ERR_USAGE);
    /* No second spelling of a name. */
    assert_null(store_unescape(&scratch_arena, "%41"));
    assert_null(store_unescape(&scratch_arena, "%2f"));
    assert_null(store_unescape(&scratch_arena, "a%2"));
    assert_null(store_unescape(&scratch_arena, "..json"));
    assert_null(store_unescape(&scratch_arena, "%00"));
}

TEST_IN_SCRATCH(test_partial_keys)
{
    struct store store = open_store(in_folder(state, "store"));
    char longer[400];
    const char *a, *b;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    a = store_partial(&store, longer);
    longer[sizeof(longer) - 2] = 'y';
    b = store_partial(&store, longer);
    assert_string_not_equal(a, b);
    assert_string_not_equal(store_partial(&store, ""), store_partial(&store, "."));
    assert_string_equal(store_partial(&store, "../x"), store_path(&store, "partial/%2E.%2Fx"));
    assert_true(strlen(strrchr(a, '/')) < 256);
    store_close(&store);
}

/* ---- references ---- */

static struct str ref_text(const uint8_t *sha256)
{
    char hex[SHA256_HEX_SIZE];
    hex_encode(sha256, SHA256_BYTES, hex);
    return str_printf(&scratch_arena, "{\"why\": \"a test\", \"blobs\": [\"sha256:%s\"]}", hex);
}

TEST_IN_SCRATCH(test_refs)
{
    struct store store = open_store(in_folder(state, "store"));
    uint8_t sha256[SHA256_BYTES];
    const uint8_t none[SHA256_BYTES] = {7};
    struct fs_names names;
    struct str text;
    PASSES(store_ref_list(&store, "dataset", &names, ERR));
    assert_int_equal(names.n, 0);
    PASSES(store_add_text(&store, STR_LIT("layer"), sha256, ERR));
    PASSES(store_ref_put(&store, "dataset", "b", ref_text(sha256), ERR));
    PASSES(store_ref_put(&store, "dataset", "a/../:b", ref_text(sha256), ERR));
    PASSES(store_ref_list(&store, "dataset", &names, ERR));
    assert_int_equal(names.n, 2);
    assert_string_equal(names.items[0], "a/../:b");
    assert_string_equal(names.items[1], "b");
    PASSES(store_ref_get(&store, "dataset", "a/../:b", &text, ERR));
    assert_true(str_eq(text, ref_text(sha256)));
    PASSES(store_ref_drop(&store, "dataset", "a/../:b", ERR));
    FAILS(store_ref_get(&store, "dataset", "a/../:b", &text, ERR), ERR_NOT_FOUND);
    FAILS(store_ref_drop(&store, "dataset", "a/../:b", ERR), ERR_NOT_FOUND);
    FAILS(store_ref_put(&store, "dataset", "c", ref_text(none), ERR), ERR_NOT_FOUND);
    assert_int_equal(store_ref_kinds(&store, &names, ERR), 0);
    assert_int_equal(names.n, 1);
    assert_string_equal(names.items[0], "dataset");
    store_close(&store);
}

TEST_IN_SCRATCH(test_bad_refs)
{
    static const char *const TEXTS[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"blobs\": 1}",
                                        "{\"blobs\": [\"sha256:12\"]}",
                                        "{\"blobs\": [\"md5:900150983cd24fb0d6963f7d28e17f72\"]}",
                                        "{\"blobs\": []} x"};
    struct store store = open_store(in_folder(state, "store"));
    struct fs_names names;
    for (EACH(row, TEXTS)) {
        FAILS(store_ref_put(&store, "image", "x", str_of(*row), ERR), ERR_ANY);
        assert_true(ERR->code == ERR_MANIFEST || ERR->code == ERR_PARSE);
    }
    PASSES(fs_mkdir_p(store_path(&store, "refs/image"), ERR));
    scratch_write(store_path(&store, "refs/image/a b.json"), STR_LIT("{\"blobs\": []}"));
    FAILS(store_ref_list(&store, "image", &names, ERR), ERR_INTEGRITY);
    store_close(&store);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
