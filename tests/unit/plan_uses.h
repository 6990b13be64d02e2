/* SPDX-License-Identifier: Apache-2.0 */
/* The relations that plan_check.h needs: which call is done before which begins, by streams and events, and which calls use each
   value. */
#pragma once

#include "base/base.h"

#include "graph/memplan.h"

struct plan_check {
    const struct graph *graph;
    const struct memplan *plan;
    size_t n_words;
    uint64_t *done; /* (calls, words): bit a of row b: call a is done before call b begins */
    int *
        first; /* (values + 1): value v is used by the calls uses[first[v]] to uses[first[v + 1] - 1], in order */
    int *uses;
    int n_faults;
    char fault[256]; /* the first one */
};

static inline void plan_fault(struct plan_check *check, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (check->n_faults++ == 0) {
        vsnprintf(check->fault, sizeof(check->fault), fmt, args);
    }
    va_end(args);
}

static inline bool is_done_before(const struct plan_check *check, int a, int b)
{
    return (check->done[(size_t)b * check->n_words + (size_t)a / 64] >> (a % 64) & 1U) != 0;
}

static inline void done_before(struct plan_check *check, int a, int b)
{
    uint64_t *row = &check->done[(size_t)b * check->n_words];
    const uint64_t *from = &check->done[(size_t)a * check->n_words];
    for (size_t i = 0; i < check->n_words; i++) {
        row[i] |= from[i];
    }
    row[a / 64] |= UINT64_C(1) << (a % 64);
}

/* In the order in which the host enqueues: an event is its last recording. */
static inline void relate_calls(struct plan_check *check, int n_events_max)
{
    const struct graph *graph = check->graph;
    int *recorded = xcalloc((size_t)n_events_max, sizeof(*recorded)); /* call + 1 */
    int last[GRAPH_STREAMS_MAX] = {0};                                /* call + 1 */
    for (int i = 0; i < graph->n_calls; i++) {
        const struct call *call = &graph->calls[i];
        if (last[call->args.stream] > 0) {
            done_before(check, last[call->args.stream] - 1, i);
        }
        last[call->args.stream] = i + 1;
        for (int w = 0; w < call->n_waits; w++) {
            int from = call->waits[w] < n_events_max ? recorded[call->waits[w]] : 0;
            if (from == 0) {
                plan_fault(check, "call %d waits for event %d, which nobody has recorded", i,
                           call->waits[w]);
            } else {
                done_before(check, from - 1, i);
            }
        }
        if (call->is_recorded && call->event >= n_events_max) {
            plan_fault(check, "call %d records event %d of %d", i, call->event, n_events_max);
        } else if (call->is_recorded) {
            recorded[call->event] = i + 1;
        }
    }
    free(recorded);
}

static inline bool call_uses(const struct call *call, int value)
{
    bool uses = false;
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        uses = uses || call->in[k] == value;
    }
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        uses = uses || call->out[j] == value;
    }
    return uses;
}

static inline bool call_writes(const struct call *call, int value)
{
    bool writes = false;
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        writes = writes || call->out[j] == value;
    }
    return writes;
}

static inline bool call_reads(const struct call *call, int value)
{
    bool reads = false;
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        reads = reads || call->in[k] == value;
    }
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        reads = reads || (call->out[j] == value && (call->reads_out >> j & 1U) != 0);
    }
    return reads;
}

/* Calls of each value, each once, in order. */
static inline void list_uses(struct plan_check *check)
{
    const struct graph *graph = check->graph;
    size_t n = (size_t)graph->n_values;
    int *seen = xcalloc(n + 1, sizeof(*seen)); /* the last call that was counted, + 1 */
    check->first = xcalloc(n + 2, sizeof(*check->first));
    for (int pass = 0; pass < 2; pass++) {
        memset(seen, 0, (n + 1) * sizeof(*seen));
        for (int i = 0; i < graph->n_calls; i++) {
            const struct call *call = &graph->calls[i];
            for (int slot = 0; slot < KERNEL_IN_MAX + KERNEL_OUT_MAX; slot++) {
                int value = slot < KERNEL_IN_MAX ? call->in[slot] : call->out[slot - KERNEL_IN_MAX];
                if (value == NO_VALUE || seen[value] == i + 1) {
                    continue;
                }
                seen[value] = i + 1;
                if (pass == 0) {
                    check->first[value + 2]++;
                } else {
                    check->uses[check->first[value + 1]++] = i;
                }
            }
        }
        for (size_t v = 2; v <= n + 1 && pass == 0; v++) {
            check->first[v] += check->first[v - 1];
        }
        if (pass == 0) {
            check->uses = xcalloc((size_t)check->first[n + 1] + 1, sizeof(*check->uses));
        }
    }
    free(seen);
}
