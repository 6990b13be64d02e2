/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/memplan.h"

#include "graph/streams.h"

#include <limits.h>

static enum memplan_arena arena_of(enum value_kind kind)
{
    switch (kind) {
    case VALUE_PARAM:
        return MEMPLAN_PARAM;
    case VALUE_GRAD_PARAM:
        return MEMPLAN_GRAD;
    case VALUE_STATE:
        return MEMPLAN_STATE;
    case VALUE_INPUT:
    case VALUE_ACT:
    case VALUE_GRAD_ACT:
        break;
    }
    return MEMPLAN_ACT;
}

/* Lifetime of a value, or of a stretch of memory. Every use comes after the first one. */
struct life {
    int first_call; /* BEFORE_ALL: written from outside */
    int n_on
        [GRAPH_STREAMS_MAX]; /* for each stream: how many calls until the last that uses it is done */
};
#define BEFORE_ALL (-1)
#define AFTER_ALL  INT_MAX

/* What is done by the time a call begins. */
struct lives {
    struct streams_clocks clocks;
    struct life *lives; /* (values) */
};

static void touch(const struct graph *graph, struct lives *lives, struct place *places, int value,
                  int call_idx)
{
    if (value == NO_VALUE) {
        return;
    }
    if (places[value].first_call < 0) {
        places[value].first_call = call_idx;
        lives->lives[value].first_call = call_idx;
    }
    places[value].last_call = call_idx;
    lives->lives[value].n_on[graph->calls[call_idx].args.stream] =
        lives->clocks.position[call_idx] + 1;
}

static void find_lives(const struct graph *graph, struct lives *lives, struct place *places)
{
    for (int i = 0; i < graph->n_calls; i++) {
        for (int j = 0; j < KERNEL_IN_MAX; j++) {
            touch(graph, lives, places, graph->calls[i].in[j], i);
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            touch(graph, lives, places, graph->calls[i].out[j], i);
        }
    }
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == VALUE_INPUT) {
            places[i].first_call = 0; /* written before the first call */
            lives->lives[i].first_call = BEFORE_ALL;
        }
        if (graph->values[i].is_kept) {
            places[i].last_call = graph->n_calls;
            lives->lives[i].n_on[0] = AFTER_ALL;
        }
    }
}

/* True if all of a's life is over before b's begins, in every execution that the streams' events allow. */
static bool is_over(const struct streams_clocks *clocks, const struct life *a, const struct life *b)
{
    if (b->first_call == BEFORE_ALL) {
        return false;
    }
    for (int s = 0; s < clocks->n_streams; s++) {
        if (a->n_on[s] > clocks->before[b->first_call * clocks->n_streams + s]) {
            return false;
        }
    }
    return true;
}

/* Whether `out` of call call_idx may take over the memory of `in`: only if the life of one ends and that of the other
   begins there, and nothing reads `in` later or on another stream. */
static bool can_take_over(const struct lives *lives, const struct place *places, int in, int out,
                          int call_idx, int stream)
{
    struct life rest = lives->lives[in]; /* without this call */
    if (rest.n_on[stream] == lives->clocks.position[call_idx] + 1) {
        rest.n_on[stream]--;
    }
    return places[in].arena == MEMPLAN_ACT && places[out].arena == MEMPLAN_ACT &&
           places[in].size_bytes == places[out].size_bytes && places[in].last_call == call_idx &&
           places[out].first_call == call_idx && is_over(&lives->clocks, &rest, &lives->lives[out]);
}

static void join_in_place(const struct graph *graph, const struct lives *lives,
                          struct place *places)
{
    for (int i = 0; i < graph->n_calls; i++) {
        const struct call *call = &graph->calls[i];
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            int out = call->out[j];
            for (int k = 0; k < KERNEL_IN_MAX && out != NO_VALUE; k++) {
                int in = call->in[k];
                if (in != NO_VALUE && (call->inplace[j] >> k & 1U) != 0 &&
                    can_take_over(lives, places, in, out, i, call->args.stream)) {
                    places[out].root = places[in].root;
                    out = NO_VALUE;
                }
            }
        }
    }
}

