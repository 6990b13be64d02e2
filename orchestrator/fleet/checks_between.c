/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of several nodes together: ports, what ought to be equal, and where cases find room. */
#include "base/base.h"

#include "fleet/checks.h"

#include <stdlib.h>

#include "base/str.h"

#define PAIRS_NODES_MAX 16   /* 240 pairs */
#define LACKING_MAX     2048 /* bytes of what nodes lack, in words */

/* ---- ports ---- */

bool checks_tries_port(size_t n_nodes, size_t from, size_t to)
{
    return from != to && (n_nodes <= PAIRS_NODES_MAX || to == 0 || to == (from + 1) % n_nodes);
}

/* Whether the port is unreachable for certain, whether or not anything listens. */
static bool is_certain(struct str answer)
{
    static const char *const OPEN_TO_DOUBT[] = {"open", "connection refused", "no connection",
                                                "something else answers", NULL};
    return answer.ptr && !str_eq_any(answer, OPEN_TO_DOUBT);
}

static void try_port(struct checks *checks, const struct node_probe *from,
                     const struct node_probe *to)
{
    struct arena *arena = checks->arena;
    const char *key = arena_printf(arena, "port.%.*s", STR_ARG(to->spec->name));
    struct str value = facts_value(&from->peers, key);
    struct check check = {.id = "port",
                          .node = from->spec->name,
                          .verdict = CHECK_UNKNOWN,
                          .expected =
                              str_printf(arena, "to reach %.*s at %.*s", STR_ARG(to->spec->name),
                                         STR_ARG(inventory_fast_address(to->spec))),
                          .of = STR_LIT("the inventory")};
    if (!to->is_reached) {
        check.found = STR_LIT("not checked: nothing could listen there");
    } else if (to->listen_error.ptr && !is_certain(value)) {
        check.found = str_printf(arena, "not checked: nothing listens there: %.*s",
                                 STR_ARG(to->listen_error));
    } else if (!value.ptr) {
        check.found = str_printf(arena, "not checked: %.*s", STR_ARG(facts_why(&from->peers, key)));
    } else {
        check.verdict = check_verdict_of(str_eq_z(value, "open"));
        check.found = value;
    }
    if (check.verdict == CHECK_FAILS) {
        check.advice = STR_LIT("a firewall, or another network: open the ports between nodes, "
                               "or set fast_address");
    }
    checks_add(checks, check);
}

void checks_of_network(struct checks *checks, const struct node_probes *probes)
{
    if (probes->n < 2) {
        return;
    }
    if (probes->n > PAIRS_NODES_MAX) {
        checks_add(checks, (struct check){.id = "port",
                                          .level = CHECK_ADVISED,
                                          .verdict = CHECK_UNKNOWN,
                                          .expected = STR_LIT("ports from each node to each"),
                                          .found = STR_LIT("tried only from each to the next one "
                                                           "and to the first"),
                                          .of = STR_LIT("the inventory")});
    }
    for (size_t at = 0; at < probes->n; at++) {
        for (size_t to = 0; probes->items[at].is_reached && to < probes->n; to++) {
            if (checks_tries_port(probes->n, at, to)) {
                try_port(checks, &probes->items[at], &probes->items[to]);
            }
        }
    }
}

/* ---- what ought to be equal ---- */

