/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/sign.h"

static char folder[] = "/tmp/reperf-sign.XXXXXX";
static struct arena arena;
static const char *private_path, *public_path;
static char key_id[SIGN_KEY_ID_SIZE];

static int make_key(void **state UNUSED)
{
    struct err err = {0};
    if (!mkdtemp(folder)) {
        return -1;
    }
    private_path = fs_join(&arena, folder, "k");
    public_path = fs_join(&arena, folder, "k.pub");
    return sign_keygen(private_path, public_path, key_id, &err);
}

static int remove_key(void **state UNUSED)
{
    struct err err = {0};
    int result = fs_remove_tree(folder, &err);
    arena_release(&arena);
    return result;
}

static void write_file(const char *path, const char *text, unsigned mode)
{
    PASSES(fs_write_atomic(path, str_of(text), ERR));
    assert_int_equal(chmod(path, mode), 0);
}

TEST(what_is_signed_holds_and_nothing_else)
{
    CLEANUP(sign_key) struct sign_key secret = SIGN_KEY_EMPTY;
    CLEANUP(sign_key) struct sign_key open_part = SIGN_KEY_EMPTY;
    CLEANUP(sign_key) struct sign_key raw = SIGN_KEY_EMPTY;
    uint8_t signature[SIGN_BYTES];
    PASSES(sign_load_private(private_path, &secret, ERR));
    PASSES(sign_load_public(public_path, &open_part, ERR));
    PASSES(sign_from_raw(secret.public_raw, &raw, ERR));
    assert_string_equal(secret.id, key_id);
    assert_string_equal(open_part.id, key_id);
    assert_string_equal(raw.id, key_id);
    PASSES(sign_message(&secret, STR_LIT("117.205 samples/s"), signature, ERR));
    PASSES(sign_check(&raw, STR_LIT("117.205 samples/s"), signature, ERR));
    FAILS(sign_check(&open_part, STR_LIT("117.206 samples/s"), signature, ERR), ERR_INTEGRITY);
    for (size_t bit = 0; bit < 8 * sizeof(signature); bit++) {
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
        FAILS(sign_check(&open_part, STR_LIT("117.205 samples/s"), signature, ERR), ERR_ANY);
        signature[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

/* Source: RFC 8032 section 7.1, test 2. */
TEST(known_answer)
{
    static const char PUBLIC[] = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    static const char SIGNATURE[] =
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
        "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    uint8_t raw[SIGN_PUBLIC_BYTES], signature[SIGN_BYTES];
    PASSES(hex_decode(str_of(PUBLIC), sizeof(raw), raw, ERR));
    PASSES(hex_decode(str_of(SIGNATURE), sizeof(signature), signature, ERR));
    PASSES(sign_from_raw(raw, &key, ERR));
    PASSES(sign_check(&key, STR_LIT("\x72"), signature, ERR));
}

TEST(keys_are_never_overwritten)
{
    const char *other = fs_join(&arena, folder, "other");
    char id[SIGN_KEY_ID_SIZE];
    struct stat info;
    assert_int_equal(stat(private_path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    FAILS(sign_keygen(private_path, other, id, ERR), ERR_USAGE);
    assert_false(fs_exists(other));
    /* The public name is taken: the private file must not stay either. */
    FAILS(sign_keygen(other, public_path, id, ERR), ERR_ANY);
    assert_false(fs_exists(other));
}

TEST(files_that_are_no_key_are_refused)
{
    /* A P-256 key: right form, wrong kind. Made by openssl for this test, used nowhere. */
    static const char P256[] = "-----BEGIN PUBLIC KEY-----\n"
                               "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEMdjGBqWLUMrch2rzcr5DtPsMNwc4\n"
                               "+76rKf/dyFoNW5gy9HLsfZptHZvksL+ZnaAQB0/r4Yg6Ooq6DtgcOhyl+w==\n"
                               "-----END PUBLIC KEY-----\n";
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    const char *path = fs_join(&arena, folder, "bad");
    write_file(path, P256, 0644);
    FAILS_WITH(sign_load_public(path, &key, ERR), ERR_AUTH, "Ed25519");
    write_file(path, "not a key", 0600);
    FAILS(sign_load_private(path, &key, ERR), ERR_AUTH);
    FAILS(sign_load_public(private_path, &key, ERR), ERR_AUTH);
    assert_int_equal(chmod(private_path, 0640), 0);
    FAILS_WITH(sign_load_private(private_path, &key, ERR), ERR_AUTH, "0640");
    assert_int_equal(chmod(private_path, 0600), 0);
}

TEST(pae_is_what_dsse_says)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(256);
    /* Source: secure-systems-lab/dsse, protocol.md, test vectors. */
    dsse_pae(&buf, STR_LIT("http://example.com/HelloWorld"), STR_LIT("hello world"));
    assert_string_equal(buf.ptr, "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
}

TEST(base64_has_one_text_for_each_value)
{
    static const char *const BAD[] = {"Z",        "Zg",   "Zg=",  "Zh==",   "Zm9=", "====",
                                      "Zg==Zg==", "Z===", "Zm 9", "Zm9v\n", "Zm-_", "Z=g="};
    for (size_t len = 0; len < 1600; len++) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(4096);
        struct str back;
        char bytes[1600];
        for (size_t idx = 0; idx < len; idx++) {
            bytes[idx] = (char)(idx * 37 + len);
        }
        base64_encode(&buf, (struct str){bytes, len});
        PASSES(base64_decode(&arena, strbuf_str(&buf), &back, ERR));
        assert_int_equal(back.len, len);
        assert_memory_equal(back.ptr, bytes, len);
    }
    /* Source: RFC 4648 section 10. */
    CLEANUP(strbuf) struct strbuf known = STRBUF(64);
    base64_encode(&known, STR_LIT("fooba"));
    assert_string_equal(known.ptr, "Zm9vYmE=");
    for (EACH(row, BAD)) {
        struct str back;
        FAILS(base64_decode(&arena, str_of(*row), &back, ERR), ERR_PARSE);
    }
}

UNIT_MAIN(make_key, remove_key)
