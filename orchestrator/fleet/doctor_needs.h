/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases that were asked for need of the nodes, disk included. */
#ifndef FLEET_DOCTOR_NEEDS_H
#define FLEET_DOCTOR_NEEDS_H

#include "fleet/doctor.h"

/* Fills wants, and result's cases. ERR_USAGE where the globs select nothing. is_training: a case of several nodes with GPUs. */
MUST_CHECK int doctor_wants(struct arena *arena, const struct doctor_opts *opts,
                            struct wants *wants, struct doctor_result *result,
                            bool *ret_is_training, struct err *err);

#endif
