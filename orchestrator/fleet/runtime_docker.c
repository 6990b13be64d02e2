/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/runtime_oci.h"

static int commands(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err)
{
    static const char *const GPUS[] = {"--gpus=all", NULL};
    return runtime_oci_commands(arena, job, "docker", GPUS, ret_commands, err);
}

const struct runtime_driver RUNTIME_DRIVER_DOCKER = {
    .name = "docker",
    .commands = commands,
};
