/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs, as nvidia-smi prints them: the lines go to the orchestrator as they are (report/node_facts.c reads them).
   Source: nvidia-smi --help-query-gpu, R410 to R610. */
#include "base/base.h"

#include "node/facts.h"

#include "base/clock.h"
#include "node/tool.h"

#define SMI_LIMIT (30 * NS_PER_S)
#define SAID_MAX  (1u << 20)

#define ID    "name,pci.bus_id,memory.total,memory.used,driver_version"
#define CAP   "compute_cap"
#define CLOCK "clocks.current.sm,clocks.max.sm,clocks.current.memory,clocks.max.memory"
#define APP   "clocks.applications.graphics,clocks.applications.memory"
#define ECC                                                                                        \
    "ecc.mode.current,ecc.errors.corrected.aggregate.total,ecc.errors.uncorrected.aggregate.total"
#define POWER  "power.draw,power.limit,power.default_limit,power.max_limit"
#define STATE  "temperature.gpu,persistence_mode,compute_mode,pstate,utilization.gpu"
#define MIG    "mig.mode.current"
#define PCIE   "pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max"
#define FIELDS ID "," CAP "," CLOCK "," APP "," ECC "," POWER "," STATE "," MIG "," PCIE

/* Each line that is not blank, as KEY.0 and so on. */
static void say_lines(struct facts *facts, const char *key, const struct strbuf *said)
{
    struct str rest = strbuf_str(said), line;
    size_t n = 0;
    while (str_next(&rest, '\n', &line)) {
        if (line.len) {
            facts_put(facts, arena_printf(&facts->arena, "%s.%zu", key, n++),
                      str_z(&facts->arena, line));
        }
    }
}

static const char *why_not(struct facts *facts, int status, const struct strbuf *said)
{
    return arena_printf(&facts->arena, "status %d: %.*s", status,
                        STR_ARG(str_trim(strbuf_str(said))));
}

static bool is_late(int status)
{
    return status == TOOL_LATE || status == TOOL_STUCK;
}

static int query(struct facts *facts, const char *name, const char *fields, bool is_quiet)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *what = arena_printf(&facts->arena, "--query-gpu=index,%s", fields);
    const char *key = arena_printf(&facts->arena, "smi.%s", name);
    const char *const argv[] = {"nvidia-smi", "--format=csv", what, NULL};
    int status = tool_run(argv, SMI_LIMIT, true, &said);
    if (status == 0) {
        say_lines(facts, key, &said);
    } else if (!is_quiet || is_late(status)) {
        facts_unknown(facts, key, why_not(facts, status, &said));
    }
    return status;
}

static int say_banner(struct facts *facts)
{
    static const char *const ARGV[] = {"nvidia-smi", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    int status = tool_run(ARGV, SMI_LIMIT, true, &said);
    struct str rest = strbuf_str(&said), line = STR_EMPTY;
    if (status != 0) {
        facts_unknown(facts, "nvidia.smi", why_not(facts, status, &said));
        return status;
    }
    while (str_next(&rest, '\n', &line) && str_find(line, STR_LIT("CUDA")) < 0) {
        line = STR_EMPTY;
    }
    facts_put(facts, "nvidia.smi", str_z(&facts->arena, line));
    return 0;
}

static void say_processes(struct facts *facts)
{
    static const char *const ARGV[] = {"nvidia-smi", "--format=csv,noheader",
                                       "--query-compute-apps=pid,used_memory", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    int status = tool_run(ARGV, SMI_LIMIT, true, &said);
    struct str rest = strbuf_str(&said), line;
    size_t n = 0;
    if (status != 0) {
        facts_unknown(facts, "nvidia.processes", str_z(&facts->arena, str_trim(rest)));
        return;
    }
    while (str_next(&rest, '\n', &line)) {
        n += line.len && line.ptr[0] >= '0' && line.ptr[0] <= '9';
    }
    facts_printf(facts, "nvidia.processes", "%zu", n);
}

static void say_topology(struct facts *facts)
{
    static const char *const ARGV[] = {"nvidia-smi", "topo", "-m", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    if (tool_run(ARGV, SMI_LIMIT, false, &said) == 0) {
        say_lines(facts, "topo", &said);
    } else {
        facts_unknown(facts, "topo", "nvidia-smi topo -m fails");
    }
}

/* A field that an old driver does not know fails the whole query: then it is asked group by group. If it does not answer it is not
   asked again: a GPU that hangs delays every call. */
static void ask_smi(struct facts *facts)
{
    static const char *const GROUPS[][2] = {{"id", ID},       {"cap", CAP}, {"clock", CLOCK},
                                            {"app", APP},     {"ecc", ECC}, {"power", POWER},
                                            {"state", STATE}, {"mig", MIG}, {"pcie", PCIE}};
    static const char LATE[] = "nvidia-smi does not answer";
    bool has_hung = is_late(say_banner(facts));
    int status = has_hung ? TOOL_LATE : query(facts, "all", FIELDS, true);
    if (status != 0) {
        status = is_late(status) ? status : query(facts, GROUPS[0][0], GROUPS[0][1], false);
        for (size_t idx = 1; idx < ARRAY_LEN(GROUPS) && status == 0; idx++) {
            status = is_late(query(facts, GROUPS[idx][0], GROUPS[idx][1], false)) ? TOOL_LATE : 0;
        }
    }
    if (is_late(status)) {
        facts_unknown(facts, "nvidia.processes", LATE);
        facts_unknown(facts, "topo", LATE);
        return;
    }
    say_processes(facts);
    say_topology(facts);
}

void facts_of_gpus(struct facts *facts)
{
    struct fs_names devices = facts_names(facts, "/dev", "nvidia");
    size_t n = 0;
    facts_file(facts, "nvidia.module", "/sys/module/nvidia/version");
    for (size_t idx = 0; idx < devices.n; idx++) {
        char c = devices.items[idx][strlen("nvidia")];
        n += c >= '0' && c <= '9';
    }
    facts_printf(facts, "nvidia.devices", "%zu", n);
    facts_put(facts, "nvidia.peermem",
              fs_is_dir("/sys/module/nvidia_peermem") || fs_is_dir("/sys/module/nv_peer_mem")
                  ? "1"
                  : "0");
    if (tool_is_there("nvidia-smi")) {
        ask_smi(facts);
    } else {
        facts_unknown(facts, "nvidia.smi", "no nvidia-smi");
    }
}
