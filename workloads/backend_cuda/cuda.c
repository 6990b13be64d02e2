/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/cuda.h"

#include "backend_cuda/device_fit.h"
#include "backend_cuda/dnn.h"
#include "backend_cuda/lt.h"
#include "backend_cuda/memory.h"
#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#define CHANNEL_PAD_AMP  8 /* 16 bytes: what tensor cores and cuDNN's fused engines ask for */
#define CHANNEL_PAD_FP32 4
#define TEXT_OF(x)       #x
#define TEXT(x)          TEXT_OF(x)

bool cuda_ok(struct cuda *cuda, cudaError_t status, const char *what)
{
    if (status == cudaSuccess) {
        return true;
    }
    if (cuda->err.code != ERR_NONE) {
        return false;
    }
    return err_set(&cuda->err, ERR_WORKLOAD, "%s: %s", what, cudaGetErrorString(status)) == 0;
}

/* ---- opening ---- */

/* Queries that fail leave their value at 0. */
static int look(const struct cuda_opts *opts, struct cudaDeviceProp *ret_prop, struct err *err)
{
    struct device_facts facts = {
        .runtime_version = CUDART_VERSION,
        .wanted = opts->device,
        .archs = TEXT(REPERF_CUDA_ARCHS),
    };
    if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) {
        facts.driver_version = 0;
    }
    cudaError_t status = cudaGetDeviceCount(&facts.n_devices);
    if (status != cudaSuccess) {
        facts.n_devices = 0;
    }
    (void)cudaGetLastError(); /* it is reported below */
    if (device_judge_driver(&facts, err) < 0) {
        return -1;
    }
    status = cudaGetDeviceProperties(ret_prop, opts->device);
    if (status != cudaSuccess) {
        return err_set(err, ERR_WORKLOAD, "GPU %d: %s", opts->device, cudaGetErrorString(status));
    }
    facts.name = ret_prop->name;
    facts.major = ret_prop->major;
    facts.minor = ret_prop->minor;
    return device_judge(&facts, err);
}

static int open_streams(struct cuda *cuda, struct err *err)
{
    cudaError_t status = cudaSetDevice(cuda->device);
    for (int i = 0; i < cuda->n_streams && status == cudaSuccess; i++) {
        status = cudaStreamCreateWithFlags(&cuda->streams[i], cudaStreamNonBlocking);
    }
    if (status != cudaSuccess) {
        /* Another process may hold the device exclusively, or it may be broken. */
        return err_set(err, ERR_WORKLOAD, "GPU %d cannot be opened: %s", cuda->device,
                       cudaGetErrorString(status));
    }
    return 0;
}

static int open_libraries(struct cuda *cuda, const struct cuda_opts *opts, struct err *err)
{
    return dnn_open(cuda, &opts->plan, err) < 0 || lt_open(cuda, &opts->plan, err) < 0 ? -1 : 0;
}

static void close_libraries(struct cuda *cuda)
{
    lt_close(cuda);
    dnn_close(cuda);
}

static void set_untimed(void *self, bool is_untimed)
{
    struct cuda *cuda = self;
    cuda->tuning.n_untimed += is_untimed ? 1 : -1;
}

static void limit_workspace(void *self, int64_t bytes)
{
    struct cuda *cuda = self;
    cuda->workspace_limit = bytes;
}

int64_t cuda_workspace_max(const struct cuda *cuda, enum dtype dtype)
{
    int64_t most = dtype == DT_F16 ? PLAN_WORKSPACE_MAX_BYTES : PLAN_WORKSPACE_F32_MAX_BYTES;
    int64_t limit = cuda->workspace_limit;
    return limit > 0 && limit < most ? limit : most;
}

bool cuda_may_time(struct cuda *cuda)
{
    struct cuda_tuning *tuning = &cuda->tuning;
    if (!cuda_is_tuned(cuda) || cuda->tuning.is_over) {
        return false;
    }
    const struct clock_src clock = clock_system();
    int64_t now_ns = clock.mono_ns(clock.ctx);
    tuning->begin_ns = tuning->begin_ns == 0 ? now_ns : tuning->begin_ns;
    if (!tuning->has_limit || now_ns - tuning->begin_ns < tuning->limit_ns) {
        return true;
    }
    if (tuning->n_late++ == 0) {
        log_line(LOG_WARN,
                 "the %d s for timing plans are over: from here on the libraries' first choices "
                 "are taken",
                 (int)(tuning->limit_ns / NS_PER_S));
    }
    return false;
}

static int64_t late_choices(void *self)
{
    const struct cuda *cuda = self;
    return cuda->tuning.n_late;
}

/* ---- choices that ranks share ---- */

static const char *kind(void *self)
{
    const struct cuda *cuda = self;
    return cuda->book.about;
}

static void share_choices(void *self, struct strbuf *text)
{
    const struct cuda *cuda = self;
    plan_book_write(&cuda->book, text);
}

