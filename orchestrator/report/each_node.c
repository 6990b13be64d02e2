/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/each_node.h"

struct spread {
    struct arena *arena;
    const struct inventory *inventory;
    struct report_case *cases; /* of CASES_MAX */
    size_t n;
    struct str left_out;
};

#define NODES_NONE SIZE_MAX

/* second: another node, or NODES_NONE. */
static void add_fixed(struct spread *e, const struct report_case *c, size_t first, size_t second)
{
    const struct inventory_node *nodes = e->inventory->nodes;
    struct str *on = arena_array(e->arena, struct str, 2);
    struct report_case *fixed = &e->cases[e->n++];
    *fixed = *c;
    fixed->on = on;
    on[fixed->n_on++] = nodes[first].name;
    if (second != NODES_NONE) {
        on[fixed->n_on++] = nodes[second].name;
    }
    fixed->variant = str_of(
        fixed->n_on == 1 ? arena_printf(e->arena, "%.*s", STR_ARG(on[0]))
                         : arena_printf(e->arena, "%.*s+%.*s", STR_ARG(on[0]), STR_ARG(on[1])));
    fixed->id = str_printf(e->arena, "%.*s/%.*s", STR_ARG(c->id), STR_ARG(fixed->variant));
    if (c->variant.ptr) {
        fixed->variant =
            str_printf(e->arena, "%.*s/%.*s", STR_ARG(c->variant), STR_ARG(fixed->variant));
    }
}

static void add_each(struct spread *e, const struct report_case *c)
{
    const struct inventory *inventory = e->inventory;
    size_t *fit = arena_array(e->arena, size_t, inventory->n_nodes + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (inventory->nodes[idx].gpus >= c->gpus_per_node) {
            fit[n++] = idx;
        }
    }
    if (n < (size_t)c->nodes) {
        e->left_out = str_printf(e->arena, "%.*s%s%.*s", STR_ARG(e->left_out),
                                 e->left_out.len ? ", " : "", STR_ARG(c->id));
    }
    for (size_t idx = 0; idx < n && c->nodes == 1; idx++) {
        add_fixed(e, c, fit[idx], NODES_NONE);
    }
    for (size_t idx = 0; idx + 1 < n && c->nodes == 2; idx++) {
        add_fixed(e, c, fit[idx], fit[idx + 1]);
    }
    if (n > 2 && c->nodes == 2) { /* in the inventory's order, as nodes are placed */
        add_fixed(e, c, fit[0], fit[n - 1]);
    }
}

int report_each_node(struct arena *arena, const struct inventory *inventory, struct report *report,
                     struct str *ret_left_out, struct err *err)
{
    struct spread e = {.arena = arena, .inventory = inventory, .left_out = STR_LIT("")};
    e.cases = arena_array(arena, struct report_case, CASES_MAX + 1);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        bool is_each = c->nodes == 1 || c->nodes == 2;
        if (e.n + (is_each ? inventory->n_nodes : 1) > CASES_MAX) {
            return err_set(err, ERR_MANIFEST,
                           "report %.*s: on each of %zu nodes it has more than %d cases",
                           STR_ARG(report->id), inventory->n_nodes, CASES_MAX);
        }
        if (is_each) {
            add_each(&e, c);
        } else {
            e.cases[e.n++] = *c;
        }
    }
    report->cases = e.cases;
    report->n_cases = e.n;
    *ret_left_out = e.left_out;
    return 0;
}

struct str each_node_base(const struct report_case *c)
{
    size_t len = c->id.len;
    for (size_t idx = 0; idx < c->n_on; idx++) {
        len -= c->on[idx].len + 1; /* a slash, then a plus */
    }
    return str_sub(c->id, 0, len);
}
