/* SPDX-License-Identifier: Apache-2.0 */
/* Checks evidence against the run's journal if that is next to it: STATE/runs/RUN/journal.jsonl and evidence/. */
#pragma once

#include "base/clock.h"
#include "evidence/derive.h"
#include "run/journal.h"

/* What is held against the run in whose folder a path is: that folder, what lies in it, its archive. */
struct run_claim {
    struct str run_id;
    struct str journal; /* of verify_info; ptr NULL: it was sealed before the journal was signed */
    /* What follows from the folder of evidence that the path is; NULL: the path is the archive. */
    const struct derived *derived;
};
/* A path in no run's folder is not checked. Else it must be that run's. Of an archive: the one whose SHA-256 the journal has,
   and the journal's last result is the one that was signed. Of a folder: attempts follow each other, the one that counts ended
   with the log in the journal, verdicts are those that were judged, each file is the one that was written, and there is no
   other. ERR_INTEGRITY. */
MUST_CHECK int run_check(const char *path, const struct run_claim *claim, struct err *err);

/* The same of a folder that is to be sealed or was; nothing where it is in no run's folder. */
MUST_CHECK int run_check_folder(const char *folder, struct err *err);

/* Of a run under way: each file that its journal has is as it was written, but for what is written anew before it counts. */
MUST_CHECK int journal_check_files(struct arena *arena, const char *folder, const struct map *files,
                                   struct err *err);
/* All files that the run has written, by the journal and the lock: name, and SHA-256 in hex (a struct str, in the arena). */
void journal_expected(const struct frozen *frozen, const struct journal_records *records,
                      struct arena *arena, struct map *ret_files);
/* Removes what killed and set-aside attempts left: temporary copies of files, logs of lost attempts that were not recorded,
   folders without a file. files: of journal_files. */
MUST_CHECK int run_tidy(struct arena *arena, const char *folder, const struct map *files,
                        struct err *err);

/* What seal signs of the journal that lies with a folder; ptr NULL where none does. */
MUST_CHECK int run_journal_result(struct arena *arena, const char *folder, struct str *ret_result,
                                  struct err *err);

/* Records that a run's own archive was sealed again (sha256: of seal_info). Does nothing if archive is elsewhere. */
MUST_CHECK int run_note_sealed(const char *archive, const char *sha256, bool is_signed,
                               struct clock_src clock, struct err *err);

/* derive_folder, then run_check. */
MUST_CHECK int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
                          struct err *err);