static int take_choices(void *self, struct str text, struct err *err)
{
    struct cuda *cuda = self;
    cuda->tuning.is_over = true;
    return plan_book_read(&cuda->book, text, err);
}

static void name_libraries(const struct cuda *cuda, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "%.100s, %.100s", dnn_version(cuda), lt_version(cuda));
}

static void open_book(struct cuda *cuda, const char *folder)
{
    const struct cuda_facts facts = cuda_facts(cuda);
    char about[PLAN_ABOUT_MAX];
    (void)snprintf(about, sizeof(about), "%.80s; driver %.60s; %.100s", facts.gpu, facts.driver,
                   facts.libraries);
    plan_book_open(&cuda->book, folder, about);
}

int cuda_init(struct cuda *cuda, const struct cuda_opts *opts, struct backend *ret_backend,
              struct err *err)
{
    struct cudaDeviceProp prop;
    struct backend backend = {
        .name = opts->is_amp     ? "cuda-amp"
                : opts->has_tf32 ? "cuda-tf32"
                                 : "cuda-fp32",
        .self = cuda,
        .n_threads = 1,
        .async = {.n_streams = opts->n_streams},
    };
    ASSERT(opts->n_streams >= 1 && opts->n_streams <= CUDA_STREAMS_MAX);
    ASSERT(opts->n_marks <= CUDA_MARKS_MAX);
    *cuda = (struct cuda){.device = opts->device,
                          .channel_pad = opts->is_amp ? CHANNEL_PAD_AMP : CHANNEL_PAD_FP32,
                          .is_amp = opts->is_amp,
                          .has_tf32 = opts->has_tf32,
                          .n_streams = opts->n_streams,
                          .tuning = {.is_asked = opts->plan.is_tuned,
                                     .has_limit = opts->plan.has_tune_limit,
                                     .limit_ns = opts->plan.tune_limit_s * NS_PER_S}};
    if (look(opts, &prop, err) < 0) {
        return -1;
    }
    cuda->n_multiprocessors = prop.multiProcessorCount;
    if (open_streams(cuda, err) < 0 || cuda_memory_open(cuda, &backend, err) < 0 ||
        cuda_streams_open(cuda, opts, &backend, err) < 0 || open_libraries(cuda, opts, err) < 0) {
        cuda_release(cuda);
        return -1;
    }
    cuda_forms_open(cuda);
    open_book(cuda, opts->plan.cache_folder);
    cuda_fill_kernels(&backend);
    backend.async.set_untimed = set_untimed;
    backend.async.late_choices = late_choices;
    backend.async.limit_workspace = limit_workspace;
    if (opts->plan.is_tuned) {
        backend.async.kind = kind;
        backend.async.share_choices = share_choices;
        backend.async.take_choices = take_choices;
    }
    cuda_fill_ranks(&backend);
    *ret_backend = backend;
    return 0;
}

void cuda_release(struct cuda *cuda)
{
    for (int i = 0; i < cuda->n_streams; i++) {
        if (cuda->streams[i]) {
            (void)cudaStreamSynchronize(
                cuda->streams[i]); /* a failure was reported already, or nobody waits for it */
        }
    }
    cuda_forms_close(cuda);
    close_libraries(cuda);
    cuda_ranks_close(cuda);
    cuda_images_close(cuda);
    cuda_streams_close(cuda);
    cuda_memory_close(cuda);
    plan_book_close(&cuda->book);
    for (int i = 0; i < cuda->n_streams; i++) {
        if (cuda->streams[i]) {
            (void)cudaStreamDestroy(cuda->streams[i]);
        }
    }
    *cuda = (struct cuda){0};
}

/* ---- what there is ---- */

/* Empty where the file cannot be read, as in some containers. */
static void module_version(char *ret_text, size_t size)
{
    char text[512] = "";
    int fd = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = '\0';
        close(fd);
    }
    device_driver_version(text, ret_text, size);
}

struct cuda_facts cuda_facts(const struct cuda *cuda)
{
    struct cuda_facts facts = {0};
    struct cudaDeviceProp prop = {0};
    char module[64];
    int driver = 0;
    if (cudaGetDeviceProperties(&prop, cuda->device) == cudaSuccess) {
        snprintf(facts.gpu, sizeof(facts.gpu), "%s", prop.name);
        facts.memory_bytes = (int64_t)prop.totalGlobalMem;
    }
    if (cudaDriverGetVersion(&driver) != cudaSuccess) {
        driver = 0;
    }
    module_version(module, sizeof(module));
    snprintf(facts.driver, sizeof(facts.driver), "%s%sCUDA %d.%d", module,
             module[0] != '\0' ? ", " : "", driver / 1000, driver % 1000 / 10);
    snprintf(facts.runtime, sizeof(facts.runtime), "%d.%d", CUDART_VERSION / 1000,
             CUDART_VERSION % 1000 / 10);
    name_libraries(cuda, facts.libraries, sizeof(facts.libraries));
    return facts;
}
