/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's description of itself and the device, errors, seeds and planted faults. */
#include "emu_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLANTS_MAX 16

static cudaError_t last_error;
static uint64_t state;
static bool is_begun;
static struct {
    char name[32];
    int left;
} plants[PLANTS_MAX];
static int n_plants;
static int current;
static int cc_major = 9, cc_minor;

static void read_environment(void)
{
    is_begun = true;
    const char *seed = getenv("REPERF_EMU_SEED");
    emu_seed(seed != NULL ? strtoull(seed, NULL, 10) : 1);
    const char *cc = getenv("REPERF_EMU_CC");
    if (cc != NULL && (sscanf(cc, "%d.%d", &cc_major, &cc_minor) != 2 || cc_major < 1)) {
        emu_die("REPERF_EMU_CC=%s: expected MAJOR.MINOR", cc);
    }
    const char *fault = getenv("REPERF_EMU_FAULT");
    while (fault != NULL && *fault != '\0') {
        char name[32] = "";
        int nth = 1;
        int n_read = 0;
        if (sscanf(fault, "%31[^:,]%n:%d%n", name, &n_read, &nth, &n_read) < 1) {
            emu_die("REPERF_EMU_FAULT: expected NAME:NTH[,...]");
        }
        emu_plant(name, nth);
        fault += n_read + (fault[n_read] == ',');
    }
}

static void begin(void)
{
    if (!is_begun) {
        read_environment();
    }
}

void emu_seed(uint64_t seed)
{
    begin();
    emu_queue_seed(seed);
    state = seed * 0x9e3779b97f4a7c15ULL + 0x1234567ULL;
}

