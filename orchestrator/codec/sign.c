/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name parameters with words that base/banned.h poisons. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/base.h"

#include "codec/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/publish.h"
#include "codec/digest.h"

#define DER_MAX 128 /* an Ed25519 SubjectPublicKeyInfo has 44 bytes (RFC 8410) */

CLEANUP_POINTER(bio, BIO, BIO_free);

CLEANUP_POINTER(md_ctx, EVP_MD_CTX, EVP_MD_CTX_free);

void sign_key_release(struct sign_key *key)
{
    EVP_PKEY_free(key->pkey);
    *key = SIGN_KEY_EMPTY;
}

/* Takes ownership of pkey, whatever happens. */
static int finish_key(EVP_PKEY *pkey, bool is_private, struct sign_key *ret_key, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = {.pkey = pkey, .is_private = is_private};
    uint8_t der[DER_MAX];
    uint8_t *end = der;
    uint8_t sha256[SHA256_BYTES];
    size_t raw_len = SIGN_PUBLIC_BYTES;
    if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519 ||
        EVP_PKEY_get_raw_public_key(pkey, key.public_raw, &raw_len) != 1 ||
        raw_len != SIGN_PUBLIC_BYTES) {
        return err_set(err, ERR_AUTH, "expected an Ed25519 key");
    }
    int der_len = i2d_PUBKEY(pkey, NULL);
    if (der_len <= 0 || der_len > DER_MAX || i2d_PUBKEY(pkey, &end) != der_len) {
        return err_set(err, ERR_INTERNAL, "the public key has no DER form");
    }
    sha256_of((struct str){(const char *)der, (size_t)der_len}, sha256);
    hex_encode(sha256, SHA256_BYTES, key.id);
    *ret_key = take_sign_key(&key);
    return 0;
}

static int write_new(const char *path, mode_t mode, struct str content, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0) {
        return err_set(err, errno == EEXIST ? ERR_USAGE : err_code_of_errno(errno), "create %s: %s",
                       path, err_errno_text(errno));
    }
    if (fs_write_all(fd, content.ptr, content.len, path, err) < 0 ||
        publish_data(fd, path, err) < 0 || publish_parent(path, err) < 0) {
        unlink(path);
        return -1;
    }
    return 0;
}

static struct str bio_text(BIO *bio)
{
    char *text = NULL;
    long len = BIO_get_mem_data(bio, &text);
    return (struct str){text, len > 0 ? (size_t)len : 0};
}

