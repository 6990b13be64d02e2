/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/streams.h"

#include "graph/internal.h"
#include "graph/traffic.h"

/* Expected duration of a call: a launch, and the slower of its bytes and its arithmetic. Only the proportions matter.
   Source: a launch in a captured graph takes some 2 us; an H100's 3.35 TB/s and 989 TFLOP/s in half precision, of which
   convolutions reach about 40 % (NVIDIA, H100 datasheet). */
#define CALL_NS      2000.0
#define BYTES_PER_NS 3.0e3
#define FLOPS_PER_NS 4.0e5

/* ---- dependencies ---- */

/* The calls that each call needs directly: of call i those in needs[first[i]] to needs[first[i + 1] - 1]. */
struct needs {
    int *first;
    int *needs;
    int n, n_max;
    struct arena *arena;
};

static void add_need(struct needs *to, int call, int needed)
{
    for (int i = to->first[call]; i < to->n; i++) {
        if (to->needs[i] == needed) {
            return;
        }
    }
    if (needed == NO_VALUE || needed == call) {
        return;
    }
    if (to->n == to->n_max) {
        int *more = arena_array(to->arena, int, (size_t)to->n_max * 2 + 64);
        if (to->n > 0) {
            memcpy(more, to->needs, (size_t)to->n * sizeof(*more));
        }
        to->needs = more;
        to->n_max = to->n_max * 2 + 64;
    }
    to->needs[to->n++] = needed;
}

/* Of a value: its last writer, and its readers since, as a list through next[slot]. */
struct trace {
    int writer;
    int reader; /* the last entry of the list, or NO_VALUE */
};
struct reader {
    int call, next;
};

struct tracer {
    struct trace *traces; /* (values) */
    struct reader *readers;
    int n_readers;
};

static void trace_read(struct tracer *tracer, struct needs *to, int call, int value)
{
    if (value == NO_VALUE) {
        return;
    }
    struct trace *trace = &tracer->traces[value];
    add_need(to, call, trace->writer);
    tracer->readers[tracer->n_readers] = (struct reader){call, trace->reader};
    trace->reader = tracer->n_readers++;
}

/* Every reader of the old value must be done before it is written. */
static void trace_write(struct tracer *tracer, struct needs *to, int call, int value)
{
    if (value == NO_VALUE) {
        return;
    }
    struct trace *trace = &tracer->traces[value];
    add_need(to, call, trace->writer);
    for (int i = trace->reader; i != NO_VALUE; i = tracer->readers[i].next) {
        add_need(to, call, tracer->readers[i].call);
    }
    *trace = (struct trace){.writer = call, .reader = NO_VALUE};
}

static struct needs find_needs(struct arena *arena, const struct graph *graph)
{
    struct needs needs = {.arena = arena,
                          .first = arena_array(arena, int, (size_t)graph->n_calls + 1)};
    struct tracer tracer = {
        .traces = arena_array(arena, struct trace, (size_t)graph->n_values + 1),
        .readers = arena_array(arena, struct reader,
                               (size_t)graph->n_calls * (KERNEL_IN_MAX + KERNEL_OUT_MAX) + 1)};
    for (int i = 0; i < graph->n_values; i++) {
        tracer.traces[i] = (struct trace){NO_VALUE, NO_VALUE};
    }
    for (int i = 0; i < graph->n_calls; i++) {
        const struct call *call = &graph->calls[i];
        needs.first[i] = needs.n;
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            trace_read(&tracer, &needs, i, call->in[k]);
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            trace_write(&tracer, &needs, i, call->out[j]);
        }
    }
    needs.first[graph->n_calls] = needs.n;
    return needs;
}

/* ---- when each call is expected to begin, and on which stream ---- */

struct plan {
    const struct graph *graph;
    const struct streams_opts *opts;
    struct needs needs;
    double *cost, *start, *end; /* (calls) */
    int *stream;                /* (calls); NO_VALUE: not yet */
    int *order;                 /* (calls): call that is the i-th to begin */
    int n_done;
    double free_at[GRAPH_STREAMS_MAX];
    int last[GRAPH_STREAMS_MAX]; /* call, or NO_VALUE */
};

static double cost_of(const struct graph *graph, const struct call *call,
                      const struct streams_opts *opts)
{
    const struct traffic traffic = traffic_of_call(graph, call, opts->bytes_of, opts->self);
    double bytes_ns = (double)(traffic.floor_bytes + traffic.reread_bytes) / BYTES_PER_NS;
    double flops_ns = 2.0 * (double)graph->ops[call->op].macs / FLOPS_PER_NS;
    return CALL_NS + (bytes_ns > flops_ns ? bytes_ns : flops_ns);
}

