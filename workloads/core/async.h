/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend adds to core/kernel.h whose device computes while the host does something else: streams and events, a step kept as
   a program, marks that tell when it was done, copies next to it, other ranks' devices. */
#ifndef CORE_ASYNC_H
#define CORE_ASYNC_H

#include "core/comm.h"
#include "core/images.h"
#include "core/tensor.h"

/* A stretch of the device's memory that is copied to the host when the device comes to it. */
struct backend_span {
    const void *device;
    int64_t bytes;
};
#define MARK_SPANS_MAX 4
#define MARK_BYTES_MAX 256

/* All NULL, and one stream, on a CPU. */
struct backend_async {
    int n_streams, n_events; /* a call's stream, and an event, are below these */
    /* Bytes of the device's memory that are free; NULL: its memory is the host's. */
    int64_t (*memory_available)(void *self);
    int64_t (*memory_peak)(void *self); /* most bytes that this backend has held at once */
    /* Plans of what is prepared from now on are made to be measured, not to be run: nothing is timed for them.
       Starts as false; of nested ones the outermost counts. */
    void (*set_untimed)(void *self, bool is_untimed);
    /* Choices that were to be made by timing, when the time that there was for it was over. */
    int64_t (*late_choices)(void *self);
    /* As upload, but while the device is at what it was given before: the bytes go into `staging`, as many as device has, and from there to
       device before stream 0 begins what it is given next. Each staging is one tensor's. */
    void (*upload_async)(void *self, const struct tensor_desc *desc, const void *host,
                         void *staging, void *device);
    /* The same for a batch of images, which the device cuts out, scales, mirrors and normalises: pixels (n, 3, height, width) as an
       image of its element type, labels (n, height, width) int64, or NULL. The host's bytes may go when it returns. Before
       the first one, open_images takes what memory that needs, for images of up to so many bytes with their labels; NULL: the
       device cannot. */
    int (*open_images)(void *self, int64_t image_bytes_max, struct err *err);
    void (*images_async)(void *self, const struct image_batch *batch,
                         const struct image_place *pixels, const struct image_place *labels);
    /* Waits until all that was enqueued is done, and gives the first failure since the backend was made. */
    int (*check)(void *self, struct err *err);
    /* The event is when all is done that the stream has been given so far; what a stream is given after wait begins after
       the event. */
    void (*record)(void *self, int event, int stream);
    void (*wait)(void *self, int event, int stream);
    /* A step's work on several streams stands between the two: all begin after what stream 0 was given before, and what it is given
       after comes after all of them. */
    void (*fork)(void *self);
    void (*join)(void *self);
    /* What is enqueued between the two is not done but kept as this program; replay then does it as often as wanted. Nothing may
       be uploaded, downloaded, marked or waited for in between. */
    int (*capture_begin)(void *self, struct err *err);
    int (*capture_end)(void *self, int program, struct err *err);
    void (*replay)(void *self, int program);
    int n_programs;
    /* When all that stream 0 has been given so far is done: the time, and a copy of the spans, one behind the other. */
    void (*mark)(void *self, int slot, const struct backend_span *spans, int n_spans);
    /* Waits for the mark. *ret_ns is the time since the mark in slot `since`, by the device's clock. */
    int (*collect)(void *self, int slot, int since, void *ret_copy, int64_t *ret_ns,
                   struct err *err);
    int n_marks;
    /* Several ranks whose data lies on devices; NULL on a CPU, whose kernels and network speak to the comm themselves. Told of the
       comm before the first call is prepared; it is borrowed, and opened before anything runs. */
    int (*join_ranks)(void *self, struct comm *comm, struct err *err);
    /* Summed over the ranks, on a stream of its own, when all that every stream has been given so far is done; what is given
       later does not wait for it before end_sums. */
    void (*sum_ranks)(void *self, const struct comm_run *runs, int n_runs);
    void (*broadcast_ranks)(void *self, void *data, int64_t bytes, int root);
    void (*end_sums)(void *self); /* what stream 0 is given from here on begins after all sums */
    /* What tells this device from every other one of any machine. */
    void (*identify)(void *self, char *ret_text, size_t size);
};

#endif
