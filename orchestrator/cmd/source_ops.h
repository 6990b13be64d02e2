/* SPDX-License-Identifier: Apache-2.0 */
/* fetch, verify and lock of sources, for noun_ops.c's table. */
#ifndef CMD_SOURCE_OPS_H
#define CMD_SOURCE_OPS_H

#include "cmd/noun_ops.h"

MUST_CHECK int source_op_fetch(struct noun_job *job, const struct noun *noun,
                               struct noun_sink *sink, struct err *err);
MUST_CHECK int source_op_verify(struct noun_job *job, const struct noun *noun,
                                struct noun_sink *sink, struct err *err);
MUST_CHECK int source_op_lock(struct noun_job *job, const struct noun *noun, struct noun_sink *sink,
                              struct err *err);
MUST_CHECK int source_op_foresee(struct noun_job *job, const struct noun *noun,
                                 struct noun_sink *sink, struct err *err);

/* Repository and commit that a name stands for; ERR_MANIFEST where a branch or tag is not locked. Of job: arena and locks. */
MUST_CHECK int source_op_find(struct noun_job *job, const struct noun *noun, const char **ret_url,
                              const char **ret_commit, struct err *err);

#endif
