/* SPDX-License-Identifier: Apache-2.0 */
/* known_hosts, read for one host and one key. Pure. Names plain, with * and ?, negated, hashed, and as [host]:port. Source of
   the format: sshd(8) of OpenSSH 9.2, "SSH_KNOWN_HOSTS FILE FORMAT". Certificate authorities are ignored: libssh2 has no host
   certificates. */
#pragma once

#include "base/strbuf.h"

#define SSH_KNOWN_TEXT_MAX (64u << 20)

/* Key types as bits. */
enum {
    SSH_KEY_ED25519 = 1,
    SSH_KEY_ECDSA_256 = 2,
    SSH_KEY_ECDSA_384 = 4,
    SSH_KEY_ECDSA_521 = 8,
    SSH_KEY_RSA = 16,
    SSH_KEY_OTHER = 32,
};
unsigned ssh_key_type_of_name(struct str name);
/* The key type at the start of the blob; empty if malformed. */
struct str ssh_key_name_of_blob(struct str blob);

/* "TYPE BASE64 comment": a .pub file. The blob in the arena. */
bool ssh_key_public(struct arena *arena, struct str text, struct str *ret_blob);

enum known_state {
    KNOWN_UNKNOWN, /* nothing about this host */
    KNOWN_OTHER,   /* only other keys */
    KNOWN_MATCH,
    KNOWN_REVOKED,
};

struct known_answer {
    enum known_state state;
    const char *file; /* where the line that decided is; borrowed from the question */
    size_t line;
    unsigned types; /* those of all keys known for this host */
};

#define KNOWN_ANSWER_EMPTY ((struct known_answer){.state = KNOWN_UNKNOWN})

/* "host", or "[host]:port" if the port is not 22; lower case. */
const char *ssh_known_name(struct arena *arena, const char *host, int64_t port);

/* Adds what one file says; call it for one file after the other with the same answer. blob: the host's key, or empty to learn
   only the types. Malformed lines are skipped: they cannot make a host known. */
MUST_CHECK int ssh_known_look(struct known_answer *answer, const char *file, struct str text,
                              const char *name, struct str blob, struct err *err);

#define SSH_KNOWN_SALT_BYTES 20

/* A line to append; the name is hashed with the salt if there is one. */
MUST_CHECK int ssh_known_line(struct strbuf *out, const char *name, struct str salt,
                              struct str blob, struct err *err);

/* "SHA256:..." as ssh-keygen -l shows it. */
void ssh_key_fingerprint(struct strbuf *out, struct str blob);
