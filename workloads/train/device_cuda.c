/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/device.h"

#ifdef REPERF_HAVE_CUDA

#include "backend_cuda/cuda.h"
#include "core/plan_cache.h"

static void close_cuda(void *opened)
{
    cuda_release(opened);
    free(opened);
}

int device_open_cuda(struct device *device, const struct train_opts *opts,
                     struct backend *ret_backend, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder = opts->plan_cache ? opts->plan_cache : plan_cache_folder(&arena);
    const struct cuda_opts cuda_opts = {
        .device = opts->ranks.local_rank,
        .is_amp = opts->dtype == DT_F16,
        .has_tf32 = opts->has_tf32,
        .n_streams = (int)opts->n_streams,
        .n_marks = DEVICE_MARKS,
        .plan = {.is_tuned = opts->is_tuned,
                 .has_tune_limit = true,
                 .tune_limit_s = opts->tune_limit_s,
                 .allows_compiled = opts->allows_compiled,
                 .allows_nondeterministic = opts->allows_nondeterministic,
                 .cache_folder = folder && strcmp(folder, "none") != 0 ? folder : NULL},
    };
    _Static_assert((int)DEVICE_MARKS <= (int)CUDA_MARKS_MAX, "there are so many");
    _Static_assert((int)NET_STREAMS_MAX <= (int)CUDA_STREAMS_MAX, "there are so many");
    struct cuda *cuda = xcalloc(1, sizeof(*cuda));
    device->opened = cuda;
    device->close = close_cuda;
    if (cuda_init(cuda, &cuda_opts, ret_backend, err) < 0) {
        return -1;
    }
    const struct cuda_facts facts = cuda_facts(cuda);
    snprintf(device->about.gpu, sizeof(device->about.gpu), "%s", facts.gpu);
    snprintf(device->about.driver, sizeof(device->about.driver), "%s", facts.driver);
    snprintf(device->about.libraries, sizeof(device->about.libraries), "%s", facts.libraries);
    snprintf(device->about.runtime, sizeof(device->about.runtime), "%s", facts.runtime);
    device->about.memory_bytes = facts.memory_bytes;
    return 0;
}

#endif
