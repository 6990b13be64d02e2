/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of the CUDA backend against the CPU backend: on a GPU (make test-gpu), or on the emulator (make test). Prints TAP;
   it needs no test library, as there may be none where the GPU is. An argument is the name of the only kernel to test, or, after a
   minus, of the one to leave out. With REPERF_TEST_PLANS=FOLDER the libraries' plans are chosen by timing and kept there;
   otherwise the first plan is used. */
#include "base/base.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "backend_cuda/cuda.h"
#include "tests/cuda/held.h"
#include "tests/cuda/tap.h"

#ifdef CUDA_EMU
#include "emu.h"
#endif

/* --- the device ---------------------------------------------------------------------------------- */
static void must(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        tap_bail("%s: %s", what, cudaGetErrorString(status));
    }
}

static void fill(void *device, int byte, int64_t bytes)
{
    must(cudaMemset(device, byte, (size_t)bytes), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}
static void read_bytes(void *host, const void *device, int64_t bytes)
{
    must(cudaMemcpy(host, device, (size_t)bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}
static void write_bytes(void *device, const void *host, int64_t bytes)
{
    must(cudaMemcpy(device, host, (size_t)bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

static struct backend *checked; /* the backend of check() */
static int check(struct err *err)
{
    return checked->async.check(checked->self, err);
}

static struct held_device device_of(struct cuda *cuda, struct backend *backend)
{
    checked = backend;
    return (struct held_device){.backend = backend,
                                .dtype = cuda->is_amp ? DT_F16 : DT_F32,
                                .stat = DT_F32,
                                .has_loss_scale = true,
                                .channel_pad = cuda->channel_pad,
                                .fill = fill,
                                .read = read_bytes,
                                .write = write_bytes,
#ifdef CUDA_EMU
                                .reseed = emu_seed,
#endif
                                .check = check};
}

/* The library has fused convolutions for half precision only, and none for Volta. */
static bool may_lack(const struct held_device *device, enum kernel_id id)
{
    int major = 0;
    int minor = 0;
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
    must(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "device");
    bool is_fused =
        id == K_CONV_STATS_FWD || id == K_NORM_CONV_BWD_WEIGHT || id == K_CONV_BWD_DATA_BN;
    return device->dtype == DT_F32 || (is_fused && major == 7 && minor < 5);
}

/* --- kernels --------------------------------------------------------------------------------------- */
/* Every second case on a device of two multiprocessors: there a block takes several turns, which on a large device few of these shapes need. */
static void hold(const struct held_device *device, enum kernel_id id)
{
    struct cuda *cuda = device->backend->self;
    const int n_multiprocessors = cuda->n_multiprocessors;
    const char *mode = device->dtype == DT_F16 ? "amp" : "fp32";
    int n_held = 0;
    int n_wrong = 0;
    int n_unsupported = 0;
    char unsupported[HELD_WHY_MAX + HELD_NAME_MAX + 2] = "";
    if (device->backend->run[id] == NULL) {
        tap_report(false, "%s %s: not implemented", mode, kernel_name(id));
        return;
    }
    for (int idx = 0;; idx++) {
        char why[HELD_WHY_MAX];
        struct held_call call = {0};
        if (!held_case(&call, id, idx)) {
            break;
        }
        cuda->n_multiprocessors = idx % 2 == 1 ? 2 : n_multiprocessors;
        enum held_verdict verdict = held_run(device, &call, why);
        n_held += verdict == HELD_OK;
        n_wrong += verdict == HELD_BAD;
        n_unsupported += verdict == HELD_UNSUPPORTED;
        if (verdict == HELD_BAD) {
            (void)printf("# %s: %s\n", call.name, why);
        }
        if (verdict == HELD_UNSUPPORTED && unsupported[0] == '\0') {
            (void)snprintf(unsupported, sizeof(unsupported), "%s: %s", call.name, why);
        }
        held_release(&call);
    }
    cuda->n_multiprocessors = n_multiprocessors;
    if (n_unsupported > 0) {
        (void)printf("# %s %s: %d cases are not supported, the first: %s\n", mode, kernel_name(id),
                     n_unsupported, unsupported);
    }
    bool has_enough = n_held > 0 || (may_lack(device, id) && n_unsupported > 0);
    tap_report(n_wrong == 0 && has_enough, "%s %s: %d cases held, %d wrong, %d not supported", mode,
               kernel_name(id), n_held, n_wrong, n_unsupported);
}

/* --- is a fault noticed? ----------------------------------------------------------------------------- */
enum plant {
    PLANT_ELEMENT,
    PLANT_LANE,
    PLANT_UNWRITTEN,
    PLANT_UNROUNDED, /* rows are taken for ones without padding */
    PLANT_READS,     /* padding is taken for logits */
};
static void (*honest[K_COUNT])(void *self, const struct kernel_args *args);
static enum plant planted;

static void plant_loss(void *self, const struct kernel_args *args)
{
    struct kernel_args faulty = *args;
    struct loss_geom *g = &faulty.geom.loss;
    g->is_rounded = planted != PLANT_UNROUNDED;
    g->c = planted == PLANT_READS ? cuda_channels(self, g->c) : g->c;
    honest[K_ROW_LOSS](self, &faulty);
}

/* K_ADD_FWD of an image with 5 channels: element 0, or the first padding lane, of the result is made 1.0 or left. */
static void plant_sum(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = self;
    size_t size = cuda->is_amp ? 2 : 4;
    unsigned char bytes[4];
    unsigned char *y = args->out[0];
    must(cudaMemcpy(bytes, y, size, cudaMemcpyDeviceToHost), "cudaMemcpy");
    honest[K_ADD_FWD](self, args);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (planted == PLANT_UNWRITTEN) {
        must(cudaMemcpy(y, bytes, size, cudaMemcpyHostToDevice), "cudaMemcpy");
    } else {
        size_t at = planted == PLANT_LANE ? 5 * size : 0;
        must(cudaMemset(y + at + size - 1, 0x3c, 1), "cudaMemset");
    }
}

static void hold_plants(struct cuda *cuda, const struct backend *backend)
{
    static const struct {
        enum kernel_id id;
        int idx;
        enum plant plant;
        const char *name, *message;
    } rows[] = {
        {K_ADD_FWD, 0, PLANT_ELEMENT, "one element", "is off by"},
        {K_ADD_FWD, 0, PLANT_LANE, "a lane that rounding up adds",
         "is there by rounding up and is not 0"},
        {K_ADD_FWD, 0, PLANT_UNWRITTEN, "an element that is not written", "is off by"},
        /* One row of two logits, with others behind them. */
        {K_ROW_LOSS, 3, PLANT_UNROUNDED, "a gradient that leaves out what is behind a row",
         "is there by rounding up and is not 0"},
        {K_ROW_LOSS, 3, PLANT_READS, "a loss of what is behind a row", "is off by"},
    };
    struct backend faulty = *backend;
    memcpy(honest, backend->run, sizeof(honest));
    if (honest[K_ADD_FWD] == NULL || honest[K_ROW_LOSS] == NULL) {
        tap_report(false, "the kernels with planted faults exist");
        return;
    }
    faulty.run[K_ADD_FWD] = plant_sum;
    faulty.run[K_ROW_LOSS] = plant_loss;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char why[HELD_WHY_MAX];
        struct held_call call = {0};
        struct held_device device = device_of(cuda, &faulty);
        planted = rows[i].plant;
        bool is_there = held_case(&call, rows[i].id, rows[i].idx);
        enum held_verdict verdict = held_run(&device, &call, why);
        tap_report(is_there && verdict == HELD_BAD && strstr(why, rows[i].message) != NULL,
                   "%s: %s is noticed (%s)", cuda->is_amp ? "amp" : "fp32", rows[i].name, why);
        held_release(&call);
    }
}

/* --- main ---------------------------------------------------------------------------------------------- */
static bool is_wanted(const char *only, enum kernel_id id)
{
    return only == NULL || (only[0] == '-' ? strcmp(only + 1, kernel_name(id)) != 0
                                           : strcmp(only, kernel_name(id)) == 0);
}

static bool has_sums(enum kernel_id id)
{
    return id == K_CONV_STATS_FWD || id == K_CONV_BWD_DATA_BN;
}

/* The kernels whose sums may differ in their last bits from run to run by themselves: a device must be opened for them. Returns how many
   choices were left untimed. */
static int64_t run_mode(bool is_amp, bool is_any_order, const char *only)
{
    struct cuda cuda = {0};
    struct backend backend = {0};
    struct err err = {0};
    const char *plans = getenv("REPERF_TEST_PLANS");
    const char *limit = getenv("REPERF_TEST_TUNE_S");
    const struct cuda_opts opts = {
        .is_amp = is_amp,
        .n_streams = 1,
        .plan = {.is_tuned = plans != NULL,
                 .has_tune_limit = limit != NULL,
                 .tune_limit_s = limit ? strtol(limit, NULL, 10) : 0,
                 .allows_compiled = getenv("REPERF_TEST_COMPILED") != NULL,
                 .allows_nondeterministic = is_any_order,
                 .cache_folder = plans},
    };
    if (cuda_init(&cuda, &opts, &backend, &err) < 0) {
        tap_bail("%s", err.msg);
    }
    struct held_device device = device_of(&cuda, &backend);
    device.is_any_order = is_any_order;
    for (int id = 0; id < K_COUNT; id++) {
        if (is_wanted(only, (enum kernel_id)id) && has_sums((enum kernel_id)id) == is_any_order) {
            hold(&device, (enum kernel_id)id);
        }
    }
    if (only == NULL && !is_any_order) {
        hold_plants(&cuda, &backend);
    }
    int64_t n_untimed = backend.async.late_choices(backend.self);
    cuda_release(&cuda);
    return n_untimed;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    for (int is_amp = 0; is_amp < 2; is_amp++) {
        int64_t n_untimed = run_mode(is_amp != 0, false, only);
        n_untimed += run_mode(is_amp != 0, true, only);
        printf("# %s: %" PRId64 " choices were left untimed\n", is_amp ? "amp" : "fp32", n_untimed);
    }
    return tap_end();
}
