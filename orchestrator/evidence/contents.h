/* SPDX-License-Identifier: Apache-2.0 */
/* Which files the evidence of a run consists of: no other may lie there, none may lack, none be a link or a folder without a file. */
#ifndef EVIDENCE_CONTENTS_H
#define EVIDENCE_CONTENTS_H

#include "evidence/result.h"

/* Before anything is read: files only, neither links nor devices. ERR_INTEGRITY. */
MUST_CHECK int contents_regular(struct arena *arena, const char *folder, struct err *err);

/* What frozen_load and result_derive gave of the same folder. What sealing adds may be there or not; its bytes, and those of
   result.json and of series/, are left to others. Parses what nobody else does: environment/, logs/commands/. ERR_INTEGRITY naming the
   first file that is too much, missing or not what a run writes. */
MUST_CHECK int contents_check(struct arena *arena, const struct frozen *frozen,
                              const struct run_result *result, struct err *err);

/* Takes away what a killed run leaves beside the files it was writing: their temporary copies, and folders that got no file. */
MUST_CHECK int contents_tidy(struct arena *arena, const struct frozen *frozen,
                             const struct run_result *result, struct err *err);

#endif
