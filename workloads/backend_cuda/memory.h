/* SPDX-License-Identifier: Apache-2.0 */
/* What memory.c and images.c share: copies from the host to the device during a step. One thread. */
#pragma once

#include "backend_cuda/cuda.h"

#define CUDA_PIECE_BYTES ((int64_t)4 << 20)

/* Pinned memory of the host. */
struct cuda_piece {
    void *host;        /* owned; CUDA_PIECE_BYTES */
    cudaEvent_t event; /* owned; when the host may use it again */
};

/* Device memory, zeroed; NULL where it does not fit. Freed with the backend at the latest. */
void *cuda_alloc(void *self, int64_t bytes);

/* One that is no longer in transit. */
struct cuda_piece *cuda_free_piece(struct cuda *cuda);

/* The first n bytes of the piece to the device. */
void cuda_send_piece(struct cuda *cuda, const struct cuda_piece *piece, void *device, int64_t n,
                     cudaStream_t stream);

/* The stream for copies made during a step. */
cudaStream_t cuda_copying(const struct cuda *cuda);

/* What the copying stream is given between the two calls fills the staging buffer; stream 0 copies it to the device before its next
   work. False after a failure, which has been reported. */
bool cuda_stage_begin(struct cuda *cuda, const void *staging);
void cuda_stage_end(struct cuda *cuda, const void *staging, void *device, int64_t bytes);

/* images.c fills its part of the backend. */
void cuda_images_fill(struct backend *backend);
void cuda_images_close(struct cuda *cuda);

/* No more than n images in a group: for tests, whose images would all be one. */
void cuda_images_set_group(struct cuda *cuda, int64_t n);
