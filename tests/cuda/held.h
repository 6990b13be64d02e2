/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel's call on a device, checked against the same call of the CPU backend in double. Inputs are first rounded
   to what the device stores, so that only the device's arithmetic and the rounding of its results differ. No CUDA
   header here: the same cases apply to any backend.

   Each case runs as it is, with its += outputs added to, with each output in the memory of its input where the contract
   allows that, and with a loss scale where gradients begin; each of these twice, which must give the same bits. Outputs
   and the workspace begin as NaN. Inputs must not change, and padding must be 0. */
#ifndef CUDA_HELD_H
#define CUDA_HELD_H

#include "backend_cpu/cpu.h"
#include "base/base.h"
#include "base/rng.h"

enum held_type {
    HELD_ELEM,  /* args.dtype */
    HELD_FLOAT, /* float on the device: struct graph_types' norm */
    HELD_STAT,  /* its stat: float on a GPU, double on the CPU */
    HELD_I32,
    HELD_I64,
};

struct held_tensor {
    bool is_there;
    enum held_type type;
    enum role role;
    struct shape shape;
    int64_t count;
    double *values;   /* owned, in the order of the shape */
    bool is_kept;     /* an output that is read, too */
    bool is_poisoned; /* an input: its padding is NaN and not 0 */
    int may_lie_in;   /* an output: may use this input's memory, counted from 1 */
    double tolerance; /* 0: held_run's */
};

#define HELD_NAME_MAX 160

struct held_call {
    char name[HELD_NAME_MAX]; /* "bn_fwd (2, 5, 3, 3) relu" */
    struct kernel_args args;  /* id, geometry, has_bias; the rest is filled in */
    struct held_tensor in[KERNEL_IN_MAX], out[KERNEL_OUT_MAX];
    unsigned can_add;   /* bit i: out[i] may be += */
    unsigned is_scaled; /* bit i: *loss_scale is a factor of out[i] */
    bool is_optional;   /* a fused call, which a library may not have for this type and shape */
    struct rng rng;
};

struct held_device {
    struct backend *backend;
    enum dtype dtype; /* DT_F32 or DT_F16 */
    enum dtype stat;  /* of mean, rstd, sums */
    bool has_loss_scale;
    int64_t channel_pad; /* 0: tensors are stored as on the CPU */
    void (*fill)(void *device, int byte, int64_t bytes);
    void (*read)(void *host, const void *device, int64_t bytes);
    void (*write)(void *device, const void *host, int64_t bytes);
    void (*reseed)(uint64_t seed); /* NULL: the device's order cannot be chosen */
    bool is_any_order;             /* another run may give other last bits */
    int (*check)(struct err *err); /* waits, and returns the first failure */
};

/* Fills *call, which is zeroed, for case `idx` of a kernel; false past the last. */
bool held_case(struct held_call *call, enum kernel_id id, int idx);

enum held_verdict { HELD_OK, HELD_UNSUPPORTED, HELD_BAD };

/* why, which has HELD_WHY_MAX bytes, says what was wrong. call's values are rounded to the device's types. */
#define HELD_WHY_MAX 512
enum held_verdict held_run(const struct held_device *device, struct held_call *call, char *why);
void held_release(struct held_call *call);

/* --- for the cases ---------------------------------------------------------------------------- */
void held_name(struct held_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Normal values, mean 0 and deviation 1. */
struct held_tensor *held_in(struct held_call *call, int idx, enum held_type type, enum role role,
                            struct shape shape);
struct held_tensor *held_out(struct held_call *call, int idx, enum held_type type, enum role role,
                             struct shape shape);

/* An output that may be += and, where may_lie_in is not 0, in place. */
struct held_tensor *held_grad(struct held_call *call, int idx, enum held_type type, enum role role,
                              struct shape shape, int may_lie_in);

void held_normal(struct held_call *call, struct held_tensor *tensor, double mean, double deviation);
void held_relu(struct held_tensor *tensor);                /* values below 0 become 0 */
void held_above(struct held_tensor *tensor, double least); /* least + |value| */
/* Whole numbers from 0 to below n; one in `one_in` of them is `other`, none where one_in is 0. */
void held_integers(struct held_call *call, struct held_tensor *tensor, int64_t n, int one_in,
                   int64_t other);

#endif