/* Parameters first in gradient order, so that both arenas have the same offsets; then the rest, in order. */
static int place_flat(const struct graph *graph, struct memplan *plan, struct err *err)
{
    int64_t total = 0;
    for (int i = 0; i < graph->n_params; i++) {
        int param = graph->grad_order[i];
        plan->places[param].offset_bytes = total;
        if (!graph->is_inference) {
            plan->places[graph->values[param].grad].offset_bytes = total;
        }
        if (__builtin_add_overflow(total, plan->places[param].size_bytes, &total)) {
            return err_set(err, ERR_USAGE, "parameters: size overflows");
        }
    }
    plan->arena_bytes[MEMPLAN_PARAM] = total;
    plan->arena_bytes[MEMPLAN_GRAD] = graph->is_inference ? 0 : total;
    int64_t states = 0;
    for (int i = 0; i < graph->n_values; i++) {
        if (plan->places[i].arena == MEMPLAN_STATE) {
            plan->places[i].offset_bytes = states;
            states += plan->places[i].size_bytes;
        }
    }
    plan->arena_bytes[MEMPLAN_STATE] = states;
    return 0;
}

/* One stretch of activation memory: a root and the joined lives of all values that take it over. */
struct stretch {
    int root;
    int first_call, last_call;
    struct life life;
    int64_t size_bytes;
    int64_t offset_bytes;
};

static int by_size(const void *left, const void *right)
{
    const struct stretch *a = left;
    const struct stretch *b = right;
    if (a->size_bytes != b->size_bytes) {
        return a->size_bytes < b->size_bytes ? 1 : -1;
    }
    return (a->root > b->root) - (a->root < b->root);
}

static int collect_stretches(const struct memplan *plan, const struct lives *lives,
                             struct stretch *stretches, int *slot_of)
{
    int n = 0;
    for (int i = 0; i < plan->n_places; i++) {
        const struct place *place = &plan->places[i];
        if (place->arena != MEMPLAN_ACT || place->first_call < 0) {
            continue;
        }
        if (place->root == i) {
            slot_of[i] = n;
            stretches[n++] = (struct stretch){.root = i,
                                              .first_call = place->first_call,
                                              .last_call = place->last_call,
                                              .life = lives->lives[i],
                                              .size_bytes = place->size_bytes};
        }
    }
    for (int i = 0; i < plan->n_places; i++) {
        const struct place *place = &plan->places[i];
        if (place->arena == MEMPLAN_ACT && place->first_call >= 0 && place->root != i) {
            struct stretch *stretch = &stretches[slot_of[place->root]];
            if (place->last_call > stretch->last_call) {
                stretch->last_call = place->last_call;
            }
            for (int s = 0; s < lives->clocks.n_streams; s++) {
                int n_on = lives->lives[i].n_on[s];
                stretch->life.n_on[s] = n_on > stretch->life.n_on[s] ? n_on : stretch->life.n_on[s];
            }
        }
    }
    return n;
}

/* Lowest offset at which stretches[idx] overlaps none of the earlier ones that live at the same time. */
static int64_t lowest_gap(const struct streams_clocks *clocks, const struct stretch *stretches,
                          int idx)
{
    const struct stretch *mine = &stretches[idx];
    int64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < idx; i++) {
            const struct stretch *other = &stretches[i];
            bool meets = offset < other->offset_bytes + other->size_bytes &&
                         other->offset_bytes < offset + mine->size_bytes;
            if (meets && !is_over(clocks, &other->life, &mine->life) &&
                !is_over(clocks, &mine->life, &other->life)) {
                offset = other->offset_bytes + other->size_bytes;
                moved = true;
            }
        }
    }
    return offset;
}

