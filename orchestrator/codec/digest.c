/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name parameters with words that base/banned.h poisons. */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base.h"

#include "codec/digest.h"

#include <unistd.h>

static const char *const KIND_NAMES[DIGEST_KINDS] = {"MD5", "SHA256"};

void digest_release(struct digest *digest)
{
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        EVP_MD_CTX_free(digest->ctx[idx]);
        EVP_MD_free(digest->kind[idx]);
    }
    *digest = DIGEST_EMPTY;
}

/* Not provided is what OpenSSL says of MD5 where it is limited to FIPS. */
static void must(bool is_done, size_t idx)
{
    if (!is_done) {
        fprintf(stderr, "reperf: OpenSSL on this machine does not provide %s\n", KIND_NAMES[idx]);
        _exit(70);
    }
}

void digest_start(struct digest *digest, unsigned kinds)
{
    ASSERT(kinds != 0 && kinds < (1u << DIGEST_KINDS));
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if (!(kinds & (1u << idx))) {
            continue;
        }
        if (!digest->ctx[idx]) {
            digest->kind[idx] = EVP_MD_fetch(NULL, KIND_NAMES[idx], NULL);
            digest->ctx[idx] = EVP_MD_CTX_new();
        }
        must(digest->kind[idx] && digest->ctx[idx] &&
                 EVP_DigestInit_ex2(digest->ctx[idx], digest->kind[idx], NULL) == 1,
             idx);
    }
    digest->kinds = kinds;
    digest->size_bytes = 0;
}

void digest_update(struct digest *digest, const void *ptr, size_t len)
{
    ASSERT(digest->kinds != 0);
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if (digest->kinds & (1u << idx)) {
            must(EVP_DigestUpdate(digest->ctx[idx], ptr, len) == 1, idx);
        }
    }
    digest->size_bytes += len;
}

struct digest_value digest_finish(struct digest *digest)
{
    struct digest_value value = {.size_bytes = digest->size_bytes};
    uint8_t *const places[DIGEST_KINDS] = {value.md5, value.sha256};
    ASSERT(digest->kinds != 0);
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if (digest->kinds & (1u << idx)) {
            must(EVP_DigestFinal_ex(digest->ctx[idx], places[idx], NULL) == 1, idx);
        }
    }
    digest->kinds = 0;
    return value;
}

struct str hex_dup(struct arena *arena, const uint8_t *bytes, size_t n)
{
    return str_dup(arena, str_of(hex_of(bytes, n).text));
}

int digest_file_hex(struct arena *arena, const char *path, struct str *ret_hex, struct err *err)
{
    struct digest_value value;
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    *ret_hex = hex_dup(arena, value.sha256, SHA256_BYTES);
    return 0;
}

struct str digest_text_hex(struct arena *arena, struct str text)
{
    uint8_t sha256[SHA256_BYTES];
    sha256_of(text, sha256);
    return hex_dup(arena, sha256, SHA256_BYTES);
}

int hmac_sha1(struct str key, struct str text, uint8_t *ret_mac, struct err *err)
{
    unsigned len = 0;
    if (key.len > INT32_MAX ||
        !HMAC(EVP_sha1(), key.ptr, (int)key.len, (const unsigned char *)text.ptr, text.len, ret_mac,
              &len) ||
        len != SHA1_BYTES) {
        return err_set(err, ERR_INTERNAL, "OpenSSL on this machine does not provide HMAC-SHA1");
    }
    return 0;
}