/* Source of the steps: Steele et al., "Fast splittable pseudorandom number generators" (2014), as splitmix64. */
uint64_t emu_random(void)
{
    begin();
    state += 0x9e3779b97f4a7c15ULL;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

void emu_plant(const char *name, int nth)
{
    begin();
    if (n_plants == PLANTS_MAX || strlen(name) >= sizeof(plants[0].name)) {
        emu_die("too many planted faults, or no such name: %s", name);
    }
    (void)snprintf(plants[n_plants].name, sizeof(plants[0].name), "%s", name);
    plants[n_plants++].left = nth;
}

int emu_fault(const char *what)
{
    begin();
    bool is_due = false;
    for (int i = 0; i < n_plants; i++) {
        if (plants[i].left > 0 && strcmp(plants[i].name, what) == 0) {
            plants[i].left--;
            is_due |= plants[i].left == 0;
        }
    }
    return is_due;
}

bool emu_is_planted(const char *what)
{
    begin();
    for (int i = 0; i < n_plants; i++) {
        if (strcmp(plants[i].name, what) == 0) {
            return true;
        }
    }
    return false;
}

void emu_unplant(void)
{
    begin();
    n_plants = 0;
}

void emu_device(int major, int minor, size_t memory_bytes)
{
    begin();
    cc_major = major;
    cc_minor = minor;
    emu_memory_size(memory_bytes);
}

cudaError_t emu_ready(void)
{
    return emu_is_planted("old_driver")  ? cudaErrorInsufficientDriver
           : emu_is_planted("no_device") ? cudaErrorNoDevice
                                         : cudaSuccess;
}

cudaError_t emu_fail(cudaError_t error)
{
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

#define NAMED(name)                                                                                \
    {                                                                                              \
        name, #name                                                                                \
    }
static const struct {
    cudaError_t error;
    const char *name;
} names[] = {
    NAMED(cudaSuccess),
    NAMED(cudaErrorInvalidValue),
    NAMED(cudaErrorMemoryAllocation),
    NAMED(cudaErrorInitializationError),
    NAMED(cudaErrorInvalidConfiguration),
    NAMED(cudaErrorInvalidMemcpyDirection),
    NAMED(cudaErrorInsufficientDriver),
    NAMED(cudaErrorNoDevice),
    NAMED(cudaErrorInvalidDevice),
    NAMED(cudaErrorInvalidResourceHandle),
    NAMED(cudaErrorNotReady),
    NAMED(cudaErrorIllegalAddress),
    NAMED(cudaErrorLaunchOutOfResources),
    NAMED(cudaErrorLaunchFailure),
    NAMED(cudaErrorNotSupported),
    NAMED(cudaErrorStreamCaptureUnsupported),
    NAMED(cudaErrorStreamCaptureInvalidated),
    NAMED(cudaErrorStreamCaptureUnmatched),
    NAMED(cudaErrorStreamCaptureUnjoined),
    NAMED(cudaErrorStreamCaptureIsolation),
    NAMED(cudaErrorStreamCaptureImplicit),
    NAMED(cudaErrorUnknown),
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].error == error) {
            return names[i].name;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emu_is_planted("old_driver")  ? 11040
               : emu_is_planted("no_driver") ? 0
                                             : CUDART_VERSION;
    return cudaSuccess;
}

static int n_devices(void)
{
    const char *text = getenv("REPERF_EMU_DEVICES");
    int n = text != NULL ? (int)strtol(text, NULL, 10) : 1;
    if (n < 1 || n > 64) {
        emu_die("REPERF_EMU_DEVICES=%s: expected 1 to 64", text);
    }
    return n;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = emu_ready() == cudaSuccess ? n_devices() : 0;
    return emu_fail(emu_ready());
}

static cudaError_t is_device(int device)
{
    return emu_fail(emu_ready() != cudaSuccess            ? emu_ready()
                    : device >= 0 && device < n_devices() ? cudaSuccess
                                                          : cudaErrorInvalidDevice);
}

/* A process uses one of them: they share its memory. */
cudaError_t cudaSetDevice(int device)
{
    cudaError_t error = is_device(device);
    current = error == cudaSuccess ? device : current;
    return error;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return emu_fail(emu_ready());
}

/* Limits of compute capability 9.0, and of 7.0 where they are less. Source: CUDA C++ Programming Guide, "Technical
   Specifications per Compute Capability". */
static cudaError_t describe(struct cudaDeviceProp *prop, int device)
{
    cudaError_t error = is_device(device);
    if (error != cudaSuccess) {
        return error;
    }
    size_t free_bytes = 0;
    memset(prop, 0, sizeof(*prop));
    memcpy(prop->uuid.bytes, "emulated device", sizeof(prop->uuid.bytes));
    prop->uuid.bytes[15] = (char)device;
    (void)snprintf(prop->name, sizeof(prop->name), "CUDA emulator");
    (void)cudaMemGetInfo(&free_bytes, &prop->totalGlobalMem);
    prop->sharedMemPerBlock = 48 * 1024;
    prop->sharedMemPerBlockOptin = emu_shared_optin();
    prop->sharedMemPerMultiprocessor = emu_shared_optin() + 1024;
    prop->regsPerBlock = 65536;
    prop->warpSize = EMU_WARP;
    prop->maxThreadsPerBlock = EMU_THREADS_MAX;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024;
    prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = INT32_MAX;
    prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->major = cc_major;
    prop->minor = cc_minor;
    prop->multiProcessorCount = cc_major >= 9 ? 132 : 80;
    prop->l2CacheSize = 1 << 20;
    prop->memoryBusWidth = 5120;
    prop->concurrentKernels = 1;
    return cudaSuccess;
}

/* Programs that have the real header, whose struct is another one, bring their own (tests/ptx). */
__attribute__((weak)) cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    return describe(prop, device);
}

size_t emu_shared_optin(void)
{
    return (size_t)(cc_major >= 9 ? 227 : cc_major == 8 ? 163 : cc_minor == 5 ? 64 : 96) << 10;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    struct cudaDeviceProp prop;
    cudaError_t error = describe(&prop, device);
    if (error != cudaSuccess) {
        return error;
    }
    const struct {
        enum cudaDeviceAttr attr;
        int value;
    } rows[] = {
        {cudaDevAttrMaxThreadsPerBlock, prop.maxThreadsPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlock, (int)prop.sharedMemPerBlock},
        {cudaDevAttrWarpSize, prop.warpSize},
        {cudaDevAttrClockRate, 1980000},
        {cudaDevAttrMultiProcessorCount, prop.multiProcessorCount},
        {cudaDevAttrMemoryClockRate, 2619000},
        {cudaDevAttrGlobalMemoryBusWidth, prop.memoryBusWidth},
        {cudaDevAttrL2CacheSize, prop.l2CacheSize},
        {cudaDevAttrMaxThreadsPerMultiProcessor, prop.maxThreadsPerMultiProcessor},
        {cudaDevAttrComputeCapabilityMajor, prop.major},
        {cudaDevAttrComputeCapabilityMinor, prop.minor},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, (int)prop.sharedMemPerMultiprocessor},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)prop.sharedMemPerBlockOptin},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].attr == attr) {
            *value = rows[i].value;
            return cudaSuccess;
        }
    }
    return emu_fail(cudaErrorInvalidValue);
}
