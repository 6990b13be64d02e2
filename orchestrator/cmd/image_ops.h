/* SPDX-License-Identifier: Apache-2.0 */
/* fetch, verify and lock of images, for artifact_ops.c's table, and what cmd_image.c shares with them. */
#ifndef CMD_IMAGE_OPS_H
#define CMD_IMAGE_OPS_H

#include "cmd/artifact_ops.h"
#include "store/image_store.h"

MUST_CHECK int image_op_fetch(struct artifact_job *job, const struct artifact *artifact,
                              struct artifact_sink *sink, struct err *err);
MUST_CHECK int image_op_verify(struct artifact_job *job, const struct artifact *artifact,
                               struct artifact_sink *sink, struct err *err);
MUST_CHECK int image_op_lock(struct artifact_job *job, const struct artifact *artifact,
                             struct artifact_sink *sink, struct err *err);
MUST_CHECK int image_op_foresee(struct artifact_job *job, const struct artifact *artifact,
                                struct artifact_sink *sink, struct err *err);
MUST_CHECK int image_op_repair(struct artifact_job *job, const struct artifact *artifact,
                               struct artifact_sink *sink, struct err *err);

/* Members "reference", "platform", "digest", "manifest", "config", "layers", "bytes", "from", "date" of what the store has. */
void image_info_json(struct json_out *out, const struct image_info *info);

#endif
