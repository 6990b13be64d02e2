/* SPDX-License-Identifier: Apache-2.0 */
/* What emu_dnn.c and emu_lt.c share: a library's call as one queued kernel, tensors as arrays of float. */
#ifndef CUDA_EMU_LIBRARY_H
#define CUDA_EMU_LIBRARY_H

#include "backend_cuda/plans.h"

struct cuda;

/* Enqueues fn on the call's stream with a copy of args; before it, the call's workspace is filled with garbage. */
void library_enqueue(struct cuda *cuda, const struct kernel_args *args, const char *name,
                     void (*fn)(const struct kernel_args *args));

/* A copy of `count` elements of args->dtype as float; free() it. NULL stays NULL. */
float *library_read(const struct kernel_args *args, const void *ptr, int64_t count);

/* = or +=, rounded once. */
void library_write(const struct kernel_args *args, int out, const double *from, int64_t count);

/* As an element of args->dtype. */
double library_round(const struct kernel_args *args, double value);

/* `count` doubles of 0; free() it. */
double *library_zeros(int64_t count);

/* prepare and unprepare of both. */
void library_prepare(struct kernel_args *args, const char *name);
void library_unprepare(struct kernel_args *args);
struct plan_info library_info(const struct kernel_args *args);

/* The sum of a[i] * b[i]. */
double library_dot(const float *a, const float *b, int64_t count);

#endif