static const struct equal_row {
    const char *what;
    const char *key; /* NULL: of the inventory's container engine its version */
    enum { OF_NODE, OF_NODE_GIB, OF_GPUS } of;
} EQUAL[] = {
    {"kernel", "system.kernel", OF_NODE},
    {"operating system", "system.os", OF_NODE},
    {"architecture", "system.arch", OF_NODE},
    {"CPU", "cpu.model", OF_NODE},
    {"CPU threads", "cpu.threads", OF_NODE},
    {"CPU governor", "cpu.governor", OF_NODE},
    {"CPU turbo", "cpu.turbo", OF_NODE},
    {"NUMA nodes", "cpu.numa_nodes", OF_NODE},
    {"memory (GiB)", "memory.total_kb", OF_NODE_GIB},
    {"limit memlock", "limit.memlock.hard", OF_NODE},
    {"limit nofile", "limit.nofile.hard", OF_NODE},
    {"limit nproc", "limit.nproc.hard", OF_NODE},
    {"limit stack", "limit.stack.hard", OF_NODE},
    {"control groups", "cgroup.version", OF_NODE},
    {"container engine", NULL, OF_NODE},
    {"driver", "nvidia.driver", OF_NODE},
    {"newest CUDA of the driver", "nvidia.cuda", OF_NODE},
    {"GPUs", "name", OF_GPUS},
    {"GPU memory (MiB)", "memory.total_mib", OF_GPUS},
    {"GPU clock (MHz, highest)", "clocks.max.sm_mhz", OF_GPUS},
    {"GPU clock (MHz, set)", "clocks.applications.graphics_mhz", OF_GPUS},
    {"GPU power cap (W)", "power.limit_w", OF_GPUS},
    {"ECC", "ecc.mode.current", OF_GPUS},
    {"MIG", "mig.mode.current", OF_GPUS},
    {"persistence", "persistence_mode", OF_GPUS},
    {"InfiniBand ports", "ib.ports", OF_NODE},
};

static struct str value_of(struct arena *arena, const struct inventory *inventory,
                           const struct node_facts *facts, const struct equal_row *row)
{
    int64_t kb = 0;
    if (!row->key) {
        return facts_at(facts, "engine.%s.version", RUNTIME_KIND_NAMES[inventory->runtime]);
    }
    if (row->of == OF_NODE_GIB) {
        return facts_i64(facts, row->key, &kb)
                   ? str_printf(arena, "%" PRId64, (kb + (1 << 19)) >> 20)
                   : STR_EMPTY;
    }
    return row->of == OF_GPUS ? gpus_in_words(arena, facts, row->key)
                              : facts_value(facts, row->key);
}

static void put_value(struct arena *arena, struct difference *difference,
                      const struct node_probes *probes, struct str value, size_t node)
{
    struct difference_value *at = NULL;
    for (size_t idx = 0; idx < difference->n_values; idx++) {
        struct difference_value *other = &difference->values[idx];
        if ((other->value.ptr != NULL) == (value.ptr != NULL) && str_eq(other->value, value)) {
            at = other;
        }
    }
    if (!at) {
        at = &difference->values[difference->n_values++];
        at->value = value;
        at->nodes = arena_array(arena, size_t, probes->n);
        at->names = arena_array(arena, struct str, probes->n);
    }
    at->names[at->n_nodes] = probes->inventory->nodes[node].name;
    at->nodes[at->n_nodes++] = node;
}

static struct str difference_in_words(struct arena *arena, const struct node_probes *probes,
                                      const struct difference *difference)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(1u << 20);
    for (size_t idx = 0; idx < difference->n_values; idx++) {
        const struct difference_value *value = &difference->values[idx];
        struct str nodes = inventory_fold(arena, probes->inventory, value->nodes, value->n_nodes);
        strbuf_printf(&buf, "%s%.*s on %.*s", idx ? "; " : "",
                      STR_ARG(value->value.ptr ? value->value : STR_LIT("not known")),
                      STR_ARG(nodes));
    }
    return str_dup(arena, strbuf_str(&buf));
}

void checks_of_differences(struct checks *checks, const struct node_probes *probes,
                           struct differences *ret_differences)
{
    struct differences all = {arena_array(checks->arena, struct difference, ARRAY_LEN(EQUAL)), 0};
    for (size_t row = 0; row < ARRAY_LEN(EQUAL); row++) {
        struct difference difference = {
            .what = EQUAL[row].what,
            .values = arena_array(checks->arena, struct difference_value, probes->n + 1)};
        struct check check = {
            .id = "equal",
            .expected = str_printf(checks->arena, "%s the same on all nodes", EQUAL[row].what),
            .of = STR_LIT("the inventory")};
        size_t n_reached = 0;
        for (size_t idx = 0; idx < probes->n; idx++) {
            if (probes->items[idx].is_reached) {
                n_reached++;
                put_value(checks->arena, &difference, probes,
                          value_of(checks->arena, probes->inventory, &probes->items[idx].facts,
                                   &EQUAL[row]),
                          idx);
            }
        }
        if (n_reached < 2) {
            break;
        }
        if (difference.n_values == 1 && !difference.values[0].value.ptr) {
            continue; /* no node has one */
        }
        if (EQUAL[row].of == OF_GPUS && difference.n_values == 1 &&
            str_eq_z(difference.values[0].value, "none") && strcmp(EQUAL[row].key, "name") != 0) {
            continue;
        }
        check.found = difference.values[0].value;
        if (difference.n_values > 1) {
            check.verdict = CHECK_FAILS;
            check.found = difference_in_words(checks->arena, probes, &difference);
            all.items[all.n++] = difference;
        }
        checks_add(checks, check);
    }
    *ret_differences = all;
}

