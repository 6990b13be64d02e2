/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a finished run folder into RUN.tar.zst (logs/README.md), once everything in it follows from its raw logs
   (evidence/derive.h). All files of the folder go into it; it must hold result.json (evidence/evidence.h says what is read there)
   and something in manifest/. ro-crate-metadata.json, SHA256SUMS, provenance.dsse.json and statement.dsse.json are written into
   the folder as well, over older ones. */
#pragma once

#include "base/clock.h"
#include "base/map.h"
#include "evidence/evidence.h"

struct seal_opts {
    const char *folder;
    const char *archive;        /* made as ARCHIVE.partial, synced, then renamed */
    const struct sign_key *key; /* NULL: unsigned, and said so in every part */
    /* Nothing is derived: for a folder not made by a run, or held against `files`. */
    bool is_bytes_only;
    /* The SHA-256 in hex (a struct str) of each file that must be there, by its name, and no other; or NULL. */
    const struct map *files;
    struct str journal; /* of evidence_facts */
    bool may_replace;   /* else ERR_USAGE where the archive exists */
    bool wants_progress;
    struct clock_src clock;
};

struct seal_info {
    struct str run_id;
    enum evidence_outcome outcome;
    size_t n_files;
    uint64_t file_bytes;
    uint64_t archive_bytes;
    char sha256[SHA256_HEX_SIZE]; /* of all bytes before the closing */
};

/* Whether a file of that name is made by sealing; of half a one (temp_of), which a killed seal leaves, the next one removes
   it. */
bool seal_makes(struct str name);

MUST_CHECK int seal_folder(struct arena *arena, const struct seal_opts *opts,
                           struct seal_info *ret_info, struct err *err);
