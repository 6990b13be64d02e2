/* SPDX-License-Identifier: Apache-2.0 */
/* The functions by which nvcc's host code registers and launches kernels, replacing the runtime library; the rest of the runtime is
   tests/cuda_emu's. REPERF_PTX names the folder of the kernels' .ptx files, REPERF_PTX_REPORT a file that gets a line for each kernel and each
   finding. */
#include "base/base.h"

#include <cuda_runtime_api.h>
#include <dirent.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "tests/cuda_emu/emu.h"
#include "tests/ptx/ptx.h"

#define FILE_BYTES_MAX ((size_t)64 << 20)

/* A .cu file's object, and its functions as it registered them. */
struct object {
    void *handle;
    struct ptx_module *module; /* found at the first launch */
    VEC(struct str) names;
};
struct function {
    const void *host;
    struct object *object;
    struct str name;
    struct ptx_kernel *kernel;
};
struct finding {
    struct str text;
    uint64_t n;
};
static VEC(struct object *) objects;
static VEC(struct function) functions;
static VEC(struct ptx_module *) modules;
static VEC(struct finding) findings;
static struct {
    dim3 grid, block;
    size_t shared_bytes;
    void *stream;
} configuration;

void ptx_die(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)fprintf(stderr, "ptx: ");
    (void)vfprintf(stderr, format, list);
    (void)fprintf(stderr, "\n");
    va_end(list);
    (void)fflush(NULL);
    _exit(PTX_STATUS);
}

/* --- findings and the report ------------------------------------------------------------------------------------------ */
void ptx_found(const struct ptx_insn *insn, const char *what)
{
    const struct ptx_kernel *k = ptx_block.launch->kernel;
    char text[512];
    int len = snprintf(text, sizeof(text), "%s: %.*s: %.*s: %.*s", what, STR_ARG(k->module->name),
                       STR_ARG(k->name), STR_ARG(insn->text));
    size_t used = len < (int)sizeof(text) ? (size_t)len : sizeof(text) - 1;
    for (size_t i = 0; i < findings.n; i++) {
        if (str_eq(findings.items[i].text, (struct str){text, used})) {
            findings.items[i].n++;
            return;
        }
    }
    (void)fprintf(stderr, "ptx: %s\n", text);
    VEC_PUSH(&findings, ((struct finding){str_of(xstrdup(text)), 1}));
}

static void report(void)
{
    const char *path = getenv("REPERF_PTX_REPORT");
    FILE *file = path != NULL ? fopen(path, "ae") : NULL;
    if (path != NULL && file == NULL) {
        ptx_die("%s: cannot be written", path);
    }
    for (size_t m = 0; file != NULL && m < modules.n; m++) {
        const struct map *kernels = &modules.items[m]->kernels;
        for (size_t i = 0; i < kernels->n; i++) {
            const struct ptx_kernel *k = kernels->entries[i].value;
            (void)fprintf(file, "kernel %.*s %.*s %" PRIu64 " %" PRIu64 "\n",
                          STR_ARG(k->module->name), STR_ARG(k->name), k->n_launches, k->n_insns);
        }
    }
    for (size_t i = 0; file != NULL && i < findings.n; i++) {
        (void)fprintf(file, "finding %" PRIu64 " %.*s\n", findings.items[i].n,
                      STR_ARG(findings.items[i].text));
    }
    if (file != NULL && fclose(file) != 0) {
        ptx_die("%s: cannot be written", path);
    }
    if (findings.n > 0) {
        (void)fflush(NULL);
        _exit(PTX_STATUS);
    }
}

/* --- kernels ------------------------------------------------------------------------------------------ */
static void load(const char *folder, const char *name)
{
    static struct arena arena; /* never freed: kernels borrow their text */
    struct err err = {0};
    struct str text = STR_EMPTY;
    if (fs_read(&arena, fs_join(&arena, folder, name), FILE_BYTES_MAX, &text, &err) < 0) {
        ptx_die("%s", err.msg);
    }
    VEC_PUSH(&modules, ptx_parse(str_of(xstrdup(name)), text));
}

static void load_all(void)
{
    const char *path = getenv("REPERF_PTX");
    const char *seed = getenv("REPERF_EMU_SEED");
    DIR *folder = path != NULL ? opendir(path) : NULL;
    if (folder == NULL) {
        ptx_die("REPERF_PTX=%s: not a folder", path != NULL ? path : "");
    }
    ptx_seed(seed != NULL ? strtoull(seed, NULL, 10) : 1);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (str_ends(str_of(entry->d_name), STR_LIT(".ptx"))) {
            load(path, entry->d_name);
        }
    }
    (void)closedir(folder);
    if (atexit(report) != 0) {
        ptx_die("no report can be made at the end");
    }
}

