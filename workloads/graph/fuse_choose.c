/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/fuse_choose.h"

#include "core/forms.h"
#include "graph/fuse_internal.h"

#define CALLS_MOVED_MAX 4 /* by what one site inserts and removes before a call */

/* ---- the calls that a fusion removes and adds ---- */

struct difference {
    const struct call *gone[FORM_CALLS_MAX], *made[FORM_CALLS_MAX];
    int n_gone, n_made;
};

/* Calls and their geometry are copied from one graph to the other as bytes, including padding: equal ones have equal bytes. */
static bool is_copy(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

/* Index in `others`, or NO_CALL. */
static int find_same(const struct call *call, const struct call *others, int n_others, int near)
{
    int first = near > CALLS_MOVED_MAX ? near - CALLS_MOVED_MAX : 0;
    for (int i = first; i < n_others && i <= near + CALLS_MOVED_MAX; i++) {
        if (is_copy(call, &others[i], sizeof(*call))) {
            return i;
        }
    }
    return NO_CALL;
}

/* Those of `graph` that `other` lacks; -1: too many. */
static int list_missing(const struct graph *graph, const struct graph *other,
                        const struct call **ret_calls)
{
    int n = 0;
    for (int i = 0; i < graph->n_calls; i++) {
        if (find_same(&graph->calls[i], other->calls, other->n_calls, i) != NO_CALL) {
            continue;
        }
        if (n == FORM_CALLS_MAX) {
            return -1;
        }
        ret_calls[n++] = &graph->calls[i];
    }
    return n;
}

static bool is_there(const int *values, int k)
{
    return values[k] != NO_VALUE;
}

/* Whether they take the same time: they differ only in whose tensors they use. */
static bool is_alike(const struct call *a, const struct call *b)
{
    bool is_same = a->args.id == b->args.id && a->args.dtype == b->args.dtype &&
                   a->args.accumulate == b->args.accumulate &&
                   is_copy(&a->args.geom, &b->args.geom, sizeof(a->args.geom));
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        is_same &= is_there(a->in, k) == is_there(b->in, k);
    }
    for (int k = 0; k < KERNEL_OUT_MAX; k++) {
        is_same &= is_there(a->out, k) == is_there(b->out, k);
    }
    return is_same;
}

static void drop(const struct call **calls, int *n, int at)
{
    *n -= 1;
    memmove(&calls[at], &calls[at + 1], (size_t)(*n - at) * sizeof(*calls));
}

static void drop_alike(struct difference *d)
{
    for (int i = d->n_gone - 1; i >= 0; i--) {
        for (int k = 0; k < d->n_made; k++) {
            if (is_alike(d->gone[i], d->made[k])) {
                drop(d->gone, &d->n_gone, i);
                drop(d->made, &d->n_made, k);
                break;
            }
        }
    }
}

/* A copy whose calls and values can be changed; what they point to is shared. */
static struct graph copy_graph(struct arena *arena, const struct graph *graph)
{
    struct graph copy = *graph;
    copy.arena = arena;
    copy.calls = arena_array(arena, struct call, (size_t)graph->n_calls);
    copy.n_calls_max = graph->n_calls;
    memcpy(copy.calls, graph->calls, (size_t)graph->n_calls * sizeof(*copy.calls));
    copy.values = arena_array(arena, struct value, (size_t)graph->n_values);
    copy.n_values_max = graph->n_values;
    memcpy(copy.values, graph->values, (size_t)graph->n_values * sizeof(*copy.values));
    return copy;
}

/* ---- as the backend's forms ---- */

/* Values of the fused graph are those of the plain one, and more. */
static int buffer_of(struct forms *forms, int *values, const struct graph *graph, int value)
{
    if (value == NO_VALUE) {
        return FORM_ABSENT;
    }
    int n = forms->n_buffers < FORM_BUFFERS_MAX ? forms->n_buffers : FORM_BUFFERS_MAX;
    for (int i = 0; i < n; i++) {
        if (values[i] == value) {
            return i;
        }
    }
    if (n < FORM_BUFFERS_MAX) {
        values[n] = value;
        forms->buffers[n] = value_desc(&graph->values[value]);
    }
    forms->n_buffers = n + 1; /* one too many: make_forms reports it */
    return n;
}

