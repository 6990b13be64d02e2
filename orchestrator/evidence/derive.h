/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the evidence of a run follows from its raw logs and from what was frozen: the only check before anything is reported about a
   result in a folder. Frozen parts agree with each other (frozen_check), series and result.json are derived again and compared byte
   for byte, no file is missing or superfluous (contents_check). What it cannot detect: logs that were edited before the run's own
   digests of them were taken, or by someone who then derives everything again. Only a signature by a trusted key reveals that. */
#ifndef EVIDENCE_DERIVE_H
#define EVIDENCE_DERIVE_H

#include "evidence/result.h"

struct derived {
    struct frozen frozen;
    struct run_result result;
    size_t n_logs; /* each gave its series; with result.json, all that is derived */
};

/* folder: the evidence folder, or that of an unpacked archive; lives as long as ret_derived. ERR_INTEGRITY naming the first file that
   differs, is missing, or does not follow from the logs. */
MUST_CHECK int derive_folder(struct arena *arena, const char *folder, struct derived *ret_derived,
                             struct err *err);

struct derived_from {
    size_t n;           /* raw logs */
    int64_t derivation; /* by which (log/derivation.h) */
    const char *
        today; /* what today's derivation gives if that is an earlier one; NULL: the same verdicts and numbers */
};
MUST_CHECK int derive_check(struct arena *arena, const char *folder, struct derived_from *ret_from,
                            struct err *err);

void derived_release(struct derived *derived);
static inline void derived_cleanup(struct derived *derived)
{
    derived_release(derived);
}

#endif
