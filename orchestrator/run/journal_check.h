/* SPDX-License-Identifier: Apache-2.0 */
/* Checks evidence against the run's journal if that is next to it: STATE/runs/RUN/journal.jsonl and evidence/. */
#ifndef RUN_JOURNAL_CHECK_H
#define RUN_JOURNAL_CHECK_H

#include "base/clock.h"
#include "evidence/derive.h"
#include "run/journal.h"

/* folder: any folder of evidence; not checked if it is in no run's folder. Else the run must be the folder's, each repeat's attempts
   must follow each other, the one that counts must have ended with the logs in the journal, verdicts must be those that were judged, each
   file must be the one that was written, and there must be no other. ERR_INTEGRITY. */
MUST_CHECK int journal_check(struct arena *arena, const char *folder, const struct derived *derived,
                             struct err *err);

/* The same of a folder that is to be sealed or was; nothing where no journal lies next to it. */
MUST_CHECK int run_check_folder(const char *folder, struct err *err);

/* Of a run under way: each file that its journal has is as it was written, but for what is written anew before it counts. */
MUST_CHECK int journal_check_files(struct arena *arena, const char *folder, const struct map *files,
                                   struct err *err);
/* All files that the run has written, by the journal and the lock: name, and SHA-256 in hex (a struct str, in the arena). */
void journal_expected(const struct frozen *frozen, const struct journal_records *records,
                      struct arena *arena, struct map *ret_files);
/* Removes what a killed run left: temporary copies of its files, logs of lost attempts that it had not recorded, folders without a file. */
MUST_CHECK int run_tidy(struct arena *arena, const char *folder, const struct map *files,
                        struct err *err);

/* The content of a run's own folder (named by the run) must be that run's, and the archive there the one whose SHA-256 the journal
   has. path: that folder, the evidence in it, or the archive. ERR_INTEGRITY. */
MUST_CHECK int run_check_place(const char *path, struct str run_id, struct err *err);

/* The journal that lies with it is the one whose last result was signed there; nothing where there is no journal. in_statement:
   of verify_info. ERR_INTEGRITY. */
MUST_CHECK int run_check_signed(const char *path, struct str in_statement, struct err *err);

/* What seal signs of the journal that lies with a folder; ptr NULL where none does. */
MUST_CHECK int run_journal_result(struct arena *arena, const char *folder, struct str *ret_result,
                                  struct err *err);

/* Records that a run's own archive was sealed again (sha256: of seal_info). Does nothing if archive is elsewhere. */
MUST_CHECK int run_note_sealed(const char *archive, const char *sha256, bool is_signed,
                               struct clock_src clock, struct err *err);

/* derive_folder, then the above. */
MUST_CHECK int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
                          struct err *err);

#endif
