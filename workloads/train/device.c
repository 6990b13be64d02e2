/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/device.h"

static void close_cpu(void *opened)
{
    cpu_release(opened);
    free(opened);
}

static int open_cpu(struct device *device, const struct train_opts *opts,
                    struct backend *ret_backend, struct err *err)
{
    struct cpu *cpu = xcalloc(1, sizeof(*cpu));
    device->opened = cpu;
    device->close = close_cpu;
    return cpu_init(cpu, opts->flavour, (int)opts->n_threads, ret_backend, err);
}

/* A device without a function to open it is not in this build. */
static const struct kind {
    const char *name;
    int (*open)(struct device *device, const struct train_opts *opts, struct backend *ret_backend,
                struct err *err);
} KINDS[] = {
    {"cpu", open_cpu},
#ifdef REPERF_HAVE_CUDA
    {"cuda", device_open_cuda},
#else
    {"cuda", NULL},
#endif
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        if (strcmp(KINDS[i].name, name) == 0) {
            return &KINDS[i];
        }
    }
    return NULL;
}

bool device_is_known(const char *name)
{
    return find_kind(name) != NULL;
}

bool device_is_built(const char *name)
{
    const struct kind *kind = find_kind(name);
    return kind && kind->open;
}

int device_open(struct device *device, const struct train_opts *opts, struct backend *ret_backend,
                struct err *err)
{
    const struct kind *kind = find_kind(opts->device);
    ASSERT(kind && kind->open); /* the options were checked */
    *device = (struct device){0};
    if (kind->open(device, opts, ret_backend, err) < 0) {
        device_close(device);
        return -1;
    }
    return 0;
}

void device_close(struct device *device)
{
    if (device->opened) {
        device->close(device->opened);
    }
    *device = (struct device){0};
}

struct graph_types device_types(const struct train_opts *opts)
{
    bool is_cpu = strcmp(opts->device, "cpu") == 0;
    enum dtype wide = opts->dtype == DT_F16 ? DT_F32 : opts->dtype;
    return (struct graph_types){
        .dtype = opts->dtype, .norm = wide, .stat = is_cpu ? DT_F64 : DT_F32};
}
