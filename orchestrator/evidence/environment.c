/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/environment.h"

#include <gnu/libc-version.h>

#include "base/fs.h"
#include "base/secret.h"
#include "codec/digest.h"
#include "codec/json_document.h"
#include "fleet/doctor.h"
#include "sys/child.h"

#define TOOL_DEADLINE_NS (10 * NS_PER_S)
#define TOOL_OUTPUT_MAX  65536
#define TEXT_MAX         (1u << 20)

int64_t environment_gpus(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names names = {0};
    if (fs_list(&arena, "/proc/driver/nvidia/gpus", &names, ERR_IGNORED) < 0) {
        return 0; /* no driver, no GPU */
    }
    return (int64_t)names.n;
}

static struct str first_line(struct str text)
{
    struct str line = STR_EMPTY;
    (void)str_next(&text, '\n', &line);
    return str_trim(line);
}

/* ---- what the machine said of itself ---- */

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

static void put_fact(struct json_out *out, const char *key, const struct node_facts *facts,
                     const char *fact)
{
    jw_str(out, key, facts_value(facts, fact));
}

static void put_count(struct json_out *out, const char *key, const struct node_facts *facts,
                      const char *fact)
{
    int64_t n = 0;
    (void)facts_i64(facts, fact, &n);
    jw_i64(out, key, n);
}

/* "conditions" is what others compare: the closed list of condition names. */
static void put_machine(struct json_out *out, struct arena *arena, const struct node_facts *facts)
{
    int64_t kb = 0;
    int64_t bytes =
        facts_i64(facts, "memory.total_kb", &kb) && kb < INT64_MAX / 1024 ? kb * 1024 : 0;
    int64_t gb = (bytes + (1 << 29)) >> 30;
    jw_object(out, "conditions");
    put_fact(out, "gpu", facts, "gpu.0.name");
    put_fact(out, "cpu", facts, "cpu.model");
    put_fact(out, "cpu_cores", facts, "cpu.threads");
    jw_str(out, "memory_gb", gb > 0 ? str_printf(arena, "%lld", (long long)gb) : STR_EMPTY);
    put_fact(out, "os", facts, "system.os");
    put_fact(out, "driver", facts, "nvidia.driver");
    jw_end_object(out);
    jw_object(out, "machine");
    put_fact(out, "kernel", facts, "system.kernel");
    put_fact(out, "architecture", facts, "system.arch");
    put_fact(out, "cpu_flags", facts, "cpu.flags");
    put_fact(out, "cpu_mhz", facts, "cpu.mhz");
    put_fact(out, "cpu_governor", facts, "cpu.governor");
    put_fact(out, "cpu_max_khz", facts, "cpu.max_khz");
    put_count(out, "cpus_online", facts, "cpu.threads");
    jw_i64(out, "memory_bytes", bytes);
    put_count(out, "gpus", facts, "gpu.count");
    put_fact(out, "load_before", facts, "load.average");
    jw_end_object(out);
}

static void put_variables(struct json_out *out, struct arena *arena, const struct node_facts *facts)
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
}

static void put_facts(struct json_out *out, struct arena *arena, const struct node_facts *facts)
{
    jw_object(out, "facts");
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        if (is_recorded(fact->key)) {
            jw_str(out, str_z(arena, fact->key), fact->value);
        }
    }
    jw_end_object(out);
}

/* ---- programs ---- */

/* Output of a short tool; NULL if it is missing or fails: then null is written. */
static struct str ask(struct arena *arena, const struct environment_opts *opts,
                      const char *const *argv)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(TOOL_OUTPUT_MAX);
    int status = -1;
    if (child_capture(opts->clock, argv, TOOL_DEADLINE_NS, &buf, &status, ERR_IGNORED) < 0 ||
        status != 0) {
        return STR_EMPTY;
    }
    return str_dup(arena, strbuf_str(&buf));
}

static int put_file_digest(struct json_out *out, const char *path, struct err *err)
{
    struct digest_value value;
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    jw_z(out, "sha256", sha256_hex_of(value.sha256).text);
    return 0;
}

/* Shared libraries as the loader finds them: name, the file behind it, digest. */
static int put_libraries(struct json_out *out, struct arena *arena,
                         const struct environment_opts *opts, const char *path, struct err *err)
{
    const char *const argv[] = {"ldd", path, NULL};
    struct str rest = ask(arena, opts, argv);
    struct str line;
    jw_array(out, "libraries");
    while (str_next(&rest, '\n', &line)) {
        int64_t arrow = str_find(line, STR_LIT(" => /"));
        int64_t paren = str_find(line, STR_LIT(" (0x"));
        if (arrow < 0 || paren < arrow) {
            continue;
        }
        char *file = str_z(arena, str_sub(line, (size_t)arrow + 4, (size_t)(paren - arrow) - 4));
        char *real CLEANUP(free) = realpath(file, NULL);
        const char *base = real ? strrchr(real, '/') : NULL;
        if (base) {
            jw_object(out, NULL);
            jw_str(out, "name", str_trim(str_sub(line, 0, (size_t)arrow)));
            jw_z(out, "file", base + 1);
            if (put_file_digest(out, real, err) < 0) {
                return -1;
            }
            jw_end_object(out);
        }
    }
    jw_end_array(out);
    return 0;
}