static bool has_all(const struct ptx_module *module, const struct object *object)
{
    for (size_t i = 0; i < object->names.n; i++) {
        if (map_get(&module->kernels, object->names.items[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static struct ptx_kernel *kernel_of(struct function *f)
{
    if (modules.n == 0) {
        load_all();
    }
    for (size_t i = 0; f->object->module == NULL && i < modules.n; i++) {
        f->object->module = has_all(modules.items[i], f->object) ? modules.items[i] : NULL;
    }
    if (f->object->module == NULL) {
        ptx_die("no file has all kernels that are registered with %.*s", STR_ARG(f->name));
    }
    if (f->kernel == NULL) {
        f->kernel = map_get(&f->object->module->kernels, f->name);
    }
    return f->kernel;
}

static struct function *function_of(const void *host)
{
    for (size_t i = 0; i < functions.n; i++) {
        if (functions.items[i].host == host) {
            return &functions.items[i];
        }
    }
    ptx_die("a function is launched that was not registered");
}

/* --- launches ------------------------------------------------------------------------------------------ */
static void run(void *launch)
{
    ptx_run_launch(launch);
}
static void drop(void *closure)
{
    struct ptx_launch *launch = closure;
    free(launch->params);
    free(launch);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    struct ptx_kernel *k = kernel_of(function_of(function));
    struct ptx_launch *launch = xcalloc(1, sizeof(*launch));
    const struct emu_dim g = {grid.x, grid.y, grid.z};
    const struct emu_dim b = {block.x, block.y, block.z};
    *launch = (struct ptx_launch){.kernel = k,
                                  .grid = {grid.x, grid.y, grid.z},
                                  .block = {block.x, block.y, block.z},
                                  .dynamic_bytes = (uint32_t)shared_bytes,
                                  .params = xcalloc(1, k->param_bytes + 1)};
    for (size_t i = 0; i < k->params.n; i++) {
        memcpy(launch->params + k->params.items[i].offset, args[i], k->params.items[i].bytes);
    }
    if (k->threads_max > 0 && (uint64_t)block.x * block.y * block.z > k->threads_max) {
        drop(launch);
        return cudaErrorInvalidValue;
    }
    /* Static shared memory counts in deciding whether an opt-in is necessary. */
    size_t all = k->shared_bytes + shared_bytes;
    return (cudaError_t)emu_launch_grid(
        function, "kernel", &g, &b,
        all > PTX_SHARED_FREE && shared_bytes > 0 ? all - k->shared_bytes : 0, stream, run, launch,
        drop);
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* their only caller is nvcc's output */
/* --- what nvcc's objects call, by the declarations in crt/host_runtime.h ------------------------------------------ */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, args, shared_bytes, stream);
}
void **__cudaRegisterFatBinary(void *binary)
{
    struct object *object = xcalloc(1, sizeof(*object));
    object->handle = binary;
    VEC_PUSH(&objects, object);
    return (void **)object;
}
void __cudaRegisterFatBinaryEnd(void **handle UNUSED)
{
}
void __cudaUnregisterFatBinary(void **handle UNUSED)
{
}
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name UNUSED,
                            int limit UNUSED, void *tid UNUSED, void *bid UNUSED,
                            void *block UNUSED, void *grid UNUSED, int *warp UNUSED)
{
    struct object *object = (struct object *)handle;
    VEC_PUSH(&functions, ((struct function){host, object, str_of(device), NULL}));
    VEC_PUSH(&object->names, str_of(device));
}
void __cudaRegisterVar(void **handle UNUSED, char *host UNUSED, char *address UNUSED,
                       const char *name UNUSED, int ext UNUSED, size_t size UNUSED,
                       int is_constant UNUSED, int is_global UNUSED)
{
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void *stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared_bytes = shared_bytes;
    configuration.stream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared_bytes = configuration.shared_bytes;
    *(void **)stream = configuration.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *ret_kernel, const void *function)
{
    *ret_kernel = (cudaKernel_t)(uintptr_t)function; /* a handle that is returned unchanged */
    return cudaSuccess;
}

/* The real header's struct, filled from tests/cuda_emu's device; few multiprocessors, so that grids sized by them stay small. */
#define MULTIPROCESSORS 2
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    size_t free_bytes = 0;
    int shared_bytes = 0;
    memset(prop, 0, sizeof(*prop));
    cudaError_t status =
        cudaDeviceGetAttribute(&prop->major, cudaDevAttrComputeCapabilityMajor, device);
    if (status == cudaSuccess) {
        status = cudaDeviceGetAttribute(&prop->minor, cudaDevAttrComputeCapabilityMinor, device);
    }
    if (status == cudaSuccess) {
        status =
            cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    }
    if (status == cudaSuccess) {
        status = cudaMemGetInfo(&free_bytes, &prop->totalGlobalMem);
    }
    (void)snprintf(prop->name, sizeof(prop->name), "PTX machine");
    prop->sharedMemPerBlock = PTX_SHARED_FREE;
    prop->sharedMemPerBlockOptin = (size_t)shared_bytes;
    prop->sharedMemPerMultiprocessor = (size_t)shared_bytes + 1024;
    prop->regsPerBlock = 65536;
    prop->warpSize = PTX_WARP;
    prop->maxThreadsPerBlock = PTX_THREADS_MAX;
    prop->maxThreadsPerMultiProcessor = 2048;
    prop->multiProcessorCount = MULTIPROCESSORS;
    prop->l2CacheSize = 1 << 20;
    prop->memoryBusWidth = 5120;
    return status;
}

/* No registers are counted here: an arbitrary number that no source uses. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n_blocks,
                                                                   const void *function UNUSED,
                                                                   int n_threads UNUSED,
                                                                   size_t shared_bytes UNUSED,
                                                                   unsigned flags UNUSED)
{
    *n_blocks = 2;
    return cudaSuccess;
}
