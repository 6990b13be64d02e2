/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory, and copies to and from it through pinned memory of the host: a tensor is copied in pieces, one being packed while the
   previous one is in transit. Everything is on stream 0, in the order in which it was enqueued, except that a copy made during a step
   first goes to a staging buffer on a stream of its own, and on stream 0 only from there. */
#include "base/base.h"

#include "backend_cuda/memory.h"

#include "backend_cuda/layout.h"
#include "base/arena.h"

#define N_PIECES   4
#define STAGES_MAX 16 /* inputs of a network */
#define BLOCKS_MAX 64 /* arenas and what belongs to an optimiser are fewer than 20 */

struct block {
    void *ptr; /* owned, on the device */
    int64_t bytes;
};

/* Where a tensor waits until stream 0 reaches it. */
struct stage {
    const void *staging;
    cudaEvent_t arrived; /* owned; on the copying stream: all of it is there */
    cudaEvent_t taken;   /* owned; on stream 0: it may be written over */
};

struct cuda_memory {
    cudaStream_t copying; /* owned */
    struct stage stages[STAGES_MAX];
    int n_stages;
    struct cuda_piece pieces[N_PIECES];
    int next; /* piece */
    struct block blocks[BLOCKS_MAX];
    int64_t held_bytes, peak_bytes;
};

static int64_t tensor_bytes(void *self, const struct tensor_desc *desc)
{
    const struct cuda *cuda = self;
    const struct layout layout = layout_of(desc, cuda->channel_pad);
    return layout_bytes(&layout);
}

static struct block *find_block(struct cuda *cuda, const void *ptr)
{
    for (int i = 0; i < BLOCKS_MAX; i++) {
        if (cuda->memory->blocks[i].ptr == ptr) {
            return &cuda->memory->blocks[i];
        }
    }
    return NULL;
}

/* NULL where it does not fit, which the caller reports. */
void *cuda_alloc(void *self, int64_t bytes)
{
    struct cuda *cuda = self;
    struct cuda_memory *memory = cuda->memory;
    struct block *block = find_block(cuda, NULL);
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    void *ptr = NULL;
    ASSERT(block != NULL);
    if (cudaMalloc(&ptr, size) != cudaSuccess) {
        (void)cudaGetLastError(); /* or the next launch would report it */
        return NULL;
    }
    *block = (struct block){ptr, (int64_t)size};
    memory->held_bytes += block->bytes;
    if (memory->held_bytes > memory->peak_bytes) {
        memory->peak_bytes = memory->held_bytes;
    }
    cuda_ok(cuda, cudaMemsetAsync(ptr, 0, size, cuda->streams[0]), "cudaMemsetAsync");
    cuda_ok(cuda, cudaStreamSynchronize(cuda->streams[0]), "after cudaMemsetAsync");
    return ptr;
}

static void device_free(void *self, void *ptr)
{
    struct cuda *cuda = self;
    if (ptr) {
        struct block *block = find_block(cuda, ptr);
        ASSERT(block != NULL);
        cuda->memory->held_bytes -= block->bytes;
        *block = (struct block){0};
        cuda_ok(cuda, cudaFree(ptr), "cudaFree");
    }
}

struct cuda_piece *cuda_free_piece(struct cuda *cuda)
{
    struct cuda_piece *piece = &cuda->memory->pieces[cuda->memory->next];
    cuda->memory->next = (cuda->memory->next + 1) % N_PIECES;
    (void)cuda_wait_event(cuda, piece->event);
    return piece;
}

void cuda_send_piece(struct cuda *cuda, const struct cuda_piece *piece, void *device, int64_t n,
                     cudaStream_t stream)
{
    cuda_ok(cuda, cudaMemcpyAsync(device, piece->host, (size_t)n, cudaMemcpyHostToDevice, stream),
            "copy to the device");
    cuda_ok(cuda, cudaEventRecord(piece->event, stream), "cudaEventRecord");
}

static void upload_on(struct cuda *cuda, const struct tensor_desc *desc, const void *host,
                      void *device, cudaStream_t stream)
{
    const struct layout layout = layout_of(desc, cuda->channel_pad);
    int64_t size = dtype_bytes(layout.dtype);
    int64_t count = layout_count(&layout);
    int64_t step = CUDA_PIECE_BYTES / size;
    ASSERT(!cuda_is_capturing(cuda));
    for (int64_t at = 0; at < count && cuda->err.code == ERR_NONE; at += step) {
        int64_t n = count - at < step ? count - at : step;
        const struct cuda_piece *piece = cuda_free_piece(cuda);
        layout_pack(&layout, host, at, n, piece->host);
        cuda_send_piece(cuda, piece, (char *)device + at * size, n * size, stream);
    }
}

static void upload(void *self, const struct tensor_desc *desc, const void *host, void *device)
{
    struct cuda *cuda = self;
    upload_on(cuda, desc, host, device, cuda->streams[0]);
}

/* NULL after a failure, which has been reported. */
static struct stage *stage_of(struct cuda *cuda, const void *staging)
{
    struct cuda_memory *memory = cuda->memory;
    for (int i = 0; i < memory->n_stages; i++) {
        if (memory->stages[i].staging == staging) {
            return &memory->stages[i];
        }
    }
    ASSERT(memory->n_stages < STAGES_MAX);
    struct stage *stage = &memory->stages[memory->n_stages++];
    stage->staging = staging;
    bool is_there =
        cuda_ok(cuda, cudaEventCreateWithFlags(&stage->arrived, cudaEventDisableTiming), "event") &&
        cuda_ok(cuda, cudaEventCreateWithFlags(&stage->taken, cudaEventDisableTiming), "event");
    return is_there ? stage : NULL;
}