/* ---- where cases find room ---- */

/* The worst verdict on what the wants require of the node; appends what it lacks. */
static enum check_verdict node_suits(struct arena *arena, const struct inventory *inventory,
                                     const struct node_probe *probe, const struct wants *wants,
                                     struct strbuf *lacks)
{
    enum check_verdict worst = CHECK_HOLDS;
    struct checks checks = {.arena = arena};
    checks_of_wants(&checks, inventory, probe, wants, &(struct wants_groups){0});
    for (size_t idx = 0; idx < checks.n; idx++) {
        const struct check *check = &checks.items[idx];
        if (check->level == CHECK_ADVISED || check->verdict == CHECK_HOLDS) {
            continue;
        }
        worst = worst == CHECK_FAILS ? CHECK_FAILS : check->verdict;
        strbuf_printf(lacks, "%s%s%s", lacks->len ? ", " : "", check->id,
                      check->verdict == CHECK_UNKNOWN ? " (not known)" : "");
    }
    return worst;
}

static int64_t nodes_of(const struct wants *wants)
{
    for (size_t idx = 0; idx < wants->n; idx++) {
        if (wants->items[idx].kind == WANT_NODES) {
            return wants->items[idx].number;
        }
    }
    return 1;
}

static bool place(struct checks *checks, const struct node_probes *probes,
                  const struct wants_group *group)
{
    CLEANUP(strbuf) struct strbuf lacking = STRBUF(LACKING_MAX);
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    int64_t wanted = nodes_of(&group->wants);
    int64_t n[CHECK_UNKNOWN + 1] = {0};
    struct check check = {.id = "places", .of = group->first};
    for (size_t idx = 0; idx < probes->n; idx++) {
        const struct node_probe *probe = &probes->items[idx];
        CLEANUP(strbuf) struct strbuf lacks = STRBUF(LACKING_MAX);
        enum check_verdict verdict = CHECK_FAILS;
        if (probe->is_reached) {
            verdict = node_suits(&scratch, probes->inventory, probe, &group->wants, &lacks);
        } else {
            strbuf_printf(&lacks, "not reached");
        }
        n[verdict]++;
        if (verdict != CHECK_HOLDS) {
            strbuf_printf(&lacking, "; %.*s: %.*s", STR_ARG(probe->spec->name),
                          STR_ARG(strbuf_str(&lacks)));
        }
    }
    check.verdict = n[CHECK_HOLDS] >= wanted                      ? CHECK_HOLDS
                    : n[CHECK_HOLDS] + n[CHECK_UNKNOWN] >= wanted ? CHECK_UNKNOWN
                                                                  : CHECK_FAILS;
    check.expected =
        str_printf(checks->arena, "%" PRId64 " %s with all that %.*s%s", wanted,
                   wanted == 1 ? "node" : "nodes", STR_ARG(group->first),
                   group->n_cases == 1 ? " needs"
                                       : arena_printf(checks->arena, " and %zu more cases need",
                                                      group->n_cases - 1));
    check.found = str_printf(checks->arena, "%" PRId64 " of %zu%.*s%s", n[CHECK_HOLDS], probes->n,
                             STR_ARG(strbuf_str(&lacking)), lacking.is_full ? " ..." : "");
    checks_add(checks, check);
    return check.verdict == CHECK_HOLDS;
}

void checks_of_places(struct checks *checks, const struct node_probes *probes,
                      struct wants_groups *groups)
{
    for (size_t idx = 0; idx < groups->n; idx++) {
        groups->items[idx].is_placed = place(checks, probes, &groups->items[idx]);
    }
}
