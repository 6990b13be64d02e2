/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/device_fit.h"

#include "base/str.h"

/* Drivers run programs of their own major version and of those before it. Source: CUDA Compatibility, "Minor version
   compatibility", https://docs.nvidia.com/deploy/cuda-compatibility/. */
static bool is_new_enough(const struct device_facts *facts)
{
    return facts->driver_version / 1000 >= facts->runtime_version / 1000;
}

int device_judge_driver(const struct device_facts *facts, struct err *err)
{
    if (facts->driver_version == 0) {
        return err_set(err, ERR_USAGE,
                       "--device cuda: this machine has no NVIDIA driver (libcuda.so.1 cannot be "
                       "loaded); --device cpu needs none");
    }
    if (!is_new_enough(facts)) {
        return err_set(err, ERR_USAGE,
                       "--device cuda: the NVIDIA driver knows CUDA up to %d.%d and this build is "
                       "made with %d.%d, which needs a driver for CUDA %d.0 or later",
                       facts->driver_version / 1000, facts->driver_version % 1000 / 10,
                       facts->runtime_version / 1000, facts->runtime_version % 1000 / 10,
                       facts->runtime_version / 1000);
    }
    if (facts->n_devices == 0) {
        return err_set(err, ERR_USAGE,
                       "--device cuda: there is a driver but no GPU that this process may see "
                       "(CUDA_VISIBLE_DEVICES, the container's devices)");
    }
    if (facts->wanted >= facts->n_devices) {
        return err_set(err, ERR_USAGE,
                       "--device cuda: this rank wants GPU %d (counted from 0) and sees %d",
                       facts->wanted, facts->n_devices);
    }
    return 0;
}

bool device_runs(const char *archs, int major, int minor)
{
    struct str rest = str_of(archs);
    struct str part;
    while (rest.ptr && str_next(&rest, '_', &part)) {
        struct err unsaid = {0};
        int64_t arch = 0;
        if (str_to_i64(part, 10, 999, &arch, &unsaid) == 0 && arch / 10 == major &&
            arch % 10 <= minor) {
            return true;
        }
    }
    return false;
}

int device_judge(const struct device_facts *facts, struct err *err)
{
    if (facts->major * 10 + facts->minor < DEVICE_CAPABILITY_MIN) {
        return err_set(err, ERR_USAGE,
                       "--device cuda: %s has compute capability %d.%d, expected %d.%d or later",
                       facts->name, facts->major, facts->minor, DEVICE_CAPABILITY_MIN / 10,
                       DEVICE_CAPABILITY_MIN % 10);
    }
    if (!device_runs(facts->archs, facts->major, facts->minor)) {
        return err_set(
            err, ERR_USAGE,
            "--device cuda: %s has compute capability %d.%d, for which this build has no "
            "kernels (it has %s); build it with CUDA_ARCHS=%d%d",
            facts->name, facts->major, facts->minor, facts->archs, facts->major, facts->minor);
    }
    return 0;
}

void device_driver_version(const char *text, char *ret_version, size_t size)
{
    static const char BETWEEN[] = " \t\n";
    *ret_version = '\0';
    for (const char *at = text + strspn(text, BETWEEN); *at; at += strspn(at, BETWEEN)) {
        size_t len = strcspn(at, BETWEEN);
        bool is_version = strspn(at, "0123456789.") == len && memchr(at, '.', len) && *at != '.';
        if (is_version && len < size) {
            snprintf(ret_version, size, "%.*s", (int)len, at);
            return;
        }
        at += len;
    }
}
