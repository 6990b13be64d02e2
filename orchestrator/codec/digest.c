/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name parameters with words that base/banned.h poisons. */
#include <openssl/evp.h>

#include "base/base.h"

#include "codec/digest.h"

static const char *const KIND_NAMES[DIGEST_KINDS] = {"MD5", "SHA256"};

void digest_release(struct digest *digest)
{
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        EVP_MD_CTX_free(digest->ctx[idx]);
        EVP_MD_free(digest->kind[idx]);
    }
    *digest = DIGEST_EMPTY;
}

static int start_one(struct digest *digest, size_t idx, struct err *err)
{
    if (!digest->ctx[idx]) {
        digest->kind[idx] = EVP_MD_fetch(NULL, KIND_NAMES[idx], NULL);
        digest->ctx[idx] = EVP_MD_CTX_new();
    }
    if (!digest->kind[idx] || !digest->ctx[idx] ||
        EVP_DigestInit_ex2(digest->ctx[idx], digest->kind[idx], NULL) != 1) {
        return err_set(err, ERR_INTERNAL, "OpenSSL on this machine does not provide %s",
                       KIND_NAMES[idx]);
    }
    return 0;
}

int digest_start(struct digest *digest, unsigned kinds, struct err *err)
{
    ASSERT(kinds != 0 && kinds < (1u << DIGEST_KINDS));
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if ((kinds & (1u << idx)) && start_one(digest, idx, err) < 0) {
            return -1;
        }
    }
    digest->kinds = kinds;
    digest->size_bytes = 0;
    return 0;
}

int digest_update(struct digest *digest, const void *ptr, size_t len, struct err *err)
{
    ASSERT(digest->kinds != 0);
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if ((digest->kinds & (1u << idx)) && EVP_DigestUpdate(digest->ctx[idx], ptr, len) != 1) {
            return err_set(err, ERR_INTERNAL, "%s of %zu bytes failed", KIND_NAMES[idx], len);
        }
    }
    digest->size_bytes += len;
    return 0;
}

int digest_finish(struct digest *digest, struct digest_value *ret_value, struct err *err)
{
    struct digest_value value = {.size_bytes = digest->size_bytes};
    uint8_t *const places[DIGEST_KINDS] = {value.md5, value.sha256};
    ASSERT(digest->kinds != 0);
    for (size_t idx = 0; idx < DIGEST_KINDS; idx++) {
        if ((digest->kinds & (1u << idx)) &&
            EVP_DigestFinal_ex(digest->ctx[idx], places[idx], NULL) != 1) {
            return err_set(err, ERR_INTERNAL, "%s did not finish", KIND_NAMES[idx]);
        }
    }
    digest->kinds = 0;
    *ret_value = value;
    return 0;
}

static struct str hex_of(struct arena *arena, const uint8_t *sha256)
{
    char hex[SHA256_HEX_SIZE];
    hex_encode(sha256, SHA256_BYTES, hex);
    return str_dup(arena, str_of(hex));
}

int digest_file_hex(struct arena *arena, const char *path, struct str *ret_hex, struct err *err)
{
    struct digest_value value;
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    *ret_hex = hex_of(arena, value.sha256);
    return 0;
}

int digest_text_hex(struct arena *arena, struct str text, struct str *ret_hex, struct err *err)
{
    uint8_t sha256[SHA256_BYTES];
    if (sha256_of(text, sha256, err) < 0) {
        return -1;
    }
    *ret_hex = hex_of(arena, sha256);
    return 0;
}
