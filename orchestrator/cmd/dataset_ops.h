/* SPDX-License-Identifier: Apache-2.0 */
/* The row of datasets in cmd/artifact_ops.c. */
#ifndef CMD_DATASET_OPS_H
#define CMD_DATASET_OPS_H

#include "cmd/artifact_ops.h"

MUST_CHECK int dataset_op_fetch(struct artifact_job *job, const struct artifact *artifact,
                                struct artifact_sink *sink, struct err *err);
MUST_CHECK int dataset_op_verify(struct artifact_job *job, const struct artifact *artifact,
                                 struct artifact_sink *sink, struct err *err);
MUST_CHECK int dataset_op_lock(struct artifact_job *job, const struct artifact *artifact,
                               struct artifact_sink *sink, struct err *err);
MUST_CHECK int dataset_op_repair(struct artifact_job *job, const struct artifact *artifact,
                                 struct artifact_sink *sink, struct err *err);

MUST_CHECK int dataset_op_foresee(struct artifact_job *job, const struct artifact *artifact,
                                  struct artifact_sink *sink, struct err *err);

#endif
