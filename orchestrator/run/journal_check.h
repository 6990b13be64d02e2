/* SPDX-License-Identifier: Apache-2.0 */
/* What a run's journal says of its evidence, where the journal lies next to it: STATE/runs/RUN/journal.jsonl and evidence/. */
#ifndef RUN_JOURNAL_CHECK_H
#define RUN_JOURNAL_CHECK_H

#include "evidence/derive.h"

/* folder: any folder of evidence. Nothing is said of one that stands in no run's folder. Else the run is the folder's, each repeat's
   attempts follow each other, the one that counts ended and left the logs as the journal has it, verdicts and result.json are those
   that were judged. ERR_INTEGRITY. */
MUST_CHECK int journal_check(struct arena *arena, const char *folder, const struct derived *derived,
                             struct err *err);

/* The same of a folder that is to be sealed or was; nothing where no journal lies next to it. */
MUST_CHECK int run_check_folder(const char *folder, struct err *err);

/* An archive or folder that lies in a run's own folder (named by the run) is that run's, and no other's. ERR_INTEGRITY. */
MUST_CHECK int run_check_place(const char *path, struct str run_id, struct err *err);

/* derive_folder, then the above. */
MUST_CHECK int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
                          struct err *err);

#endif