/* When everything that the call needs is done; -1: something is not planned yet. */
static double ready_at(const struct plan *plan, int call)
{
    double at = 0.0;
    for (int i = plan->needs.first[call]; i < plan->needs.first[call + 1]; i++) {
        int needed = plan->needs.needs[i];
        if (plan->stream[needed] == NO_VALUE) {
            return -1.0;
        }
        at = plan->end[needed] > at ? plan->end[needed] : at;
    }
    return at;
}

/* True if the call needs the stream's last call: it then waits for no event. */
static bool follows(const struct plan *plan, int call, int stream)
{
    for (int i = plan->needs.first[call]; i < plan->needs.first[call + 1]; i++) {
        if (plan->needs.needs[i] == plan->last[stream]) {
            return true;
        }
    }
    return false;
}

/* The stream on which the call begins first; of equal ones the one that computed what it needs, else the first. */
static int best_stream(const struct plan *plan, int call, double ready)
{
    int best = 0;
    double best_start = 0.0;
    for (int s = 0; s < plan->opts->n_streams; s++) {
        double start = plan->free_at[s] > ready ? plan->free_at[s] : ready;
        bool is_better = s == 0 || start < best_start;
        bool is_nearer =
            s > 0 && !(start > best_start) && follows(plan, call, s) && !follows(plan, call, best);
        if (is_better || is_nearer) {
            best = s;
            best_start = start;
        }
    }
    return best;
}

static void place_call(struct plan *plan, int call, double ready)
{
    int stream = best_stream(plan, call, ready);
    plan->start[call] = plan->free_at[stream] > ready ? plan->free_at[stream] : ready;
    plan->end[call] = plan->start[call] + plan->cost[call];
    plan->stream[call] = stream;
    plan->free_at[stream] = plan->end[call];
    plan->last[stream] = call;
    plan->order[plan->n_done++] = call;
}

/* The calls are in a valid order. Of those that can begin first, the first in that order does, so a graph's memory lives hardly
   longer than on one stream. Only calls near the first remaining one are considered. */
#define LOOK_AHEAD 1024

static void place_calls(struct plan *plan)
{
    int n = plan->graph->n_calls;
    int first_left = 0;
    while (plan->n_done < n) {
        while (plan->stream[first_left] != NO_VALUE) {
            first_left++;
        }
        int best = NO_VALUE;
        double best_start = 0.0;
        double best_ready = 0.0;
        for (int call = first_left; call < n && call < first_left + LOOK_AHEAD; call++) {
            double ready = plan->stream[call] == NO_VALUE ? ready_at(plan, call) : -1.0;
            if (ready < 0.0) {
                continue;
            }
            int stream = best_stream(plan, call, ready);
            double start = plan->free_at[stream] > ready ? plan->free_at[stream] : ready;
            if (best == NO_VALUE || start < best_start) {
                best = call;
                best_start = start;
                best_ready = ready;
            }
        }
        place_call(plan, best, best_ready);
    }
}

static struct plan plan_streams(struct arena *arena, const struct graph *graph,
                                const struct streams_opts *opts)
{
    size_t n = (size_t)graph->n_calls + 1;
    struct plan plan = {.graph = graph,
                        .opts = opts,
                        .needs = find_needs(arena, graph),
                        .cost = arena_array(arena, double, n),
                        .start = arena_array(arena, double, n),
                        .end = arena_array(arena, double, n),
                        .stream = arena_array(arena, int, n),
                        .order = arena_array(arena, int, n)};
    for (int i = 0; i < graph->n_calls; i++) {
        plan.cost[i] = cost_of(graph, &graph->calls[i], opts);
        plan.stream[i] = NO_VALUE;
    }
    for (int s = 0; s < GRAPH_STREAMS_MAX; s++) {
        plan.last[s] = NO_VALUE;
    }
    place_calls(&plan);
    return plan;
}

/* Row of (calls, streams). */
static int *row_of(int *rows, int call, int n_streams)
{
    return rows + (size_t)call * (size_t)n_streams;
}

/* ---- what waits for what ---- */

/* The calls in their new order. */
struct call_order {
    const struct plan *plan;
    int n_streams;
    int *place;    /* (calls): the call's place in the order */
    int *position; /* (calls): on its stream */
    int *before;   /* (calls, streams): how many calls of each are done before it begins */
    int *waits;    /* (calls, streams): the call that it waits for, or NO_VALUE */
    int last[GRAPH_STREAMS_MAX];
    int n_on[GRAPH_STREAMS_MAX];
};

