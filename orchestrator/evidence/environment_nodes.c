/* SPDX-License-Identifier: Apache-2.0 */
/* environment/NODE.json of nodes that the doctor has asked: the form of evidence/environment, and what a machine does not know of
   itself there (GPU clocks, caps, limits, ports) under "facts". */
#include "base/base.h"

#include "base/secret.h"
#include "codec/json_document.h"
#include "evidence/environment.h"
#include "fleet/doctor.h"
#include "sys/proc.h"

#define TEXT_MAX (1u << 20)

/* Host names, addresses, users and paths stay out of a record that is published. */
static bool is_recorded(struct str key)
{
    static const char *const PREFIXES[] = {"gpu.",   "nvidia.", "engine.", "ib.",  "limit.",
                                           "cgroup", "cpu.",    "memory.", "shm.", "topo."};
    static const char *const NET_ENDS[] = {".speed_mbit", ".mtu", ".driver", ".kind", ".numa"};
    for (size_t idx = 0; idx < ARRAY_LEN(PREFIXES); idx++) {
        if (str_starts(key, str_of(PREFIXES[idx]))) {
            return !str_eq_z(key, "cpu.flags");
        }
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NET_ENDS); idx++) {
        if (str_starts(key, STR_LIT("net.")) && str_ends(key, str_of(NET_ENDS[idx]))) {
            return true;
        }
    }
    return str_eq_z(key, "disk.work.kind");
}

static struct environment_machine machine_of(const struct node_facts *facts)
{
    struct environment_machine machine = {.gpu = facts_value(facts, "gpu.0.name"),
                                          .cpu = facts_value(facts, "cpu.model"),
                                          .os = facts_value(facts, "system.os"),
                                          .driver = facts_value(facts, "nvidia.driver"),
                                          .kernel = facts_value(facts, "system.kernel"),
                                          .architecture = facts_value(facts, "system.arch"),
                                          .cpu_flags = facts_value(facts, "cpu.flags"),
                                          .cpu_mhz = facts_value(facts, "cpu.mhz"),
                                          .cpu_governor = facts_value(facts, "cpu.governor"),
                                          .cpu_max_khz = facts_value(facts, "cpu.max_khz"),
                                          .load = facts_value(facts, "load.average")};
    int64_t kb = 0;
    (void)facts_i64(facts, "cpu.threads", &machine.cpu_threads);
    (void)facts_i64(facts, "gpu.count", &machine.gpus);
    machine.cpus_online = machine.cpu_threads;
    if (facts_i64(facts, "memory.total_kb", &kb) && kb < INT64_MAX / 1024) {
        machine.memory_bytes = kb * 1024;
    }
    return machine;
}

static void put_facts(struct json_out *out, struct arena *arena, const struct node_facts *facts)
{
    jw_object(out, "variables");
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        struct str name = str_sub(fact->key, 4, fact->key.len);
        if (str_starts(fact->key, STR_LIT("env.")) && secret_may_keep(name, fact->value)) {
            jw_str(out, str_z(arena, name), fact->value);
        }
    }
    jw_end_object(out);
    /* The image's, or the staged program's: another part of the run's record says which. */
    jw_null(out, "software");
    jw_object(out, "facts");
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        if (is_recorded(fact->key)) {
            jw_str(out, str_z(arena, fact->key), fact->value);
        }
    }
    jw_end_object(out);
}

static int encode(struct arena *arena, const struct inventory *inventory,
                  const struct node_probe *probe, const char *time, struct str *ret_json,
                  struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct environment_machine machine = machine_of(&probe->facts);
    struct json_out out;
    jw_document(&out, &text);
    jw_str(&out, "node", probe->spec->name);
    jw_z(&out, "collected_at", time);
    jw_z(&out, "runtime", RUNTIME_KIND_NAMES[inventory->runtime]);
    jw_null(&out, "image");
    environment_put_machine(&out, arena, &machine);
    put_facts(&out, arena, &probe->facts);
    jw_end_object(&out);
    if (text.is_full) {
        return err_set(err, ERR_NODE, "%.*s: its environment is more than %u bytes",
                       STR_ARG(probe->spec->name), TEXT_MAX);
    }
    *ret_json = str_dup(arena, strbuf_str(&text));
    return 0;
}

int environment_of_nodes(struct arena *arena, struct fleet *fleet, struct clock_src clock,
                         struct node_environment *ret_items, size_t *ret_n, struct err *err)
{
    struct node_probes probes;
    char time[RFC3339_MAX];
    size_t n = 0;
    if (doctor_examine(arena, fleet, clock, RUNTIME_KIND_NAMES[fleet->inventory->runtime], &probes,
                       err) < 0) {
        return -1;
    }
    clock_rfc3339(clock.wall_ns(clock.ctx), time);
    for (size_t idx = 0; idx < probes.n; idx++) {
        const struct node_probe *probe = &probes.items[idx];
        if (!probe->is_reached) {
            continue;
        }
        ret_items[n].name = probe->spec->name;
        if (encode(arena, fleet->inventory, probe, time, &ret_items[n].json, err) < 0) {
            return -1;
        }
        n++;
    }
    *ret_n = n;
    return 0;
}
