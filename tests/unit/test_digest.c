/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <unistd.h>

#include "base/fs.h"
#include "codec/digest.h"

/* Source: RFC 1321 A.5 and FIPS 180-2 appendix B. */
TEST(known_answers)
{
    static const struct {
        const char *text, *md5, *sha256;
    } ROWS[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    for (EACH(row, ROWS)) {
        struct digest_value value;
        char md5[MD5_HEX_SIZE], sha256[SHA256_HEX_SIZE];
        digest_start(&digest, DIGEST_MD5 | DIGEST_SHA256);
        for (const char *c = row->text; *c; c++) {
            digest_update(&digest, c, 1);
        }
        value = digest_finish(&digest);
        hex_encode(value.md5, MD5_BYTES, md5);
        hex_encode(value.sha256, SHA256_BYTES, sha256);
        assert_string_equal(md5, row->md5);
        assert_string_equal(sha256, row->sha256);
        assert_int_equal(value.size_bytes, strlen(row->text));
    }
}

TEST(only_what_was_asked_for)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    static const uint8_t ZERO[MD5_BYTES];
    struct digest_value value;
    uint8_t again[SHA256_BYTES];
    digest_start(&digest, DIGEST_SHA256);
    digest_update(&digest, "x", 1);
    /* A second start forgets the first. */
    digest_start(&digest, DIGEST_SHA256);
    digest_update(&digest, "abc", 3);
    value = digest_finish(&digest);
    assert_memory_equal(value.md5, ZERO, MD5_BYTES);
    sha256_of(STR_LIT("abc"), again);
    assert_memory_equal(value.sha256, again, SHA256_BYTES);
}

TEST(a_file_in_large_reads)
{
    char folder[] = "/tmp/reperf-digest.XXXXXX";
    struct digest_value of_file;
    uint8_t of_memory[SHA256_BYTES];
    size_t len = (3u << 20) + 17;
    char *bytes = arena_alloc(ARENA, len, 1);
    const char *path;
    assert_non_null(mkdtemp(folder));
    path = fs_join(ARENA, folder, "big");
    for (size_t idx = 0; idx < len; idx++) {
        bytes[idx] = (char)(idx * 2654435761u >> 13);
    }
    PASSES(fs_write_atomic(path, (struct str){bytes, len}, ERR));
    PASSES(digest_file(path, DIGEST_SHA256, &of_file, ERR));
    sha256_of((struct str){bytes, len}, of_memory);
    assert_memory_equal(of_file.sha256, of_memory, SHA256_BYTES);
    assert_int_equal(of_file.size_bytes, len);
    FAILS(digest_file(folder, DIGEST_SHA256, &of_file, ERR), ERR_IO);
    FAILS(digest_file("/nonexistent/file", DIGEST_MD5, &of_file, ERR), ERR_NOT_FOUND);
    PASSES(fs_remove_tree(folder, ERR));
}

TEST(hex_is_exact)
{
    static const char *const BAD[] = {"", "0", "000", "00000", "0g12", "AB12", " 012", "0x12"};
    uint8_t bytes[2];
    PASSES(hex_decode(STR_LIT("0aff"), 2, bytes, ERR));
    assert_int_equal(bytes[0], 0x0a);
    assert_int_equal(bytes[1], 0xff);
    for (EACH(row, BAD)) {
        FAILS(hex_decode(str_of(*row), 2, bytes, ERR), ERR_PARSE);
    }
}
