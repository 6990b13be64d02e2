/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fusion share: functions that read and change the calls, and one function a pattern. */
#pragma once

#include "graph/fuse.h"
#include "graph/internal.h"

#define NO_CALL (-1)

/* The only call of that kernel for that op, or NO_CALL. */
int fuse_call_of(const struct graph *graph, enum kernel_id id, int op);

/* The first call of that kernel that has the value in in[slot], or NO_CALL. */
int fuse_call_with(const struct graph *graph, enum kernel_id id, int slot, int value);

/* The last call before call_idx that writes the value, or NO_CALL. */
int fuse_writer(const struct graph *graph, int value, int call_idx);

/* How many calls from call_idx on read the value, including +=. */
int fuse_count_reads(const struct graph *graph, int value, int call_idx);

/* Whether a library's convolutions do it. */
bool fuse_is_of_conv(enum fuse_pattern pattern);

/* A call without inputs and outputs, of the op of `like`, in its pass. */
struct call fuse_call(enum kernel_id id, const struct call *like);

/* Calls from call_idx on move up by one, or down by one. */
void fuse_insert(struct graph *graph, int call_idx, const struct call *call);
void fuse_remove(struct graph *graph, int call_idx);

/* out[to] of the call becomes what out[from] of old was: += stays +=. */
void fuse_take_out(struct call *call, int to, const struct call *old, int from);

/* A number for each channel of the value x, which is an image: written by a call, so an activation. */
int fuse_channel_value(struct graph *graph, int x, enum dtype dtype);
int fuse_scalar_value(struct graph *graph, enum dtype dtype);

/* True if the pattern can be fused at the op; it is, if do_it is set. The first does any pattern. */
bool fuse_at(struct graph *graph, enum fuse_pattern pattern, int op, bool keeps_outputs,
             bool do_it);
bool fuse_upsample_loss(struct graph *graph, int op, bool keeps_outputs, bool do_it);
bool fuse_bn_add(struct graph *graph, int op, bool do_it);
bool fuse_mask(struct graph *graph, int op, bool do_it);
bool fuse_conv_stats(struct graph *graph, int op, bool do_it);
bool fuse_norm_conv(struct graph *graph, int op, bool do_it);
bool fuse_conv_bn_bwd(struct graph *graph, int op, bool do_it);

/* Whether the fused call would read another gradient, or what was added before the ReLU. */
bool fuse_conv_bn_bwd_adds(const struct graph *graph, int op);
bool fuse_bn_pair(struct graph *graph, int op, bool do_it);
bool fuse_drop_add_norm(struct graph *graph, int op, bool do_it);
