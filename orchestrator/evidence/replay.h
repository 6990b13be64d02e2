/* SPDX-License-Identifier: Apache-2.0 */
/* Derives a run's series and result.json again from its raw logs (evidence/derive.h), whoever signed it. An archive is checked for form
   and bytes here too. */
#ifndef EVIDENCE_REPLAY_H
#define EVIDENCE_REPLAY_H

#include "base/clock.h"
#include "evidence/discrepancy.h"
#include "report/run_id.h"

struct replay_opts {
    const char *path; /* an archive, the folder of an unpacked one, or a run's folder */
    struct clock_src clock;
};

struct replay_info {
    char run_id[RUN_ID_SIZE];
    size_t n_files; /* derived and compared */
    size_t n_logs;
    struct discrepancies discrepancies;
};

/* Lives in the arena. ERR_INTEGRITY naming the first file that is missing, or is there and does not follow from the logs. */
MUST_CHECK int replay(struct arena *arena, const struct replay_opts *opts,
                      struct replay_info *ret_info, struct err *err);

#endif
