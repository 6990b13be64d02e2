/* SPDX-License-Identifier: Apache-2.0 */
/* The call on the emulated device: operands laid out and uploaded, poisoned results, everything brought back. */
#ifndef UNIT_EMU_DEVICE_H
#define UNIT_EMU_DEVICE_H

#include "emu_job.h"

/* ---- the device ---- */

static inline struct layout slot_layout(const struct slot *slot, const struct cuda *cuda)
{
    struct tensor_desc desc = slot->desc;
    desc.dtype = slot_dtype(slot, cuda->is_amp ? DT_F16 : DT_F32);
    return layout_of(&desc, cuda->channel_pad);
}

static inline void *slot_upload(const struct slot *slot, const struct cuda *cuda, bool has_values)
{
    struct layout layout = slot_layout(slot, cuda);
    size_t bytes = (size_t)layout_bytes(&layout);
    void *device = NULL;
    OK(cudaMalloc(&device, bytes));
    if (has_values) {
        void *elements = to_elements(slot->values, slot->count, layout.dtype);
        void *packed = xcalloc(bytes, 1);
        layout_pack(&layout, elements, 0, layout_count(&layout), packed);
        OK(cudaMemcpy(device, packed, bytes, cudaMemcpyHostToDevice));
        free(packed);
        free(elements);
    }
    return device;
}

/* The values, and in *ret_raw the bytes as stored. Padding must be 0. */
static inline double *slot_download(const struct slot *slot, const struct cuda *cuda,
                                    const void *device, void **ret_raw)
{
    struct layout layout = slot_layout(slot, cuda);
    size_t bytes = (size_t)layout_bytes(&layout);
    void *elements = xcalloc((size_t)slot->count, sizeof(double));
    void *again = xcalloc(bytes, 1);
    *ret_raw = xcalloc(bytes, 1);
    OK(cudaMemcpy(*ret_raw, device, bytes, cudaMemcpyDeviceToHost));
    layout_unpack(&layout, *ret_raw, 0, layout_count(&layout), elements);
    if (slot->type == ELEM || slot->type == FLOAT) {
        layout_pack(&layout, elements, 0, layout_count(&layout), again);
        assert_memory_equal(again, *ret_raw, bytes);
    }
    double *values = to_doubles(elements, slot->count, layout.dtype);
    free(elements);
    free(again);
    return values;
}

struct device_run {
    double *values[KERNEL_OUT_MAX];
    void *raw[KERNEL_OUT_MAX];
    size_t bytes[KERNEL_OUT_MAX];
};

static inline void device_run_release(struct device_run *run)
{
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        free(run->values[i]);
        free(run->raw[i]);
    }
}

static inline struct device_run job_on_device(struct job *job, struct cuda *cuda)
{
    struct kernel_args args = job->args;
    struct device_run run = {0};
    float *loss_scale = NULL;
    args.dtype = cuda->is_amp ? DT_F16 : DT_F32;
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        args.in[i] = job->in[i].is_there ? slot_upload(&job->in[i], cuda, true) : NULL;
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        bool is_read = (args.accumulate >> i & 1U) != 0 || job->out[i].is_kept;
        args.out[i] = job->out[i].is_there ? slot_upload(&job->out[i], cuda, is_read) : NULL;
    }
    if (job->in_place > 0) {
        OK(cudaFree(args.out[0]));
        args.out[0] = (void *)(uintptr_t)args.in[job->in_place - 1];
    }
    if (job->loss_scale > 0.0F) {
        OK(cudaMalloc((void **)&loss_scale, sizeof(*loss_scale)));
        OK(cudaMemcpy(loss_scale, &job->loss_scale, sizeof(*loss_scale), cudaMemcpyHostToDevice));
        args.loss_scale = loss_scale;
    }
    args.workspace_bytes = job->workspace ? job->workspace(cuda, &args) : 0;
    if (args.workspace_bytes > 0) {
        OK(cudaMalloc(&args.workspace, (size_t)args.workspace_bytes));
    }
    job->run(cuda, &args);
    OK(cudaStreamSynchronize(cuda->streams[0]));
    assert_int_equal(cuda->err.code, ERR_NONE);
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        if (args.out[i]) {
            struct layout layout = slot_layout(&job->out[i], cuda);
            run.bytes[i] = (size_t)layout_bytes(&layout);
            run.values[i] = slot_download(&job->out[i], cuda, args.out[i], &run.raw[i]);
            OK(cudaFree(args.out[i]));
        }
    }
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        if (args.in[i] && i != job->in_place - 1) {
            OK(cudaFree((void *)(uintptr_t)args.in[i]));
        }
    }
    OK(cudaFree(args.workspace));
    OK(cudaFree(loss_scale));
    return run;
}

#endif