static int put_program(struct json_out *out, struct arena *arena,
                       const struct environment_opts *opts, const char *path, struct err *err)
{
    jw_object(out, NULL);
    jw_z(out, "name", basename(path));
    if (put_file_digest(out, path, err) < 0 || put_libraries(out, arena, opts, path, err) < 0) {
        return -1;
    }
    jw_end_object(out);
    return 0;
}

static void put_commit(struct json_out *out, struct arena *arena,
                       const struct environment_opts *opts)
{
    const char *folder = opts->root;
    bool is_tree = fs_exists(fs_join(arena, folder, ".git"));
    const char *const commit_argv[] = {"git", "-C", folder, "rev-parse", "HEAD", NULL};
    const char *const dirty_argv[] = {
        "git", "-C", folder, "status", "--porcelain", "--untracked-files=no", NULL};
    struct str commit = is_tree ? first_line(ask(arena, opts, commit_argv)) : STR_EMPTY;
    jw_str(out, "commit", commit.len ? commit : STR_EMPTY);
    jw_bool_if(out, "is_changed_since_commit", commit.len > 0,
               commit.len && str_trim(ask(arena, opts, dirty_argv)).len > 0);
}

static int put_software(struct json_out *out, struct arena *arena,
                        const struct environment_opts *opts, struct err *err)
{
    jw_object(out, "software");
    jw_z(out, "reperf", REPERF_VERSION);
    put_commit(out, arena, opts);
    jw_z(out, "compiler", __VERSION__);
    jw_z(out, "libc", gnu_get_libc_version());
    jw_array(out, "programs");
    if (put_program(out, arena, opts, opts->self, err) < 0 ||
        (opts->train_path && put_program(out, arena, opts, opts->train_path, err) < 0)) {
        return -1;
    }
    jw_end_array(out);
    jw_end_object(out);
    return 0;
}

/* ---- the record ---- */

/* A node's software is the image's, or the staged program's, which another part of the run's record
   says. */
static int encode(struct arena *arena, const struct fleet *fleet, const struct node_probe *probe,
                  const struct environment_opts *opts, struct str *ret_json, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct json_out out;
    jw_document(&out, &text);
    jw_str(&out, "node", probe->spec->name);
    jw_str(&out, "collected_at", clock_text(arena, opts->clock));
    jw_z(&out, "runtime", RUNTIME_KIND_NAMES[fleet->inventory->runtime]);
    jw_null(&out, "image");
    put_machine(&out, arena, &probe->facts);
    put_variables(&out, arena, &probe->facts);
    if (!opts->self) {
        jw_null(&out, "software");
    } else if (put_software(&out, arena, opts, err) < 0) {
        return -1;
    }
    put_facts(&out, arena, &probe->facts);
    if (opts->command) {
        json_encode_object(&out, "command", CODE_ROWS, CODE_N, opts->command);
    }
    jw_end_object(&out);
    *ret_json = str_dup(arena, strbuf_str(&text));
    return text.is_full ? err_set(err, ERR_NODE, "%.*s: its environment is more than %u bytes",
                                  STR_ARG(probe->spec->name), TEXT_MAX)
                        : 0;
}

int environment_of_nodes(struct arena *arena, struct fleet *fleet,
                         const struct environment_opts *opts, struct node_environment *ret_items,
                         size_t *ret_n, struct err *err)
{
    struct node_probes probes;
    size_t n = 0;
    if (doctor_examine(arena, fleet, opts->clock, RUNTIME_KIND_NAMES[fleet->inventory->runtime],
                       &probes, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < probes.n; idx++) {
        if (!probes.items[idx].is_reached) {
            continue;
        }
        ret_items[n].name = probes.items[idx].spec->name;
        if (encode(arena, fleet, &probes.items[idx], opts, &ret_items[n].json, err) < 0) {
            return -1;
        }
        n++;
    }
    *ret_n = n;
    return 0;
}

int environment_local(struct arena *arena, const struct environment_opts *opts,
                      struct str *ret_json, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(fleet) struct fleet fleet = {0};
    const struct inventory inventory = inventory_local(arena);
    const struct fleet_opts here = {.work_folder = opts->work_folder, .clock = opts->clock};
    struct node_environment found = {0};
    size_t n = 0;
    loop_init(&loop, opts->clock);
    if (fleet_open(&fleet, &loop, &inventory, &here, err) < 0 ||
        environment_of_nodes(arena, &fleet, opts, &found, &n, err) < 0) {
        return -1;
    }
    *ret_json = found.json;
    return n ? 0 : err_set(err, ERR_NODE, "%s", fleet.nodes[0].err.msg);
}
