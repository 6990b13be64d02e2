/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an archive, or the folder of an unpacked one: form, every byte, SHA256SUMS, the RO-Crate, both statements, signatures,
   and that its numbers follow from its logs (evidence/derive.h). Failures are ERR_INTEGRITY, or ERR_AUTH if only the signer is
   in doubt; both are exit status 5, and the message names the place. */
#pragma once

#include "base/clock.h"
#include "evidence/derive.h"
#include "evidence/evidence.h"

struct verify_opts {
    const char *path;
    const struct sign_key *key; /* NULL: the signer stays unverified */
    bool allows_unsigned;       /* with no key: do not fail for that alone */
    /* NULL, or a new folder that gets the files; removed again on failure. Archives only. */
    const char *unpack_to;
    /* Derives nothing from the logs (evidence/derive.h): result.json is believed. Otherwise an archive is unpacked below
       $TMPDIR for that if unpack_to is NULL. */
    bool is_bytes_only;
    bool wants_progress;
    struct clock_src clock;
};

enum verify_signer { VERIFY_SIGNER_NONE, VERIFY_SIGNER_UNVERIFIED, VERIFY_SIGNER_VERIFIED };

/* Filled as far as the check came, also on failure. */
struct verify_info {
    bool is_folder;
    bool is_derived;    /* series and result.json follow from the raw logs */
    size_t n_logs;      /* raw ones, that it was derived from */
    struct str version; /* of the program that froze the run; ptr NULL: not stated */
    struct discrepancies discrepancies;
    struct str run_id;  /* ptr NULL: not reached */
    struct str journal; /* of evidence_facts */
    enum evidence_outcome outcome;
    const char *counts; /* of evidence_facts */
    size_t n_files;
    uint64_t file_bytes;
    enum verify_signer signer;
    bool lacks_signer; /* the check failed for that alone: nobody vouches for who signed it */
    char key_id[SIGN_KEY_ID_SIZE]; /* that the archive names; "" where unsigned */
};

MUST_CHECK int verify_archive(struct arena *arena, const struct verify_opts *opts,
                              struct verify_info *ret_info, struct err *err);
