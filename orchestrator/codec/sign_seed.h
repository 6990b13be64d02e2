/* SPDX-License-Identifier: Apache-2.0 */
/* A signature with an Ed25519 key given as its 32-byte seed (RFC 8032 section 5.1.5), as OpenSSH's key files hold
   it. */
#ifndef CODEC_SIGN_SEED_H
#define CODEC_SIGN_SEED_H

#include "codec/sign.h"

#define SIGN_SEED_BYTES 32

MUST_CHECK int sign_with_seed(const uint8_t seed[SIGN_SEED_BYTES], struct str message,
                              uint8_t ret_signature[SIGN_BYTES], struct err *err);

#endif
