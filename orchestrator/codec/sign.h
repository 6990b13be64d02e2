/* SPDX-License-Identifier: Apache-2.0 */
/* Ed25519 keys and signatures, the DSSE pre-authentication encoding, and strict base64. Private keys are files of mode 0600
   and nothing else: never an argument, an environment variable, a log line or part of an archive. A signature made here is
   confirmed by `openssl pkeyutl -verify -rawin -pubin -inkey KEY.pub -in MESSAGE -sigfile SIG`. */
#pragma once

#include "base/strbuf.h"

#define SIGN_PUBLIC_BYTES 32
#define SIGN_BYTES        64
/* Hex of the SHA-256 of the public key's DER SubjectPublicKeyInfo, and the NUL. */
#define SIGN_KEY_ID_SIZE   65
#define SIGN_KEY_FILE_MAX  16384
#define SIGN_DSSE_TYPE_MAX 256

struct sign_key {
    void *pkey; /* owned */
    bool is_private;
    uint8_t public_raw[SIGN_PUBLIC_BYTES];
    char id[SIGN_KEY_ID_SIZE];
};

#define SIGN_KEY_EMPTY ((struct sign_key){0})

void sign_key_release(struct sign_key *key);
CLEANUP_BY(sign_key, struct sign_key, sign_key_release);
static inline struct sign_key take_sign_key(struct sign_key *key)
{
    struct sign_key taken = *key;
    *key = SIGN_KEY_EMPTY;
    return taken;
}

/* A new key: PKCS#8 PEM of mode 0600 and SubjectPublicKeyInfo PEM. Neither file may exist; on failure neither does. */
MUST_CHECK int sign_keygen(const char *private_path, const char *public_path,
                           char ret_key_id[SIGN_KEY_ID_SIZE], struct err *err);

/* ERR_AUTH if the file is open to others, encrypted, or not an Ed25519 key. */
MUST_CHECK int sign_load_private(const char *path, struct sign_key *ret_key, struct err *err);
MUST_CHECK int sign_load_public(const char *path, struct sign_key *ret_key, struct err *err);
MUST_CHECK int sign_from_raw(const uint8_t public_raw[SIGN_PUBLIC_BYTES], struct sign_key *ret_key,
                             struct err *err);

MUST_CHECK int sign_message(const struct sign_key *key, struct str message,
                            uint8_t ret_signature[SIGN_BYTES], struct err *err);
/* ERR_INTEGRITY if it is not valid. */
MUST_CHECK int sign_check(const struct sign_key *key, struct str message,
                          const uint8_t signature[SIGN_BYTES], struct err *err);

/* "DSSEv1 LEN(type) type LEN(payload) payload". Source: github.com/secure-systems-lab/dsse, protocol.md. */
void dsse_pae(struct strbuf *buf, struct str type, struct str payload);

/* RFC 4648 section 4 with padding; decoding accepts only the canonical text for the bytes. */
void base64_encode(struct strbuf *buf, struct str bytes);
MUST_CHECK int base64_decode(struct arena *arena, struct str text, struct str *ret_bytes,
                             struct err *err);
