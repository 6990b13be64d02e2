/* SPDX-License-Identifier: Apache-2.0 */
/* fetch, verify and lock of images, for noun_ops.c's table, and what cmd_image.c shares with them. */
#ifndef CMD_IMAGE_OPS_H
#define CMD_IMAGE_OPS_H

#include "cmd/noun_ops.h"
#include "store/image_store.h"

MUST_CHECK int image_op_fetch(struct noun_job *job, const struct noun *noun, struct noun_sink *sink,
                              struct err *err);
MUST_CHECK int image_op_verify(struct noun_job *job, const struct noun *noun,
                               struct noun_sink *sink, struct err *err);
MUST_CHECK int image_op_lock(struct noun_job *job, const struct noun *noun, struct noun_sink *sink,
                             struct err *err);
MUST_CHECK int image_op_foresee(struct noun_job *job, const struct noun *noun,
                                struct noun_sink *sink, struct err *err);
MUST_CHECK int image_op_repair(struct noun_job *job, const struct noun *noun,
                               struct noun_sink *sink, struct err *err);

/* Members "reference", "platform", "digest", "manifest", "config", "layers", "bytes", "from", "date" of what the store has. */
void image_info_json(struct json_out *out, const struct image_info *info);

#endif
