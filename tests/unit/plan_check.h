/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter of plans: the calls of a graph with their streams and events, and the place of every value. It trusts neither the
   scheduler nor the planner: which call is done before which begins follows from streams and events, as a relation between all pairs
   of calls; every two uses of one value, and every two values in the same memory, are checked against it. Nothing is run. */
#pragma once

#include "plan_uses.h"

static inline bool is_from_outside(const struct value *value)
{
    return value->kind == VALUE_INPUT || value->kind == VALUE_PARAM || value->kind == VALUE_STATE;
}

static inline bool is_needed_after(const struct value *value)
{
    return value->is_kept || is_from_outside(value) || value->kind == VALUE_GRAD_PARAM;
}

/* Nothing is read before it is written, and of two uses of which one writes, one is done before the other. */
static inline void check_value(struct plan_check *check, int value)
{
    const struct graph *graph = check->graph;
    bool is_written = is_from_outside(&graph->values[value]);
    for (int i = check->first[value]; i < check->first[value + 1]; i++) {
        const struct call *call = &graph->calls[check->uses[i]];
        if (call_reads(call, value) && !is_written) {
            plan_fault(check, "call %d (%s) reads value %d before it is written", check->uses[i],
                       kernel_name(call->args.id), value);
        }
        for (int j = check->first[value]; j < i; j++) {
            const struct call *older = &graph->calls[check->uses[j]];
            bool conflicts = call_writes(call, value) || call_writes(older, value);
            if (conflicts && !is_done_before(check, check->uses[j], check->uses[i])) {
                plan_fault(check, "calls %d (%s) and %d (%s) use value %d side by side",
                           check->uses[j], kernel_name(older->args.id), check->uses[i],
                           kernel_name(call->args.id), value);
            }
        }
        is_written = is_written || call_writes(call, value);
    }
    if (!is_written && is_needed_after(&graph->values[value])) {
        plan_fault(check, "value %d (%s) is never written", value,
                   graph->values[value].name ? graph->values[value].name : "no name");
    }
}

/* True if all of a is done before the first use of b, except for the call `except`. */
static inline bool is_over_before(const struct plan_check *check, int a, int b, int except)
{
    const struct value *value = &check->graph->values[a];
    if (is_needed_after(value) || is_from_outside(&check->graph->values[b])) {
        return false;
    }
    int first = check->uses[check->first[b]];
    for (int i = check->first[a]; i < check->first[a + 1]; i++) {
        if (check->uses[i] != except && !is_done_before(check, check->uses[i], first)) {
            return false;
        }
    }
    return true;
}

/* b takes over a's memory in the call that writes b, as the kernel's contract allows. */
static inline bool takes_over(const struct plan_check *check, int a, int b)
{
    const struct place *from = &check->plan->places[a];
    const struct place *to = &check->plan->places[b];
    int first = check->uses[check->first[b]];
    const struct call *call = &check->graph->calls[first];
    bool may = false;
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            may = may || (call->out[j] == b && call->in[k] == a &&
                          (call->inplace[j] >> k & 1U) != 0 && (call->reads_out >> j & 1U) == 0);
        }
    }
    return may && from->offset_bytes == to->offset_bytes && from->size_bytes == to->size_bytes &&
           is_over_before(check, a, b, first);
}

static inline void check_pair(struct plan_check *check, int a, int b)
{
    if (!is_over_before(check, a, b, NO_VALUE) && !is_over_before(check, b, a, NO_VALUE) &&
        !takes_over(check, a, b) && !takes_over(check, b, a)) {
        plan_fault(check, "values %d and %d lie in one memory and live at once", a, b);
    }
}

static inline bool is_used(const struct plan_check *check, int value)
{
    return check->first[value] < check->first[value + 1];
}

static inline void check_place(struct plan_check *check, int value, int64_t *end)
{
    const struct place *place = &check->plan->places[value];
    if (place->offset_bytes < 0 || place->offset_bytes % MEMPLAN_ALIGN_BYTES != 0 ||
        place->size_bytes <= 0 || place->size_bytes % MEMPLAN_ALIGN_BYTES != 0) {
        plan_fault(check, "value %d: %" PRId64 " bytes at %" PRId64 ", not aligned", value,
                   place->size_bytes, place->offset_bytes);
    }
    int64_t mine = place->offset_bytes + place->size_bytes;
    *end = mine > *end ? mine : *end;
}

struct plan_interval {
    int64_t from, to;
    int value;
};

static inline int by_offset(const void *left, const void *right)
{
    const struct plan_interval *a = left;
    const struct plan_interval *b = right;
    return (a->from > b->from) - (a->from < b->from);
}

/* Everything in one arena: alignment, its size, and every two values that share bytes. Joined values are adjacent without
   overlap. */
static inline void check_arena(struct plan_check *check, enum memplan_arena arena)
{
    const struct graph *graph = check->graph;
    struct plan_interval *intervals = xcalloc((size_t)graph->n_values + 1, sizeof(*intervals));
    int n = 0;
    int64_t end = 0;
    for (int v = 0; v < graph->n_values; v++) {
        const struct place *place = &check->plan->places[v];
        if (place->arena == arena && is_used(check, v)) {
            check_place(check, v, &end);
            intervals[n++] = (struct plan_interval){place->offset_bytes,
                                                    place->offset_bytes + place->size_bytes, v};
        }
    }
    if (end != check->plan->arena_bytes[arena]) {
        plan_fault(check, "arena %d has %" PRId64 " bytes, its values end at %" PRId64, (int)arena,
                   check->plan->arena_bytes[arena], end);
    }
    qsort(intervals, (size_t)n, sizeof(*intervals), by_offset);
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n && intervals[j].from < intervals[i].to; j++) {
            check_pair(check, intervals[i].value, intervals[j].value);
        }
    }
    free(intervals);
}

/* How many faults the plan has; the first one's text goes to ret_fault (256 bytes), which may be NULL. */
static inline int plan_check_run(const struct graph *graph, const struct memplan *plan,
                                 int n_events_max, char *ret_fault)
{
    struct plan_check check = {
        .graph = graph, .plan = plan, .n_words = (size_t)graph->n_calls / 64 + 1};
    check.done = xcalloc(check.n_words * ((size_t)graph->n_calls + 1), sizeof(*check.done));
    relate_calls(&check, n_events_max);
    list_uses(&check);
    for (int v = 0; v < graph->n_values; v++) {
        check_value(&check, v);
    }
    for (int arena = 0; arena < MEMPLAN_ARENA_COUNT; arena++) {
        check_arena(&check, (enum memplan_arena)arena);
    }
    if (ret_fault) {
        memcpy(ret_fault, check.fault, sizeof(check.fault));
    }
    free(check.done);
    free(check.first);
    free(check.uses);
    return check.n_faults;
}
