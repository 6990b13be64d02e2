/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the evidence of a run follows from its raw logs and from what was frozen: the one check before anything is said of a result
   that lies in a folder. Frozen parts agree with each other (frozen_check), series and result.json are derived again and compared byte
   for byte, no file is missing or too much (contents_check). What it cannot see: logs that were edited before the run's own digests
   of them were taken, or by whoever then derives everything again. Only a signature by a key that one trusts tells that. */
#ifndef EVIDENCE_DERIVE_H
#define EVIDENCE_DERIVE_H

#include "evidence/result.h"

struct derived {
    struct frozen frozen;
    struct run_result result;
    size_t n_logs; /* each gave its series; with result.json, all that is derived */
};

/* folder: the evidence folder, or that of an unpacked archive; lives as long as ret_derived. ERR_INTEGRITY naming the first file that
   differs, is missing, or is there and does not follow from the logs. */
MUST_CHECK int derive_folder(struct arena *arena, const char *folder, struct derived *ret_derived,
                             struct err *err);
/* What today's rules give for evidence that was derived by an earlier derivation: NULL where it is the same verdicts and numbers, else
   the first that is another. An archive keeps the verdict of its own derivation; who reads it is told. */
const char *derive_today(struct arena *arena, const struct derived *derived);
void derived_release(struct derived *derived);
static inline void derived_cleanup(struct derived *derived)
{
    derived_release(derived);
}

#endif
