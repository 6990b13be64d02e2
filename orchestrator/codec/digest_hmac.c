/* SPDX-License-Identifier: Apache-2.0 */
/* First, because its headers name parameters with words that base/banned.h poisons. */
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base.h"

#include "codec/digest_hmac.h"

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
