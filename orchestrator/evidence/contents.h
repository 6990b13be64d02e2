/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the evidence of a run consists of: no other may be there, none may be missing, none may be a link or a folder without a
   file. */
#ifndef EVIDENCE_CONTENTS_H
#define EVIDENCE_CONTENTS_H

#include "base/fs.h"
#include "evidence/result.h"

struct contents_found {
    struct fs_names files, folders; /* below the folder */
};

/* Before anything is read: files only, neither links nor devices. ERR_INTEGRITY. */
MUST_CHECK int contents_regular(struct arena *arena, const char *folder,
                                struct contents_found *ret_found, struct err *err);

/* found: by contents_regular; the rest is what frozen_load and result_derive gave of the same folder. What sealing adds is optional; its bytes, and those of result.json and
   series/, are checked elsewhere. Parses what nothing else does: environment/, logs/commands/. ERR_INTEGRITY naming the first file
   that is too much, missing or not what a run writes. */
MUST_CHECK int contents_check(struct arena *arena, const struct contents_found *found,
                              const struct frozen *frozen, const struct run_result *result,
                              struct err *err);

#endif
