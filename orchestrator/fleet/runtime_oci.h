/* SPDX-License-Identifier: Apache-2.0 */
/* What docker and podman have in common. */
#ifndef FLEET_RUNTIME_OCI_H
#define FLEET_RUNTIME_OCI_H

#include "fleet/runtime_impl.h"

/* gpus: the words that give a container all GPUs; ended by NULL. */
MUST_CHECK int runtime_oci_commands(struct arena *arena, const struct runtime_job *job,
                                    const char *engine, const char *const *gpus,
                                    struct runtime_commands *ret_commands, struct err *err);

#endif
