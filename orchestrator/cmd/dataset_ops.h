/* SPDX-License-Identifier: Apache-2.0 */
/* The row of datasets in cmd/noun_ops.c. */
#ifndef CMD_DATASET_OPS_H
#define CMD_DATASET_OPS_H

#include "cmd/noun_ops.h"

MUST_CHECK int dataset_op_fetch(struct noun_job *job, const struct noun *noun,
                                struct noun_sink *sink, struct err *err);
MUST_CHECK int dataset_op_verify(struct noun_job *job, const struct noun *noun,
                                 struct noun_sink *sink, struct err *err);
MUST_CHECK int dataset_op_lock(struct noun_job *job, const struct noun *noun,
                               struct noun_sink *sink, struct err *err);
MUST_CHECK int dataset_op_foresee(struct noun_job *job, const struct noun *noun,
                                  struct noun_sink *sink, struct err *err);
MUST_CHECK int dataset_op_repair(struct noun_job *job, const struct noun *noun,
                                 struct noun_sink *sink, struct err *err);

#endif
