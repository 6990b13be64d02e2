/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the evidence of a run follows from its raw logs and from what was frozen, by today's rules, whichever program made
   it: the only check before anything is reported about a result in a folder. Frozen parts agree with each other (frozen_check),
   series and result.json are derived again and compared (evidence/discrepancy.h), no file is missing or superfluous (derive.c).
   What it cannot detect: logs that were edited before the run's own digests of them were taken, or by someone who then derives
   everything again. Only a signature by a trusted key reveals that. */
#pragma once

#include "evidence/discrepancy.h"
#include "evidence/result.h"

struct derived {
    struct frozen frozen;
    struct run_result result;
    size_t n_logs; /* each gave its series; with result.json, all that is derived */
    struct discrepancies discrepancies; /* of what is kept from what was derived now */
};

/* folder: the evidence folder, or that of an unpacked archive; lives as long as ret_derived. ERR_INTEGRITY naming the first
   file that is missing, superfluous, or not what a run writes; whether other values were derived is the caller's to judge. */
MUST_CHECK int derive_folder(struct arena *arena, const char *folder, struct derived *ret_derived,
                             struct err *err);

static inline void derived_cleanup(struct derived *derived)
{
    frozen_release(&derived->frozen);
}