static int64_t most_live(const struct stretch *stretches, int n, int n_calls)
{
    int64_t most = 0;
    for (int call = 0; call <= n_calls; call++) {
        int64_t live = 0;
        for (int i = 0; i < n; i++) {
            bool lives = stretches[i].first_call <= call && call <= stretches[i].last_call;
            live += lives ? stretches[i].size_bytes : 0;
        }
        most = live > most ? live : most;
    }
    return most;
}

/* Largest first, each at the lowest gap: within a few per cent of live_bytes_max for our models (tests print it). */
static int place_activations(struct arena *arena, const struct graph *graph,
                             const struct lives *lives, struct memplan *plan, struct err *err)
{
    struct stretch *stretches = arena_array(arena, struct stretch, (size_t)plan->n_places + 1);
    int *slot_of = arena_array(arena, int, (size_t)plan->n_places + 1);
    int n = collect_stretches(plan, lives, stretches, slot_of);
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        if (__builtin_add_overflow(sum, stretches[i].size_bytes, &sum)) {
            return err_set(err, ERR_USAGE, "activations: size overflows");
        }
    }
    qsort(stretches, (size_t)n, sizeof(*stretches), by_size);
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        int64_t offset = lowest_gap(&lives->clocks, stretches, i);
        stretches[i].offset_bytes = offset;
        plan->places[stretches[i].root].offset_bytes = offset;
        int64_t end = offset + stretches[i].size_bytes;
        total = end > total ? end : total;
    }
    for (int i = 0; i < plan->n_places; i++) {
        struct place *place = &plan->places[i];
        if (place->arena == MEMPLAN_ACT && place->first_call >= 0) {
            place->offset_bytes = plan->places[place->root].offset_bytes;
        }
    }
    plan->arena_bytes[MEMPLAN_ACT] = total;
    plan->live_bytes_max = most_live(stretches, n, graph->n_calls);
    return 0;
}

/* A joined parameter is adjacent to the previous one, without a gap. */
static int check_joined(const struct graph *graph, const struct memplan *plan, struct err *err)
{
    for (int i = 0; i < graph->n_params; i++) {
        int param = graph->params[i];
        const struct value *before = &graph->values[param - 1];
        if (!graph->values[param].is_joined) {
            continue;
        }
        int64_t bytes = shape_count(&before->shape) * dtype_bytes(before->dtype);
        if (plan->places[param].offset_bytes != plan->places[param - 1].offset_bytes + bytes) {
            return err_set(err, ERR_USAGE,
                           "%s has %" PRId64
                           " bytes, expected a multiple of %d, so that %s is adjacent to it",
                           before->name, bytes, MEMPLAN_ALIGN_BYTES, graph->values[param].name);
        }
    }
    return 0;
}

int memplan_make(struct arena *arena, const struct graph *graph, memplan_bytes_fn bytes_of,
                 void *self, struct memplan *ret_plan, struct err *err)
{
    ASSERT(graph->is_finished);
    struct memplan plan = {.n_places = graph->n_values};
    plan.places = arena_array(arena, struct place, (size_t)graph->n_values + 1);
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        const struct tensor_desc desc = value_desc(value);
        int64_t bytes = bytes_of(self, &desc);
        plan.places[i] = (struct place){
            .arena = arena_of(value->kind),
            .size_bytes =
                (bytes + MEMPLAN_ALIGN_BYTES - 1) / MEMPLAN_ALIGN_BYTES * MEMPLAN_ALIGN_BYTES,
            .first_call = -1,
            .last_call = -1,
            .root = i,
        };
    }
    struct lives lives = {.lives = arena_array(arena, struct life, (size_t)graph->n_values + 1)};
    if (streams_clocks_make(arena, graph, &lives.clocks, err) < 0) {
        return -1;
    }
    find_lives(graph, &lives, plan.places);
    join_in_place(graph, &lives, plan.places);
    if (place_flat(graph, &plan, err) < 0 || check_joined(graph, &plan, err) < 0 ||
        place_activations(arena, graph, &lives, &plan, err) < 0) {
        return -1;
    }
    *ret_plan = plan;
    return 0;
}