int sign_keygen(const char *private_path, const char *public_path,
                char ret_key_id[SIGN_KEY_ID_SIZE], struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    /* Memory that OpenSSL wipes when it frees it. */
    CLEANUP(bio) BIO *secret = BIO_new(BIO_s_secmem());
    CLEANUP(bio) BIO *open_part = BIO_new(BIO_s_mem());
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (!pkey || !secret || !open_part) {
        EVP_PKEY_free(pkey);
        return err_set(err, ERR_INTERNAL, "OpenSSL on this machine cannot make an Ed25519 key");
    }
    if (finish_key(pkey, true, &key, err) < 0) {
        return -1;
    }
    if (PEM_write_bio_PKCS8PrivateKey(secret, key.pkey, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_PUBKEY(open_part, key.pkey) != 1) {
        return err_set(err, ERR_INTERNAL, "the new key has no PEM form");
    }
    if (write_new(private_path, 0600, bio_text(secret), err) < 0) {
        return -1;
    }
    if (write_new(public_path, 0644, bio_text(open_part), err) < 0) {
        unlink(private_path);
        return -1;
    }
    memcpy(ret_key_id, key.id, SIGN_KEY_ID_SIZE);
    return 0;
}

/* In place of OpenSSL's prompt at the terminal: an encrypted key is refused. */
static int no_passphrase(char *buf UNUSED, int size UNUSED, int is_writing UNUSED, void *ctx UNUSED)
{
    return -1;
}

static int check_private_file(int fd, const char *path, struct err *err)
{
    struct stat info;
    if (fstat(fd, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_AUTH, "%s: expected a regular file", path);
    }
    if (info.st_mode & 077) {
        return err_set(err, ERR_AUTH,
                       "%s: mode %04o lets others read the private key; expected 0600", path,
                       (unsigned)(info.st_mode & 07777));
    }
    if (info.st_size > SIGN_KEY_FILE_MAX) {
        return err_set(err, ERR_AUTH, "%s: %lld bytes, expected a key of at most %d", path,
                       (long long)info.st_size, SIGN_KEY_FILE_MAX);
    }
    return 0;
}

int sign_load_private(const char *path, struct sign_key *ret_key, struct err *err)
{
    char text[SIGN_KEY_FILE_MAX];
    CLEANUP(bio) BIO *bio = NULL;
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    EVP_PKEY *pkey;
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    if (check_private_file(fd, path, err) < 0) {
        return -1;
    }
    ssize_t got = read(fd, text, sizeof(text));
    if (got < 0) {
        return err_errno(err, "read", path);
    }
    bio = BIO_new_mem_buf(text, (int)got);
    pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    OPENSSL_cleanse(text, sizeof(text));
    if (!pkey) {
        return err_set(err, ERR_AUTH, "%s: expected an unencrypted private key in PEM form", path);
    }
    return finish_key(pkey, true, ret_key, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int sign_load_public(const char *path, struct sign_key *ret_key, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(bio) BIO *bio = NULL;
    struct str text;
    EVP_PKEY *pkey;
    if (fs_read(&arena, path, SIGN_KEY_FILE_MAX, &text, err) < 0) {
        return -1;
    }
    bio = BIO_new_mem_buf(text.ptr, (int)text.len);
    pkey = bio ? PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL) : NULL;
    if (!pkey) {
        return err_set(err, ERR_AUTH, "%s: expected a public key in PEM form (the .pub file)",
                       path);
    }
    return finish_key(pkey, false, ret_key, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int sign_from_raw(const uint8_t public_raw[SIGN_PUBLIC_BYTES], struct sign_key *ret_key,
                  struct err *err)
{
    EVP_PKEY *pkey =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_raw, SIGN_PUBLIC_BYTES);
    if (!pkey) {
        return err_set(err, ERR_AUTH, "expected an Ed25519 public key");
    }
    return finish_key(pkey, false, ret_key, err);
}

int sign_message(const struct sign_key *key, struct str message, uint8_t ret_signature[SIGN_BYTES],
                 struct err *err)
{
    CLEANUP(md_ctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = SIGN_BYTES;
    ASSERT(key->is_private);
    if (!ctx || EVP_DigestSignInit_ex(ctx, NULL, NULL, NULL, NULL, key->pkey, NULL) != 1 ||
        EVP_DigestSign(ctx, ret_signature, &len, (const uint8_t *)message.ptr, message.len) != 1 ||
        len != SIGN_BYTES) {
        return err_set(err, ERR_INTERNAL, "signing %zu bytes failed", message.len);
    }
    return 0;
}

int sign_check(const struct sign_key *key, struct str message, const uint8_t signature[SIGN_BYTES],
               struct err *err)
{
    CLEANUP(md_ctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (!ctx || EVP_DigestVerifyInit_ex(ctx, NULL, NULL, NULL, NULL, key->pkey, NULL) != 1) {
        return err_set(err, ERR_INTERNAL,
                       "OpenSSL on this machine cannot check an Ed25519 signature");
    }
    if (EVP_DigestVerify(ctx, signature, SIGN_BYTES, (const uint8_t *)message.ptr, message.len) !=
        1) {
        return err_set(err, ERR_INTEGRITY, "the signature is not valid under key %.16s", key->id);
    }
    return 0;
}

void dsse_pae(struct strbuf *buf, struct str type, struct str payload)
{
    strbuf_printf(buf, "DSSEv1 %zu ", type.len);
    strbuf_add_str(buf, type);
    strbuf_printf(buf, " %zu ", payload.len);
    strbuf_add_str(buf, payload);
}

#define ENCODED_AT_ONCE 3072 /* bytes, a multiple of 3 */

void base64_encode(struct strbuf *buf, struct str bytes)
{
    uint8_t text[ENCODED_AT_ONCE / 3 * 4 + 1];
    for (size_t at = 0; at < bytes.len; at += ENCODED_AT_ONCE) {
        struct str part = str_sub(bytes, at, ENCODED_AT_ONCE);
        int len = EVP_EncodeBlock(text, (const uint8_t *)part.ptr, (int)part.len);
        strbuf_add(buf, text, (size_t)len);
    }
}

int base64_decode(struct arena *arena, struct str text, struct str *ret_bytes, struct err *err)
{
    CLEANUP(strbuf) struct strbuf again = STRBUF(text.len + 1);
    uint8_t *out = arena_alloc(arena, text.len / 4 * 3 + 1, 1);
    int len = text.len % 4 == 0 && text.len < INT32_MAX
                  ? EVP_DecodeBlock(out, (const uint8_t *)text.ptr, (int)text.len)
                  : -1;
    int n_pad = str_ends(text, STR_LIT("==")) ? 2 : str_ends(text, STR_LIT("="));
    struct str bytes = {(const char *)out, len > n_pad ? (size_t)(len - n_pad) : 0};
    base64_encode(&again, bytes);
    /* Only what encoding gives: OpenSSL passes over spaces, and unused bits could hide something. */
    if (len < 0 || !str_eq(strbuf_str(&again), text)) {
        return err_set(err, ERR_PARSE, "expected base64 with its padding");
    }
    *ret_bytes = bytes;
    return 0;
}