/* Call b begins after call a, which comes before it. */
static void wait_for(struct call_order *order, int b, int a)
{
    int from = order->plan->stream[a];
    int *before = row_of(order->before, b, order->n_streams);
    if (order->position[a] < before[from]) {
        return;
    }
    order->waits[b * order->n_streams + from] = a;
    for (int s = 0; s < order->n_streams; s++) {
        int known = order->before[a * order->n_streams + s];
        before[s] = known > before[s] ? known : before[s];
    }
    before[from] = order->position[a] + 1;
}

static int by_place_down(const struct call_order *order, const int *calls, int n, int below)
{
    int best = NO_VALUE;
    for (int i = 0; i < n; i++) {
        int place = order->place[calls[i]];
        best = place < below && place > best ? place : best;
    }
    return best;
}

/* The latest one first: what it waited for need not be waited for again. */
static void wait_for_needs(struct call_order *order, int call)
{
    const struct needs *needs = &order->plan->needs;
    int n = needs->first[call + 1] - needs->first[call];
    int below = order->plan->graph->n_calls;
    for (int i = 0; i < n; i++) {
        below = by_place_down(order, &needs->needs[needs->first[call]], n, below);
        wait_for(order, call, order->plan->order[below]);
    }
}

/* The last call of each stream that comes `window` places or more before. */
static void wait_for_window(struct call_order *order, int place, int window)
{
    int call = order->plan->order[place];
    bool is_seen[GRAPH_STREAMS_MAX] = {false};
    int n_seen = 0;
    for (int i = place - window; window > 0 && i >= 0 && n_seen < order->n_streams; i--) {
        int old = order->plan->order[i];
        int stream = order->plan->stream[old];
        if (!is_seen[stream]) {
            is_seen[stream] = true;
            n_seen++;
            wait_for(order, call, old);
        }
    }
}

static struct call_order order_calls(struct arena *arena, const struct plan *plan)
{
    size_t n = (size_t)plan->graph->n_calls + 1;
    int n_streams = plan->opts->n_streams;
    struct call_order order = {.plan = plan,
                               .n_streams = n_streams,
                               .place = arena_array(arena, int, n),
                               .position = arena_array(arena, int, n),
                               .before = arena_array(arena, int, n *(size_t)n_streams),
                               .waits = arena_array(arena, int, n *(size_t)n_streams)};
    for (int s = 0; s < n_streams; s++) {
        order.last[s] = NO_VALUE;
    }
    for (int place = 0; place < plan->graph->n_calls; place++) {
        int call = plan->order[place];
        int stream = plan->stream[call];
        order.place[call] = place;
        order.position[call] = order.n_on[stream]++;
        for (int s = 0; s < n_streams; s++) {
            order.waits[call * n_streams + s] = NO_VALUE;
        }
        if (order.last[stream] != NO_VALUE) {
            memcpy(row_of(order.before, call, n_streams),
                   row_of(order.before, order.last[stream], n_streams),
                   (size_t)n_streams * sizeof(int));
        }
        order.before[call * n_streams + stream] = order.position[call];
        order.last[stream] = call;
        wait_for_needs(&order, call);
        wait_for_window(&order, place, plan->opts->window);
    }
    return order;
}

/* ---- events ---- */

/* An event may be recorded again once all have waited for it: busy_until[e] is the place of the last one that does. */
static int take_event(int *busy_until, int n_events, int place, int until)
{
    for (int e = 0; e < n_events; e++) {
        if (busy_until[e] < place) {
            busy_until[e] = until;
            return e;
        }
    }
    return NO_VALUE;
}

static int write_events(struct arena *arena, struct graph *graph, const struct call_order *order,
                        struct streams_report *report, struct err *err)
{
    int n = graph->n_calls;
    int n_events = order->plan->opts->n_events;
    int *until = arena_array(arena, int, (size_t)n + 1); /* (calls): the last place that waits */
    int *busy_until = arena_array(arena, int, (size_t)n_events + 1);
    for (int i = 0; i < n * order->n_streams; i++) {
        if (order->waits[i] != NO_VALUE) {
            int place = order->place[i / order->n_streams];
            int *last = &until[order->waits[i]];
            *last = place > *last ? place : *last;
            report->n_waits++;
        }
    }
    for (int e = 0; e < n_events; e++) {
        busy_until[e] = NO_VALUE;
    }
    for (int place = 0; place < n; place++) {
        struct call *call = &graph->calls[place];
        int old = order->plan->order[place];
        for (int s = 0; s < order->n_streams; s++) {
            int from = order->waits[old * order->n_streams + s];
            if (from != NO_VALUE) {
                call->waits[call->n_waits++] = graph->calls[order->place[from]].event;
            }
        }
        if (until[old] > 0) {
            call->is_recorded = true;
            call->event = take_event(busy_until, n_events, place, until[old]);
            if (call->event == NO_VALUE) {
                return err_set(err, ERR_USAGE, "more than %d events between %d streams", n_events,
                               order->n_streams);
            }
            report->n_events = call->event >= report->n_events ? call->event + 1 : report->n_events;
        }
    }
    return 0;
}