cudaStream_t cuda_copying(const struct cuda *cuda)
{
    return cuda->memory->copying;
}

bool cuda_stage_begin(struct cuda *cuda, const void *staging)
{
    const struct stage *stage = stage_of(cuda, staging);
    /* An event that was never recorded needs no wait. */
    return stage && cuda_ok(cuda, cudaStreamWaitEvent(cuda->memory->copying, stage->taken, 0),
                            "cudaStreamWaitEvent");
}

void cuda_stage_end(struct cuda *cuda, const void *staging, void *device, int64_t bytes)
{
    const struct stage *stage = stage_of(cuda, staging);
    if (!stage) {
        return;
    }
    cuda_ok(cuda, cudaEventRecord(stage->arrived, cuda->memory->copying), "cudaEventRecord");
    cuda_ok(cuda, cudaStreamWaitEvent(cuda->streams[0], stage->arrived, 0), "cudaStreamWaitEvent");
    cuda_ok(
        cuda,
        cudaMemcpyAsync(device, staging, (size_t)bytes, cudaMemcpyDeviceToDevice, cuda->streams[0]),
        "copy on the device");
    cuda_ok(cuda, cudaEventRecord(stage->taken, cuda->streams[0]), "cudaEventRecord");
}

static void upload_async(void *self, const struct tensor_desc *desc, const void *host,
                         void *staging, void *device)
{
    struct cuda *cuda = self;
    if (cuda_stage_begin(cuda, staging)) {
        upload_on(cuda, desc, host, staging, cuda->memory->copying);
        cuda_stage_end(cuda, staging, device, tensor_bytes(self, desc));
    }
}

/* After a failure the host's side is left as it is: check reports it. */
static void download(void *self, const struct tensor_desc *desc, const void *device, void *host)
{
    struct cuda *cuda = self;
    const struct layout layout = layout_of(desc, cuda->channel_pad);
    int64_t size = dtype_bytes(layout.dtype);
    int64_t count = layout_count(&layout);
    int64_t step = CUDA_PIECE_BYTES / size;
    ASSERT(!cuda_is_capturing(cuda));
    for (int64_t at = 0; at < count && cuda->err.code == ERR_NONE; at += step) {
        int64_t n = count - at < step ? count - at : step;
        const struct cuda_piece *piece = cuda_free_piece(cuda);
        cuda_ok(cuda,
                cudaMemcpyAsync(piece->host, (const char *)device + at * size, (size_t)(n * size),
                                cudaMemcpyDeviceToHost, cuda->streams[0]),
                "copy from the device");
        if (cuda_wait_stream(cuda, cuda->streams[0])) {
            layout_unpack(&layout, piece->host, at, n, host);
        }
    }
}

static int64_t memory_available(void *self UNUSED)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return (int64_t)free_bytes;
}

static int64_t memory_peak(void *self)
{
    const struct cuda *cuda = self;
    return cuda->memory->peak_bytes;
}

int cuda_memory_open(struct cuda *cuda, struct backend *backend, struct err *err)
{
    cuda->memory = xcalloc(1, sizeof(*cuda->memory));
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < N_PIECES && status == cudaSuccess; i++) {
        struct cuda_piece *piece = &cuda->memory->pieces[i];
        status = cudaMallocHost(&piece->host, (size_t)CUDA_PIECE_BYTES);
        if (status == cudaSuccess) {
            status = cudaEventCreateWithFlags(&piece->event, cudaEventDisableTiming);
        }
    }
    if (status == cudaSuccess) {
        status = cudaStreamCreateWithFlags(&cuda->memory->copying, cudaStreamNonBlocking);
    }
    if (status != cudaSuccess) {
        return err_set(err, ERR_WORKLOAD, "pinned memory: %s", cudaGetErrorString(status));
    }
    backend->tensor_bytes = tensor_bytes;
    backend->alloc = cuda_alloc;
    backend->free = device_free;
    backend->upload = upload;
    backend->download = download;
    backend->async.memory_available = memory_available;
    backend->async.memory_peak = memory_peak;
    backend->async.upload_async = upload_async;
    cuda_images_fill(backend);
    return 0;
}

void cuda_memory_close(struct cuda *cuda)
{
    struct cuda_memory *memory = cuda->memory;
    if (memory && memory->copying) {
        (void)cudaStreamSynchronize(
            memory->copying); /* a failure was reported already, or nobody waits for it */
    }
    for (int i = 0; memory && i < N_PIECES; i++) {
        if (memory->pieces[i].event) {
            (void)cudaEventDestroy(memory->pieces[i].event);
        }
        if (memory->pieces[i].host) {
            (void)cudaFreeHost(memory->pieces[i].host);
        }
    }
    for (int i = 0; memory && i < BLOCKS_MAX; i++) {
        if (memory->blocks[i].ptr) {
            (void)cudaFree(memory->blocks[i].ptr);
        }
    }
    for (int i = 0; memory && i < memory->n_stages; i++) {
        if (memory->stages[i].arrived) {
            (void)cudaEventDestroy(memory->stages[i].arrived);
        }
        if (memory->stages[i].taken) {
            (void)cudaEventDestroy(memory->stages[i].taken);
        }
    }
    if (memory && memory->copying) {
        (void)cudaStreamDestroy(memory->copying);
    }
    free(memory);
    cuda->memory = NULL;
}
