/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training run on a device that runs asynchronously to the host. Each kind of micro-batch runs twice call by
   call, so that libraries have done their one-time work; the third time it is recorded as a program, and from then on it is one
   launch. The host sets learning rate and inputs in between. On a CPU all steps run call by call. */
#pragma once

#include "graph/net.h"

/* What a micro-batch of an update does besides forward and backward. */
enum net_program {
    NET_WHOLE, /* the only one of its update, which it performs */
    NET_FIRST, /* its gradients begin the sum */
    NET_MIDDLE,
    NET_LAST, /* performs the update */
    NET_PROGRAM_COUNT
};

#define NET_EAGER_STEPS 2

struct net_player {
    struct net *net;  /* borrowed; has an optimiser */
    bool is_recorded; /* whether programs are recorded at all */
    int n_done[NET_PROGRAM_COUNT];
    bool has_program[NET_PROGRAM_COUNT];
};

/* wants_programs false: everything call by call. */
void net_player_init(struct net_player *player, struct net *net, bool wants_programs);

/* Enqueues the next micro-batch; the last one of an update also updates, with `lr`. *ret_stopped: a signal or another rank
   stopped it and the step is unfinished. -1: the device could not record. stop may be NULL. */
MUST_CHECK int net_player_micro(struct net_player *player, double lr,
                                const volatile sig_atomic_t *stop, bool *ret_stopped,
                                struct err *err);

/* What net_mark copies. */
struct net_report {
    double loss;            /* of the last micro-batch */
    struct opt_state state; /* after the update */
};

/* When all work enqueued so far is done: stores time, loss and state in `slot`, below async.n_marks. */
void net_mark(struct net *net, int slot);

/* Waits for it. *ret_ns: since the mark in slot `since`. */
MUST_CHECK int net_collect(struct net *net, int slot, int since, struct net_report *ret_report,
                           int64_t *ret_ns, struct err *err);
