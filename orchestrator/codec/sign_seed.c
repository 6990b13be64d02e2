/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name parameters with words that base/banned.h poisons. */
#include <openssl/evp.h>

#include "base/base.h"

#include "codec/sign_seed.h"

static void pkey_cleanup(EVP_PKEY **pkey)
{
    EVP_PKEY_free(*pkey);
}

static void md_ctx_cleanup(EVP_MD_CTX **ctx)
{
    EVP_MD_CTX_free(*ctx);
}

int sign_with_seed(const uint8_t seed[SIGN_SEED_BYTES], struct str message,
                   uint8_t ret_signature[SIGN_BYTES], struct err *err)
{
    CLEANUP(pkey)
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SIGN_SEED_BYTES);
    CLEANUP(md_ctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = SIGN_BYTES;
    if (!pkey || !ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, pkey) != 1 ||
        EVP_DigestSign(ctx, ret_signature, &len, (const unsigned char *)message.ptr, message.len) !=
            1 ||
        len != SIGN_BYTES) {
        return err_set(err, ERR_INTERNAL,
                       "OpenSSL on this machine cannot make an Ed25519 signature");
    }
    return 0;
}