static void write_form(struct forms *forms, struct form *form, int *values,
                       const struct graph *graph, const struct call *const *calls, int n_calls)
{
    form->n_calls = n_calls;
    for (int i = 0; i < n_calls; i++) {
        struct form_call *call = &form->calls[i];
        call->args = calls[i]->args;
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            call->in[k] = buffer_of(forms, values, graph, calls[i]->in[k]);
            call->args.has_in |= (unsigned)is_there(calls[i]->in, k) << k;
        }
        for (int k = 0; k < KERNEL_OUT_MAX; k++) {
            call->out[k] = buffer_of(forms, values, graph, calls[i]->out[k]);
        }
    }
}

/* False: more than a site can have. */
static bool make_forms(struct arena *arena, const struct graph *graph, enum fuse_pattern pattern,
                       int op, struct forms *ret_forms)
{
    struct graph fused = copy_graph(arena, graph);
    struct difference d = {0};
    int values[FORM_BUFFERS_MAX];
    *ret_forms = (struct forms){0};
    if (!fuse_at(&fused, pattern, op, false, true)) {
        return false;
    }
    d.n_gone = list_missing(graph, &fused, d.gone);
    d.n_made = list_missing(&fused, graph, d.made);
    if (d.n_gone < 0 || d.n_made < 0) {
        return false;
    }
    drop_alike(&d);
    write_form(ret_forms, &ret_forms->plain, values, &fused, d.gone, d.n_gone);
    write_form(ret_forms, &ret_forms->fused, values, &fused, d.made, d.n_made);
    return ret_forms->n_buffers <= FORM_BUFFERS_MAX;
}

/* ---- the policy ---- */

struct chooser {
    const struct fuse_asked *asked; /* borrowed */
    struct fuse_list *list;         /* borrowed, with room for every pattern at every op */
    struct fuse_tally *tally;       /* borrowed */
    struct err err;
};

static enum form_choice ask(struct chooser *chooser, const struct graph *graph,
                            enum fuse_pattern pattern, int op)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct backend *backend = chooser->asked->backend;
    enum form_choice choice = FORM_UNTIMED;
    struct form_times times = {0};
    if (!backend->compare || chooser->err.code != ERR_NONE) {
        return choice;
    }
    struct forms *forms = arena_array(&arena, struct forms, 1);
    if (!make_forms(&arena, graph, pattern, op, forms)) {
        int failed = err_set(&chooser->err, ERR_INTERNAL, "fusion %s at op %d: too many calls",
                             fuse_pattern_name(pattern), op);
        ASSERT(failed < 0);
        return choice;
    }
    if (backend->compare(backend->self, forms, &choice, &times, &chooser->err) < 0) {
        int failed = err_wrap(&chooser->err, "fusion %s at op %d", fuse_pattern_name(pattern), op);
        ASSERT(failed < 0);
    }
    return choice;
}

static bool wants(void *self, const struct graph *graph, enum fuse_pattern pattern, int op)
{
    struct chooser *chooser = self;
    bool is_fused = true;
    if (!fuse_supports(chooser->asked->support, graph, pattern, op)) {
        return false;
    }
    if (fuse_is_of_conv(pattern)) {
        enum form_choice choice = ask(chooser, graph, pattern, op);
        chooser->tally->n_sites[pattern][choice]++;
        is_fused = choice == FORM_UNTIMED || choice == FORM_FASTER;
    }
    chooser->list->choices[chooser->list->n_choices++] =
        (struct fuse_choice){.pattern = pattern, .op = op, .is_fused = is_fused};
    return is_fused;
}

int fuse_choose(struct arena *arena, struct graph *graph, const struct fuse_asked *asked,
                struct fuse_list *ret_list, struct fuse_tally *ret_tally, struct err *err)
{
    size_t n_max = (size_t)graph->n_ops * FUSE_PATTERN_COUNT;
    struct fuse_list list = {.choices = arena_array(arena, struct fuse_choice, n_max),
                             .keeps_outputs = asked->keeps_outputs};
    struct fuse_tally tally = {0};
    struct chooser chooser = {.asked = asked, .list = &list, .tally = &tally};
    const struct fuse_policy policy = {
        .wants = wants, .self = &chooser, .keeps_outputs = asked->keeps_outputs};
    if (graph_fuse(graph, &policy, NULL, err) < 0) {
        return -1;
    }
    if (chooser.err.code != ERR_NONE) {
        return err_set(err, chooser.err.code, "%s", chooser.err.msg);
    }
    *ret_list = list;
    *ret_tally = tally;
    return 0;
}
