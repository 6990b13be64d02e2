/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLEET_REMOTE_SLURM_IMPL_H
#define FLEET_REMOTE_SLURM_IMPL_H

#include "fleet/remote.h"

/* One line of the poll script. gone_ns: since when Slurm has called the job over without a status of its own; 0: it has not. */
MUST_CHECK int slurm_read_report(struct str line, int64_t now_ns, int64_t *gone_ns,
                                 struct job_report *ret_report, struct err *err);

#endif
