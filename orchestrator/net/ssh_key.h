/* SPDX-License-Identifier: Apache-2.0 */
/* What a private key file says about itself: its type, whether a passphrase protects it, its public half, and the seed of an
   unencrypted Ed25519 key. Pure. Source: PROTOCOL.key of OpenSSH 9.2 (openssh-key-v1); RFC 7468 for PEM labels. */
#ifndef NET_SSH_KEY_H
#define NET_SSH_KEY_H

#include "base/str.h"

#define SSH_KEY_TEXT_MAX (64u << 10)

struct ssh_key_info {
    unsigned type; /* SSH_KEY_... of net/ssh_known.h; 0: the file does not say */
    bool is_encrypted;
    struct str blob; /* public half, in the arena; empty: the file does not say */
    struct str seed; /* 32 bytes, in the arena; empty: encrypted, or of another type */
};

/* ERR_PARSE if the text is not a private key. */
MUST_CHECK int ssh_key_inspect(struct arena *arena, struct str text, struct ssh_key_info *ret_info,
                               struct err *err);

/* "TYPE BASE64 comment": a .pub file. */
MUST_CHECK int ssh_key_public(struct arena *arena, struct str text, struct str *ret_blob,
                              struct err *err);

/* Cuts a string of the SSH wire format (RFC 4251 section 5) off the front. False if there is none. */
bool ssh_wire_u32(struct str *rest, uint32_t *ret_value);
bool ssh_wire_string(struct str *rest, struct str *ret_string);

#endif
