/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/player.h"

_Static_assert(sizeof(float) + sizeof(struct opt_state) <= MARK_BYTES_MAX, "a mark holds a report");

void net_player_init(struct net_player *player, struct net *net, bool wants_programs)
{
    const struct backend_async *async = &net->backend->async;
    ASSERT(net->has_optimizer);
    *player = (struct net_player){
        .net = net,
        /* Communication between ranks over the host cannot be replayed. */
        .is_recorded = wants_programs && async->n_programs >= NET_PROGRAM_COUNT &&
                       (!net->comm || async->join_ranks)};
}

static enum net_program program_of(const struct net *net)
{
    int64_t n_micro = net->update.rule.n_micro;
    if (n_micro == 1) {
        return NET_WHOLE;
    }
    return net->n_micro_done == 0             ? NET_FIRST
           : net->n_micro_done + 1 == n_micro ? NET_LAST
                                              : NET_MIDDLE;
}

static bool updates(enum net_program program)
{
    return program == NET_WHOLE || program == NET_LAST;
}

/* True if it was stopped before its end. */
static bool enqueue(struct net *net, enum net_program program, const volatile sig_atomic_t *stop)
{
    if (net_gradients(net, stop)) {
        return true;
    }
    if (updates(program)) {
        net_apply_update(net);
    }
    return false;
}

/* The counters of net_gradients and net_apply_update, for a launched program. */
static void count_micro(struct net *net, enum net_program program)
{
    if (program != NET_WHOLE) {
        net->n_micro_done = program == NET_LAST ? 0 : net->n_micro_done + 1;
    }
}

static int record(struct net_player *player, enum net_program program, bool *ret_stopped,
                  struct err *err)
{
    struct net *net = player->net;
    const struct backend_async *async = &net->backend->async;
    int64_t n_micro_done = net->n_micro_done;
    if (async->capture_begin(net->backend->self, err) < 0) {
        return -1;
    }
    *ret_stopped = enqueue(net, program, NULL);
    net->n_micro_done = n_micro_done; /* nothing has been done yet */
    if (*ret_stopped) {
        struct err unsaid = {0}; /* another rank ended it midway: its result is lost */
        (void)(async->capture_end(net->backend->self, (int)program, &unsaid) < 0);
        return 0;
    }
    if (async->capture_end(net->backend->self, (int)program, err) < 0) {
        return -1;
    }
    player->has_program[program] = true;
    return 0;
}

int net_player_micro(struct net_player *player, double lr, const volatile sig_atomic_t *stop,
                     bool *ret_stopped, struct err *err)
{
    struct net *net = player->net;
    enum net_program program = program_of(net);
    *ret_stopped = false;
    if (updates(program)) {
        net_set_lr(net, lr);
    }
    if (player->is_recorded && !player->has_program[program] &&
        player->n_done[program] == NET_EAGER_STEPS &&
        record(player, program, ret_stopped, err) < 0) {
        return -1;
    }
    if (*ret_stopped) {
        return 0;
    }
    if (player->has_program[program]) {
        *ret_stopped = (stop && *stop != 0) || (net->comm && comm_has_failed(net->comm));
        if (!*ret_stopped) {
            if (net->comm) {
                comm_device_count(net->comm);
            }
            net->backend->async.replay(net->backend->self, (int)program);
            count_micro(net, program);
        }
        return 0;
    }
    *ret_stopped = enqueue(net, program, stop);
    player->n_done[program]++;
    return 0;
}

void net_mark(struct net *net, int slot)
{
    ASSERT(net->graph->types.norm == DT_F32);
    const struct place *place = &net->plan.places[net->graph->loss];
    const struct backend_span spans[] = {
        {(const char *)net->mem[place->arena] + place->offset_bytes, sizeof(float)},
        {net->update.state, sizeof(struct opt_state)},
    };
    net->backend->async.mark(net->backend->self, slot, spans, ARRAY_LEN(spans));
}

int net_collect(struct net *net, int slot, int since, struct net_report *ret_report,
                int64_t *ret_ns, struct err *err)
{
    char copy[MARK_BYTES_MAX];
    float loss;
    if (net->backend->async.collect(net->backend->self, slot, since, copy, ret_ns, err) < 0) {
        return -1;
    }
    memcpy(&loss, copy, sizeof(loss));
    memcpy(&ret_report->state, copy + sizeof(loss), sizeof(ret_report->state));
    ret_report->loss = (double)loss;
    return 0;
}
