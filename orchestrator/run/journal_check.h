/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's journal says of its evidence, where the journal lies next to it: STATE/runs/RUN/journal.jsonl and evidence/. */
#ifndef RUN_JOURNAL_CHECK_H
#define RUN_JOURNAL_CHECK_H

#include "base/clock.h"
#include "evidence/derive.h"

/* folder: any folder of evidence. Nothing is said of one that stands in no run's folder. Else the run is the folder's, each repeat's
   attempts follow each other, the one that counts ended and left the logs as the journal has it, verdicts and result.json are those
   that were judged. ERR_INTEGRITY. */
MUST_CHECK int journal_check(struct arena *arena, const char *folder, const struct derived *derived,
                             struct err *err);

/* The same of a folder that is to be sealed or was; nothing where no journal lies next to it. */
MUST_CHECK int run_check_folder(const char *folder, struct err *err);

/* What lies in a run's own folder (named by the run) is that run's, and no other's; and the archive there is the one whose SHA-256 the
   journal has. path: that folder, the evidence in it, or the archive. ERR_INTEGRITY. */
MUST_CHECK int run_check_place(const char *path, struct str run_id, struct err *err);

/* Writes down that a run's own archive was sealed again (sha256: of seal_info). Nothing where archive lies elsewhere. */
MUST_CHECK int run_note_sealed(const char *archive, const char *sha256, bool is_signed,
                               struct clock_src clock, struct err *err);

/* derive_folder, then the above. */
MUST_CHECK int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
                          struct err *err);

#endif
