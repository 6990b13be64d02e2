/* SPDX-License-Identifier: Apache-2.0 */
/* What an asynchronous backend adds to core/kernel.h: streams and events, a step recorded as a program, marks that tell when it was
   done, concurrent copies, and other ranks' devices. */
#pragma once

#include "base/strbuf.h"
#include "core/comm.h"
#include "core/images.h"
#include "core/tensor.h"

/* A stretch of device memory that is copied to the host when the device reaches the mark. */
struct backend_span {
    const void *device;
    int64_t bytes;
};
#define MARK_BYTES_MAX 256

/* All NULL, and one stream, on a CPU. */
struct backend_async {
    int n_streams, n_events; /* upper bounds of a call's stream and of an event */
    /* Bytes of the device's memory that are free; NULL: its memory is the host's. */
    int64_t (*memory_available)(void *self);
    int64_t (*memory_peak)(void *self); /* most bytes that this backend has held at once */
    /* Plans prepared from now on are only measured, not run: nothing is timed for them. Starts as false; of nested ones
       the outermost counts. */
    void (*set_untimed)(void *self, bool is_untimed);
    /* Number of choices that were due after the time limit for timing had passed. */
    int64_t (*late_choices)(void *self);
    /* Calls prepared from now on need no more than so many bytes of workspace each, and run more slowly; 0: no such limit. */
    void (*limit_workspace)(void *self, int64_t bytes);
    /* Choices made by timing, which serve all devices of one kind (the device, its driver, the libraries): a text of all that were
       made so far, and the taking of one, after which nothing is timed any more. NULL where nothing is timed. */
    const char *(*kind)(void *self);
    void (*share_choices)(void *self, struct strbuf *text);
    int (*take_choices)(void *self, struct str text, struct err *err);
    /* As upload, but while the device works on what it was given before: the bytes go into `staging`, which is as large as device, and from
       there to device before stream 0 begins its next work. Each staging belongs to one tensor. */
    void (*upload_async)(void *self, const struct tensor_desc *desc, const void *host,
                         void *staging, void *device);
    /* The same for a batch of images, which the device crops, scales, mirrors and normalises: pixels (n, 3, height, width) as an
       image of its element type, labels (n, height, width) int64, or NULL. The host's bytes may be freed when it returns. Before
       the first one, open_images allocates the memory for it, for images of up to so many bytes with their labels; NULL: not
       supported. */
    int (*open_images)(void *self, int64_t image_bytes_max, struct err *err);
    void (*images_async)(void *self, const struct image_batch *batch,
                         const struct image_place *pixels, const struct image_place *labels);
    /* Waits for all enqueued work, and returns the first failure since the backend was opened. */
    int (*check)(void *self, struct err *err);
    /* The event occurs when all work given to the stream so far is done; work given to a stream after wait begins after
       the event. */
    void (*record)(void *self, int event, int stream);
    void (*wait)(void *self, int event, int stream);
    /* A step's work on several streams is between the two: it begins after the work given to stream 0 before, and stream 0's later
       work comes after all of it. */
    void (*fork)(void *self);
    void (*join)(void *self);
    /* What is enqueued between the two is not executed but recorded as this program; replay then executes it any number of
       times. Nothing may be uploaded, downloaded, marked or waited for in between. */
    int (*capture_begin)(void *self, struct err *err);
    int (*capture_end)(void *self, int program, struct err *err);
    void (*replay)(void *self, int program);
    /* No program is replayed again. One that the device executes ends first, and nobody waits for it. */
    void (*drop_programs)(void *self);
    int n_programs;
    /* Taken when all work given to stream 0 so far is done: the time, and a copy of the spans, one after the other. */
    void (*mark)(void *self, int slot, const struct backend_span *spans, int n_spans);
    /* Waits for the mark. *ret_ns is the time since the mark in slot `since`, by the device's clock. */
    int (*collect)(void *self, int slot, int since, void *ret_copy, int64_t *ret_ns,
                   struct err *err);
    int n_marks;
    /* Several ranks with data on devices; NULL on a CPU, whose kernels and network use the comm themselves. Called with the comm
       before the first call is prepared; the comm is borrowed, and opened before anything runs. */
    int (*join_ranks)(void *self, struct comm *comm, struct err *err);
    /* Summed over the ranks, on a stream of its own, when all work given to every stream so far is done; later work does not
       wait for it before end_sums. */
    void (*sum_ranks)(void *self, const struct comm_run *runs, int n_runs);
    void (*broadcast_ranks)(void *self, void *data, int64_t bytes, int root);
    void (*end_sums)(void *self); /* later work of stream 0 begins after all sums */
    /* A text that identifies this device among all devices of all machines. */
    void (*identify)(void *self, char *ret_text, size_t size);
};
