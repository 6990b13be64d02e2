/* SPDX-License-Identifier: Apache-2.0 */
/* fetch, verify and lock of sources, for artifact_ops.c's table. */
#ifndef CMD_SOURCE_OPS_H
#define CMD_SOURCE_OPS_H

#include "cmd/artifact_ops.h"

MUST_CHECK int source_op_fetch(struct artifact_job *job, const struct artifact *artifact,
                               struct artifact_sink *sink, struct err *err);
MUST_CHECK int source_op_verify(struct artifact_job *job, const struct artifact *artifact,
                                struct artifact_sink *sink, struct err *err);
MUST_CHECK int source_op_lock(struct artifact_job *job, const struct artifact *artifact,
                              struct artifact_sink *sink, struct err *err);
MUST_CHECK int source_op_foresee(struct artifact_job *job, const struct artifact *artifact,
                                 struct artifact_sink *sink, struct err *err);

/* Repository and pin (report/source.h) that a name stands for; ERR_MANIFEST where a branch or tag is not locked. Of job: arena and
   locks. */
MUST_CHECK int source_op_find(struct artifact_job *job, const struct artifact *artifact,
                              const char **ret_url, const char **ret_pin, struct err *err);

#endif
