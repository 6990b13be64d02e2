/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/runtime_oci.h"

static int commands(struct arena *arena, const struct runtime_job *job,
                    struct runtime_commands *ret_commands, struct err *err)
{
    /* By the Container Device Interface. Source: NVIDIA Container Toolkit, "Support for Container Device Interface". */
    static const char *const GPUS[] = {"--device", "nvidia.com/gpu=all", NULL};
    return runtime_oci_commands(arena, job, "podman", GPUS, ret_commands, err);
}

const struct runtime_driver RUNTIME_DRIVER_PODMAN = {
    .name = "podman",
    .commands = commands,
};