int streams_assign(struct graph *graph, const struct streams_opts *opts,
                   struct streams_report *ret_report, struct err *err)
{
    ASSERT(graph->is_finished);
    ASSERT(opts->n_streams >= 1 && opts->n_streams <= GRAPH_STREAMS_MAX);
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct streams_report report = {0};
    struct plan plan = plan_streams(&arena, graph, opts);
    for (int i = 0; i < graph->n_calls; i++) {
        report.serial_ns += plan.cost[i];
        report.side_by_side_ns =
            plan.end[i] > report.side_by_side_ns ? plan.end[i] : report.side_by_side_ns;
    }
    if (opts->n_streams > 1) {
        struct call_order order = order_calls(&arena, &plan);
        struct call *old = arena_array(&arena, struct call, (size_t)graph->n_calls);
        memcpy(old, graph->calls, (size_t)graph->n_calls * sizeof(*old));
        for (int place = 0; place < graph->n_calls; place++) {
            graph->calls[place] = old[plan.order[place]];
            graph->calls[place].args.stream = plan.stream[plan.order[place]];
        }
        if (write_events(&arena, graph, &order, &report, err) < 0) {
            return -1;
        }
        graph_order_gradients(graph);
    }
    if (ret_report) {
        *ret_report = report;
    }
    return 0;
}

/* ---- what the events guarantee ---- */

static int wait_on(const struct graph *graph, const struct streams_clocks *clocks, int call,
                   int from, struct err *err)
{
    if (from == NO_VALUE) {
        return err_set(err, ERR_INTERNAL, "call %d waits for an event that was never recorded",
                       call);
    }
    int *mine = row_of(clocks->before, call, clocks->n_streams);
    const int *theirs = row_of(clocks->before, from, clocks->n_streams);
    int stream = graph->calls[from].args.stream;
    for (int s = 0; s < clocks->n_streams; s++) {
        mine[s] = theirs[s] > mine[s] ? theirs[s] : mine[s];
    }
    int done = clocks->position[from] + 1;
    mine[stream] = done > mine[stream] ? done : mine[stream];
    return 0;
}

int streams_clocks_make(struct arena *arena, const struct graph *graph,
                        struct streams_clocks *ret_clocks, struct err *err)
{
    int n_streams = 1;
    int n_events = 1;
    for (int i = 0; i < graph->n_calls; i++) {
        const struct call *call = &graph->calls[i];
        n_streams = call->args.stream >= n_streams ? call->args.stream + 1 : n_streams;
        n_events = call->event >= n_events ? call->event + 1 : n_events;
        for (int w = 0; w < call->n_waits; w++) {
            n_events = call->waits[w] >= n_events ? call->waits[w] + 1 : n_events;
        }
    }
    size_t n = (size_t)graph->n_calls + 1;
    struct streams_clocks clocks = {.n_streams = n_streams,
                                    .position = arena_array(arena, int, n),
                                    .before = arena_array(arena, int, n *(size_t)n_streams)};
    int *recorded = arena_array(arena, int, (size_t)n_events);
    int last[GRAPH_STREAMS_MAX];
    int n_on[GRAPH_STREAMS_MAX] = {0};
    for (int e = 0; e < n_events; e++) {
        recorded[e] = NO_VALUE;
    }
    for (int i = 0; i < graph->n_calls; i++) {
        const struct call *call = &graph->calls[i];
        int stream = call->args.stream;
        clocks.position[i] = n_on[stream]++;
        if (clocks.position[i] > 0) {
            memcpy(row_of(clocks.before, i, n_streams),
                   row_of(clocks.before, last[stream], n_streams), (size_t)n_streams * sizeof(int));
        }
        clocks.before[i * n_streams + stream] = clocks.position[i];
        last[stream] = i;
        for (int w = 0; w < call->n_waits; w++) {
            if (wait_on(graph, &clocks, i, recorded[call->waits[w]], err) < 0) {
                return -1;
            }
        }
        if (call->is_recorded) {
            recorded[call->event] = i;
        }
    }
    *ret_clocks = clocks;
    return 0;
}
