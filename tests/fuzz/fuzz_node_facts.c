/* SPDX-License-Identifier: Apache-2.0 */
/* A node's output, about itself or during a workload: any input is an error at worst, and what is read keeps its order
   and its meaning. The first byte selects which of the two it is. */
#include "tests/fuzz/fuzz.h"

#include "fleet/checks.h"
#include "fleet/monitor.h"

static void look_at(struct arena *arena, const struct node_facts *facts)
{
    static struct inventory_node spec = {.name = {"n1", 2}, .gpus = 2};
    struct node_probe probe = {.spec = &spec, .is_reached = true, .facts = *facts};
    struct inventory inventory = {.runtime = RUNTIME_DOCKER, .nodes = &spec, .n_nodes = 1};
    struct checks checks = {.arena = arena};
    struct wants wants = {.n = WANT_KIND_COUNT};
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        ASSERT((fact->value.ptr == NULL) == (fact->why.len > 0));
        ASSERT(idx == 0 || str_cmp(facts->items[idx - 1].key, fact->key) < 0);
        ASSERT(facts_find(facts, str_z(arena, fact->key)) == fact);
        for (size_t at = 0; at < fact->value.len; at++) {
            ASSERT((unsigned char)fact->value.ptr[at] >= 0x20);
        }
    }
    for (int kind = 0; kind < WANT_KIND_COUNT; kind++) {
        wants.items[kind] = (struct want){
            .kind = (enum want_kind)kind, .text = STR_LIT("10.1"), .number = kind + 1};
    }
    checks_of_probe(&checks, &inventory, &probe);
    checks_of_wants(&checks, &inventory, &probe, &wants, &(struct wants_groups){0});
    for (size_t idx = 0; idx < checks.n; idx++) {
        ASSERT(checks.items[idx].id && checks.items[idx].expected.len &&
               checks.items[idx].found.len);
    }
}

static void read_monitor(struct arena *arena, struct str text)
{
    struct monitor_report report;
    struct err err = {0};
    if (monitor_judge(arena, text, &report, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        return;
    }
    for (size_t idx = 0; idx < report.n_gpus; idx++) {
        ASSERT(report.gpus[idx].n_busy <= report.gpus[idx].n_samples);
    }
    for (size_t idx = 0; idx < report.n_taints; idx++) {
        ASSERT(report.taints[idx].id && report.taints[idx].text.len);
    }
}

static void read_facts(struct arena *arena, struct str text)
{
    struct node_facts facts;
    struct err err = {0};
    if (facts_parse(arena, text, &facts, &err) < 0 || facts_expand_gpus(arena, &facts, &err) < 0) {
        ASSERT(err.code == ERR_NODE);
    } else {
        look_at(arena, &facts);
    }
}

FUZZ_READERS(read_facts, read_monitor)
