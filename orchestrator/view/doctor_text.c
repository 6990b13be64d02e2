/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/doctor_out.h"

#include "base/clock.h"
#include "base/table.h"

#define RED    "\033[31m"
#define YELLOW "\033[33m"
#define GREEN  "\033[32m"
#define PLAIN  "\033[0m"

/* ---- the nodes ---- */

static struct str gib_of(struct table *table, const struct node_facts *facts, const char *key)
{
    int64_t kb = 0;
    bool is_known = facts_i64(facts, key, &kb);
    return table_text_if(table, is_known, "%.0f", (double)kb / 1048576);
}

static struct str engine_of(struct arena *arena, const struct inventory *inventory,
                            const struct node_facts *facts)
{
    const char *name = RUNTIME_KIND_NAMES[inventory->runtime];
    struct str version = facts_value(facts, arena_printf(arena, "engine.%s.version", name));
    return inventory->runtime == RUNTIME_NONE ? STR_LIT("none")
           : version.ptr                      ? str_printf(arena, "%s %.*s", name, STR_ARG(version))
                                              : STR_EMPTY;
}

static void add_probe(struct table *table, struct arena *arena, const struct inventory *inventory,
                      const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    const struct str none = STR_LIT("-");
    if (!probe->is_reached) {
        TABLE_ADD(table, probe->spec->name, none, none, STR_LIT("not reached"), none, none, none,
                  none, none, none);
        return;
    }
    TABLE_ADD(
        table, probe->spec->name,
        table_text(table, "%.0f", (double)probe->connect_ns / (double)NS_PER_MS),
        table_text_if(table, probe->has_clock, "%+.2f",
                      (double)(probe->clock_low_ns + probe->clock_high_ns) / 2 / (double)NS_PER_S),
        table_or_dash(facts_value(facts, "system.os")),
        table_or_dash(facts_value(facts, "cpu.threads")), gib_of(table, facts, "memory.total_kb"),
        gib_of(table, facts, "disk.work.free_kb"),
        table_or_dash(engine_of(arena, inventory, facts)),
        table_or_dash(facts_value(facts, "nvidia.driver")),
        table_or_dash(gpus_in_words(arena, facts, "name")));
}

static void put_probes(const struct doctor_view *view, struct arena *arena, struct strbuf *out)
{
    CLEANUP(table)
    struct table table =
        table_of("node|>reply ms|>clock s|system|>CPUs|>memory GiB|>free GiB|engine|driver|GPUs");
    for (size_t idx = 0; idx < view->result->probes.n; idx++) {
        add_probe(&table, arena, view->inventory, &view->result->probes.items[idx]);
    }
    table_render(&table, out);
}

/* ---- the checks ---- */

static const char *word_of(const struct check *check)
{
    static const char *const WORDS[2][3] = {{"holds", "FAILS", "NOT KNOWN"},
                                            {"holds", "advised", "not known"}};
    return WORDS[check->level][check->verdict];
}

static const char *color_of(const struct check *check)
{
    if (check->verdict == CHECK_HOLDS) {
        return GREEN;
    }
    return check->level == CHECK_REQUIRED && check->verdict == CHECK_FAILS ? RED : YELLOW;
}

static bool is_same(const struct check *a, const struct check *b)
{
    return strcmp(a->id, b->id) == 0 && a->verdict == b->verdict && a->level == b->level &&
           str_eq(a->expected, b->expected) && str_eq(a->found, b->found) &&
           str_eq(a->advice, b->advice) && (a->node.ptr != NULL) == (b->node.ptr != NULL);
}

static size_t index_of(const struct inventory *inventory, struct str node)
{
    const struct inventory_node *found =
        STR_NAMED(inventory->nodes, inventory->n_nodes, name, node);
    return found ? (size_t)(found - inventory->nodes) : 0;
}

static void put_check(const struct doctor_view *view, struct strbuf *out, const struct check *check,
                      struct str nodes)
{
    strbuf_printf(out, "%s%-9s%s  %-16s ", view->want_color ? color_of(check) : "", word_of(check),
                  view->want_color ? PLAIN : "", check->id);
    strbuf_add_plain(out, nodes);
    strbuf_add_z(out, nodes.len ? ": " : "");
    strbuf_add_z(out, "expected ");
    strbuf_add_plain(out, check->expected);
    strbuf_add_z(out, "; found ");
    strbuf_add_plain(out, check->found);
    strbuf_add_char(out, '\n');
    if (check->advice.len) {
        strbuf_printf(out, "%28s", "-> ");
        strbuf_add_plain(out, check->advice);
        strbuf_add_char(out, '\n');
    }
}

/* Each check once, with all nodes of which the same was found. */
static void put_checks(const struct doctor_view *view, struct arena *arena, struct strbuf *out)
{
    const struct checks *checks = &view->result->checks;
    bool *is_shown = arena_array(arena, bool, checks->n + 1);
    size_t *nodes = arena_array(arena, size_t, checks->n + 1);
    for (size_t idx = 0; idx < checks->n; idx++) {
        const struct check *check = &checks->items[idx];
        size_t n = 0;
        if (is_shown[idx] || (check->verdict == CHECK_HOLDS && !view->want_all)) {
            continue;
        }
        for (size_t at = idx; at < checks->n; at++) {
            if (is_same(check, &checks->items[at])) {
                is_shown[at] = true;
                nodes[n++] =
                    check->node.ptr ? index_of(view->inventory, checks->items[at].node) : 0;
            }
        }
        put_check(view, out, check,
                  check->node.ptr ? inventory_fold(arena, view->inventory, nodes, n) : STR_EMPTY);
    }
}

static void put_sum(const struct doctor_result *result, struct strbuf *out)
{
    size_t n[2][3] = {{0}};
    for (size_t idx = 0; idx < result->checks.n; idx++) {
        n[result->checks.items[idx].level][result->checks.items[idx].verdict]++;
    }
    strbuf_printf(out,
                  "required: %zu hold, %zu fail, %zu not known; advised: %zu hold, %zu do not, %zu "
                  "not known\n",
                  n[CHECK_REQUIRED][CHECK_HOLDS], n[CHECK_REQUIRED][CHECK_FAILS],
                  n[CHECK_REQUIRED][CHECK_UNKNOWN], n[CHECK_ADVISED][CHECK_HOLDS],
                  n[CHECK_ADVISED][CHECK_FAILS], n[CHECK_ADVISED][CHECK_UNKNOWN]);
}

void doctor_out_text(const struct doctor_view *view, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    strbuf_printf(out, "%.*s: %zu node%s, runtime %s", STR_ARG(view->inventory->id),
                  view->inventory->n_nodes, view->inventory->n_nodes == 1 ? "" : "s",
                  runtime_kind_label(view->inventory->runtime));
    if (view->report) {
        strbuf_printf(out, "; %.*s, %zu case%s", STR_ARG(view->report->id), view->result->n_cases,
                      plural_s(view->result->n_cases));
    }
    strbuf_add_char(out, '\n');
    put_probes(view, &arena, out);
    strbuf_add_char(out, '\n');
    put_checks(view, &arena, out);
    put_sum(view->result, out);
}
