/* SPDX-License-Identifier: Apache-2.0 */
/* What a report's launch needs, checked against a node. */
#include "base/base.h"

#include "fleet/checks.h"

#include "report/container.h"

#define GIB          (1LL << 30)
#define LACKING_MAX  2048 /* bytes of what nodes lack, in words */
#define CAP_RESOURCE 24   /* Source: linux/capability.h, CAP_SYS_RESOURCE: may raise hard limits */
#define GPU_MEMORY_MIN                                                                             \
    0.9 /* of the vendor's figure: ECC in memory takes 1/16, the driver some more */

void checks_add(struct checks *checks, struct check check)
{
    ASSERT(checks->n < CHECKS_MAX);
    if (checks->n == checks->n_max) {
        size_t n_max = checks->n_max ? 2 * checks->n_max : 64;
        struct check *items = arena_array(checks->arena, struct check, n_max);
        if (checks->n) {
            memcpy(items, checks->items, checks->n * sizeof(*items));
        }
        checks->items = items;
        checks->n_max = n_max;
    }
    /* A node may answer with an empty text. */
    check.expected = check.expected.len ? check.expected : STR_LIT("a name");
    check.found = check.found.len ? check.found : STR_LIT("nothing");
    checks->items[checks->n++] = check;
}

const char *const CHECK_VERDICT_NAMES[] = {"holds", "fails", "not_known"};
const char *const CHECK_LEVEL_NAMES[] = {"required", "advised"};

/* ---- words ---- */

static struct str words(struct arena *arena, const char *text)
{
    return str_of(arena_printf(arena, "%s", text));
}

static struct str bytes_in_words(struct arena *arena, int64_t bytes)
{
    if (bytes == LIMIT_UNLIMITED) {
        return STR_LIT("unlimited");
    }
    if (bytes >= GIB) {
        return str_of(arena_printf(arena, "%.1f GiB", (double)bytes / (double)GIB));
    }
    return bytes >= 1048576 ? str_of(arena_printf(arena, "%.1f MiB", (double)bytes / 1048576))
                            : str_of(arena_printf(arena, "%lld bytes", (long long)bytes));
}

struct trial;

/* How a kind of requirement is tried. */
struct want_way {
    void (*try)(struct trial *trial);
    const char *id;  /* of the check */
    const char *key; /* the fact; of a limit the suffix of systemd's setting, as in LimitMEMLOCK */
    bool is_count;   /* not bytes */
    enum check_level level;
};

/* One requirement, one node. */
struct trial {
    struct checks *checks;
    const struct inventory *inventory;
    const struct node_facts *facts;
    const struct want *want;
    const struct want_way *way;
    struct check check; /* being made */
};

static void not_known(struct trial *trial, struct str why)
{
    trial->check.verdict = CHECK_UNKNOWN;
    trial->check.found = why.len ? why : STR_LIT("not known");
}

static void judge(struct trial *trial, bool holds, struct str found)
{
    trial->check.verdict = holds ? CHECK_HOLDS : CHECK_FAILS;
    trial->check.found = found;
}

/* ---- GPUs ---- */

/* "NVIDIA A100-SXM4-40GB" and "Tesla V100-SXM2-16GB" without the vendor's words, which change from driver to driver. */
static struct str bare_model(struct str model)
{
    static const char *const WORDS[] = {"NVIDIA ", "Tesla ", "GeForce "};
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        if (str_starts(model, str_of(WORDS[idx]))) {
            model = str_trim(str_sub(model, strlen(WORDS[idx]), model.len));
        }
    }
    return model;
}

/* "V100" matches every V100, "V100-SXM2-16GB" one kind of it. */
static bool is_model(struct str found, struct str wanted)
{
    found = bare_model(found);
    wanted = bare_model(wanted);
    return str_starts(found, wanted) && (found.len == wanted.len || found.ptr[wanted.len] == '-' ||
                                         found.ptr[wanted.len] == ' ');
}

static struct str gpu_value(struct arena *arena, const struct node_facts *facts, int64_t gpu,
                            const char *field)
{
    return facts_value(facts, arena_printf(arena, "gpu.%lld.%s", (long long)gpu, field));
}

struct str gpus_in_words(struct arena *arena, const struct node_facts *facts, const char *field)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(FACT_TEXT_MAX);
    struct str first = gpu_value(arena, facts, 0, field);
    int64_t n = 0;
    bool is_same = true;
    if (!facts_i64(facts, "gpu.count", &n)) {
        return STR_EMPTY;
    }
    if (n == 0) {
        return STR_LIT("none");
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str value = gpu_value(arena, facts, gpu, field);
        if (!value.ptr) {
            return STR_EMPTY;
        }
        is_same = is_same && str_eq(value, first);
        strbuf_printf(&buf, "%s%.*s", gpu ? ", " : "", STR_ARG(value));
    }
    return is_same ? str_of(arena_printf(arena, "%lld x %.*s", (long long)n, STR_ARG(first)))
                   : str_dup(arena, strbuf_str(&buf));
}

static void try_gpus(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    int64_t n;
    trial->check.expected = str_of(arena_printf(arena, "%lld", (long long)trial->want->number));
    if (!facts_i64(trial->facts, "gpu.count", &n)) {
        not_known(trial, facts_why(trial->facts, "gpu.count"));
        return;
    }
    judge(trial, n >= trial->want->number, str_of(arena_printf(arena, "%lld", (long long)n)));
    if (n == 0) {
        trial->check.advice = STR_LIT("install NVIDIA's driver; nvidia-smi must list them");
    }
}

/* "V100-SXM2-16GB" without "-16GB". */
static struct str without_memory(struct str model)
{
    size_t end = model.len;
    if (!str_ends(model, STR_LIT("GB"))) {
        return model;
    }
    end -= 2;
    while (end > 0 && model.ptr[end - 1] >= '0' && model.ptr[end - 1] <= '9') {
        end--;
    }
    return end > 0 && model.ptr[end - 1] == '-' ? str_sub(model, 0, end - 1) : model;
}

/* Checks all of them, because a job uses every one. The same GPU with another memory runs the case if the memory is enough, which
   try_gpu_memory requires; its name is then advice only. */
static void try_model(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    struct str found = gpus_in_words(arena, trial->facts, "name");
    int64_t n = 0;
    bool holds = facts_i64(trial->facts, "gpu.count", &n) && n > 0;
    bool is_like = holds;
    trial->check.expected = trial->want->text;
    if (!found.ptr) {
        not_known(trial, facts_why(trial->facts, "gpu.0.name"));
        return;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str name = gpu_value(arena, trial->facts, gpu, "name");
        holds = holds && is_model(name, trial->want->text);
        is_like = is_like && str_eq(without_memory(bare_model(name)),
                                    without_memory(bare_model(trial->want->text)));
    }
    if (!holds && is_like) {
        trial->check.level = CHECK_ADVISED;
        trial->check.advice =
            STR_LIT("the same GPU with another memory: the published numbers were "
                    "measured on the one expected");
    }
    judge(trial, holds, found);
}

static void try_gpu_memory(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    struct str found = gpus_in_words(arena, trial->facts, "memory.total_mib");
    int64_t n = 0;
    bool holds = facts_i64(trial->facts, "gpu.count", &n) && n > 0;
    trial->check.expected = str_of(arena_printf(arena, "%lld GB", (long long)trial->want->number));
    if (!found.ptr) {
        not_known(trial, facts_why(trial->facts, "gpu.0.memory.total_mib"));
        return;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        int64_t mib = 0;
        (void)facts_i64(trial->facts,
                        arena_printf(arena, "gpu.%lld.memory.total_mib", (long long)gpu), &mib);
        holds = holds && (double)mib >= GPU_MEMORY_MIN * 1024 * (double)trial->want->number;
    }
    judge(trial, holds, n ? str_of(arena_printf(arena, "%.*s MiB", STR_ARG(found))) : found);
}

/* True only if this is certain: the driver has no device file. */
static bool has_no_gpu(const struct node_facts *facts)
{
    int64_t n = -1;
    return facts_i64(facts, "gpu.count", &n) && n == 0;
}

/* Old drivers do not run new CUDA; old CUDA has no code for new GPUs. */
static void try_cuda(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const char *needed = cuda_needs_driver(trial->want->text);
    struct str driver = facts_value(trial->facts, "nvidia.driver");
    struct str image = trial->want->image;
    const char *of = image.ptr ? arena_printf(arena, "image %.*s", STR_ARG(image)) : "the image";
    trial->check.expected =
        needed ? str_of(arena_printf(arena, "%s or newer, for CUDA %.*s of %s", needed,
                                     STR_ARG(trial->want->text), of))
               : str_of(arena_printf(arena, "for CUDA %.*s", STR_ARG(trial->want->text)));
    if (!needed) {
        not_known(trial, words(arena, "unknown which driver this CUDA needs"));
    } else if (!driver.ptr && has_no_gpu(trial->facts)) {
        judge(trial, false, STR_LIT("no driver"));
    } else if (!driver.ptr) {
        not_known(trial, facts_why(trial->facts, "nvidia.driver"));
    } else {
        judge(trial, version_cmp(driver, str_of(needed)) >= 0, driver);
    }
    if (trial->check.verdict == CHECK_FAILS && driver.ptr) {
        trial->check.advice = str_of(arena_printf(
            arena, "driver %.*s is too old for %s, which needs %s%s", STR_ARG(driver), of, needed,
            image.ptr ? ": state \"driver\" in the inventory, and the plan takes an image for it"
                      : ""));
    }
}

static void try_capability(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    struct str capability = facts_value(trial->facts, "gpu.0.compute_cap");
    const char *needed = capability.ptr ? capability_needs_cuda(capability) : NULL;
    trial->check.id = "gpu-code";
    trial->check.expected =
        str_of(arena_printf(arena, "GPUs that CUDA %.*s supports", STR_ARG(trial->want->text)));
    if (!needed && has_no_gpu(trial->facts)) {
        judge(trial, false, STR_LIT("no GPU"));
        return;
    }
    if (!needed) {
        not_known(trial, capability.ptr
                             ? str_of(arena_printf(
                                   arena, "compute capability %.*s: unknown which CUDA it needs",
                                   STR_ARG(capability)))
                             : facts_why(trial->facts, "gpu.0.compute_cap"));
        return;
    }
    judge(trial, version_cmp(trial->want->text, str_of(needed)) >= 0,
          str_of(arena_printf(arena, "compute capability %.*s, supported from CUDA %s on",
                              STR_ARG(capability), needed)));
}

/* ---- memory and limits ---- */

static bool is_daemon(enum runtime_kind kind)
{
    return kind == RUNTIME_DOCKER;
}

static void try_shm(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    /* An engine mounts its own /dev/shm, which memory must be able to hold; without an engine the node's is used. */
    bool is_own =
        trial->inventory->runtime == RUNTIME_DOCKER || trial->inventory->runtime == RUNTIME_PODMAN;
    const char *key = is_own ? "memory.total_kb" : "shm.size_kb";
    int64_t kb;
    trial->check.expected =
        str_of(arena_printf(arena, "%.*s%s", STR_ARG(bytes_in_words(arena, trial->want->number)),
                            is_own ? " of memory for the container's /dev/shm" : " in /dev/shm"));
    if (!facts_i64(trial->facts, key, &kb)) {
        not_known(trial, facts_why(trial->facts, key));
        return;
    }
    judge(trial, kb >= trial->want->number / 1024, bytes_in_words(arena, kb * 1024));
    trial->check.advice =
        is_own ? STR_EMPTY : STR_LIT("mount -o remount,size=... /dev/shm, or use docker");
}

static bool may_raise(struct str caps)
{
    uint64_t mask = 0;
    return facts_hex(caps, &mask) && (mask >> CAP_RESOURCE & 1);
}

/* A container's limits come from its engine's daemon if there is one, else from whoever starts it: up to the hard limit, beyond
   it with CAP_SYS_RESOURCE. */
static void try_limit(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const char *name = trial->way->id;
    bool of_daemon = is_daemon(trial->inventory->runtime);
    const char *prefix = of_daemon ? "engine.docker." : "limit.";
    const char *hard_key = arena_printf(arena, "%s%s.hard", prefix, name);
    const char *caps_key = arena_printf(arena, "%scaps", prefix);
    struct str hard = facts_value(trial->facts, hard_key);
    struct str caps = facts_value(trial->facts, caps_key);
    int64_t wanted = trial->want->number;
    int64_t value = 0;
    bool is_number = facts_i64(trial->facts, hard_key, &value);
    trial->check.expected = !trial->way->is_count || wanted == LIMIT_UNLIMITED
                                ? bytes_in_words(arena, wanted)
                                : str_of(arena_printf(arena, "%lld", (long long)wanted));
    if (!hard.ptr) {
        not_known(trial, facts_why(trial->facts, hard_key));
        return;
    }
    if (!is_number || (wanted != LIMIT_UNLIMITED && value >= wanted)) {
        judge(trial, is_number || str_eq_z(hard, "unlimited"), hard);
        return;
    }
    judge(trial, caps.ptr && may_raise(caps),
          str_of(arena_printf(arena, "hard limit %.*s%s%s", STR_ARG(hard),
                              of_daemon ? " of dockerd" : "",
                              caps.ptr && may_raise(caps) ? ", may be raised" : "")));
    trial->check.advice = str_of(
        of_daemon ? arena_printf(arena, "start dockerd with Limit%s=infinity and CAP_SYS_RESOURCE",
                                 trial->way->key)
                  : arena_printf(
                        arena, "/etc/security/limits.conf: hard %s unlimited; log in again", name));
}

static void try_disk(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const struct str path = facts_value(trial->facts, "disk.work.path");
    const struct str rest = trial->want->text;
    int64_t kb;
    trial->check.expected = str_of(
        trial->want->number ? arena_printf(arena, "%.*s free in %.*s%s%.*s",
                                           STR_ARG(bytes_in_words(arena, trial->want->number)),
                                           STR_ARG(path), rest.len ? "; and " : "", STR_ARG(rest))
                            : arena_printf(arena, "in %.*s %.*s", STR_ARG(path), STR_ARG(rest)));
    if (!facts_i64(trial->facts, "disk.work.free_kb", &kb)) {
        not_known(trial, facts_why(trial->facts, "disk.work.free_kb"));
        return;
    }
    judge(trial, kb >= trial->want->number / 1024,
          str_of(arena_printf(arena, "%.*s on %.*s", STR_ARG(bytes_in_words(arena, kb * 1024)),
                              STR_ARG(facts_value(trial->facts, "disk.work.kind")))));
    if (trial->check.verdict == CHECK_HOLDS && trial->want->text.len) {
        trial->check.verdict = CHECK_UNKNOWN; /* enough for the part that is known */
    }
}

/* ---- InfiniBand ---- */

struct ib_found {
    int64_t n_ports, n_active, best_gbit;
};

/* From the facts ib.DEVICE.PORT.state "4: ACTIVE", .rate "100 Gb/sec (4X EDR)", .link_layer "InfiniBand". Source:
   Documentation/ABI/stable/sysfs-class-infiniband. */
static struct ib_found find_ib(struct arena *arena, const struct node_facts *facts)
{
    struct ib_found found = {0};
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        struct str base = str_sub(fact->key, 0, fact->key.len - strlen(".link_layer"));
        if (!str_starts(fact->key, STR_LIT("ib.")) ||
            !str_ends(fact->key, STR_LIT(".link_layer")) || !str_eq_z(fact->value, "InfiniBand")) {
            continue;
        }
        struct str state = facts_value(facts, arena_printf(arena, "%.*s.state", STR_ARG(base)));
        struct str rate = facts_value(facts, arena_printf(arena, "%.*s.rate", STR_ARG(base)));
        struct str number = STR_EMPTY;
        double gbit = 0;
        found.n_ports++;
        if (!str_ends(state, STR_LIT("ACTIVE"))) {
            continue;
        }
        found.n_active++;
        if (rate.ptr && str_next(&rate, ' ', &number) &&
            str_to_f64(number, &gbit, &(struct err){0}) == 0 && gbit < 1e6 &&
            (int64_t)gbit > found.best_gbit) {
            found.best_gbit = (int64_t)gbit;
        }
    }
    return found;
}

/* Without the device NCCL uses sockets, and says so only in its log. */
static void try_ib_device(struct trial *trial)
{
    struct ib_found found = find_ib(trial->checks->arena, trial->facts);
    trial->check.expected = STR_LIT("containers that get the node's InfiniBand");
    if (!facts_find(trial->facts, "ib.ports")) {
        not_known(trial, STR_LIT("the node did not say"));
        return;
    }
    judge(trial, found.n_active == 0,
          found.n_active ? STR_LIT("an active port, and containers without " INFINIBAND_DEVICES)
                         : STR_LIT("the node has none"));
    trial->check.advice = found.n_active
                              ? STR_LIT("\"devices\": [\"" INFINIBAND_DEVICES
                                        "\"] in the inventory: else NCCL goes over sockets")
                              : STR_EMPTY;
}

static void try_infiniband(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    struct ib_found found = find_ib(arena, trial->facts);
    int64_t wanted = trial->want->number;
    trial->check.expected =
        wanted ? str_of(arena_printf(arena, "an active port of %lld Gb/s", (long long)wanted))
               : STR_LIT("an active port");
    if (!facts_find(trial->facts, "ib.ports")) {
        not_known(trial, STR_LIT("the node did not say"));
        return;
    }
    judge(
        trial, found.n_active > 0 && found.best_gbit >= wanted,
        str_of(arena_printf(
            arena, "%lld ports, %lld active%s", (long long)found.n_ports, (long long)found.n_active,
            found.n_active ? arena_printf(arena, ", %lld Gb/s", (long long)found.best_gbit) : "")));
}

static void try_device(struct trial *trial)
{
    struct str path = trial->want->text;
    trial->check.expected = path;
    if (!str_starts(path, STR_LIT("/dev/infiniband"))) {
        not_known(trial, STR_LIT("the probe does not check it"));
        return;
    }
    struct str value = facts_value(trial->facts, "ib.device");
    judge(trial, str_eq_z(value, "1"),
          str_eq_z(value, "1") ? STR_LIT("there") : STR_LIT("no /dev/infiniband"));
}

/* ---- what the published numbers were measured on ---- */

static struct str plain(struct arena *arena, struct str text)
{
    static const char *const DROPPED[] = {"(R)", "(TM)", " CPU", " Processor", "(tm)", " @"};
    CLEANUP(strbuf) struct strbuf buf = STRBUF(FACT_TEXT_MAX);
    for (size_t at = 0; at < text.len;) {
        size_t skip = 0;
        for (size_t idx = 0; idx < ARRAY_LEN(DROPPED); idx++) {
            struct str rest = str_sub(text, at, text.len);
            skip =
                skip == 0 && str_starts(rest, str_of(DROPPED[idx])) ? strlen(DROPPED[idx]) : skip;
        }
        if (skip == 0) {
            strbuf_add_char(&buf, text.ptr[at]);
        }
        at += skip ? skip : 1;
    }
    return str_dup(arena, strbuf_str(&buf));
}

static void try_same(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const char *key = trial->way->key;
    struct str value = facts_value(trial->facts, key);
    trial->check.expected = trial->want->text;
    if (!value.ptr) {
        not_known(trial, facts_why(trial->facts, key));
        return;
    }
    if (trial->want->kind == WANT_MEMORY) {
        int64_t kb = 0;
        (void)facts_i64(trial->facts, key, &kb);
        int64_t gib = (kb + (1 << 19)) >> 20;
        judge(trial, gib >= trial->want->number,
              str_of(arena_printf(arena, "%lld GiB", (long long)gib)));
        return;
    }
    judge(trial, str_eq(plain(arena, value), plain(arena, trial->want->text)), value);
}

static const struct want_way WAYS[WANT_KIND_COUNT] = {
    [WANT_GPUS] = {.try = try_gpus, .id = "gpus"},
    [WANT_GPU_MODEL] = {.try = try_model, .id = "gpu-model"},
    [WANT_GPU_MEMORY] = {.try = try_gpu_memory, .id = "gpu-memory"},
    [WANT_CUDA] = {.try = try_cuda, .id = "driver"},
    [WANT_SHM] = {.try = try_shm, .id = "shm"},
    [WANT_MEMLOCK] = {.try = try_limit, .id = "memlock", .key = "MEMLOCK"},
    [WANT_STACK] = {.try = try_limit, .id = "stack", .key = "STACK"},
    [WANT_NOFILE] = {.try = try_limit, .id = "nofile", .key = "NOFILE", .is_count = true},
    [WANT_DEVICE] = {.try = try_device, .id = "device"},
    [WANT_IB_DEVICE] = {.try = try_ib_device, .id = "infiniband-device", .level = CHECK_ADVISED},
    [WANT_INFINIBAND] = {.try = try_infiniband, .id = "infiniband"},
    [WANT_DISK] = {.try = try_disk, .id = "disk"},
    [WANT_CPU] = {try_same, "as-published-cpu", "cpu.model", false, CHECK_ADVISED},
    [WANT_CORES] = {try_same, "as-published-cores", "cpu.cores", false, CHECK_ADVISED},
    [WANT_MEMORY] = {try_same, "as-published-memory", "memory.total_kb", false, CHECK_ADVISED},
    [WANT_OS] = {try_same, "as-published-os", "system.os", false, CHECK_ADVISED},
    [WANT_DRIVER] = {try_same, "as-published-driver", "nvidia.driver", false, CHECK_ADVISED},
};

static bool asks_for(const struct wants *wants, const struct want *what)
{
    for (size_t idx = 0; idx < wants->n; idx++) {
        const struct want *want = &wants->items[idx];
        if (want->kind == what->kind && str_eq(want->text, what->text)) {
            return true;
        }
    }
    return false;
}

/* True if every case that asks for it finds enough other nodes. */
static bool is_spared(const struct want *want, const struct wants_groups *groups)
{
    bool is_asked = false;
    for (size_t idx = 0; idx < groups->n; idx++) {
        if (asks_for(&groups->items[idx].wants, want)) {
            is_asked = true;
            if (!groups->items[idx].is_placed) {
                return false;
            }
        }
    }
    return is_asked;
}

void checks_of_wants(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe, const struct wants *wants,
                     const struct wants_groups *groups)
{
    for (size_t idx = 0; probe->is_reached && idx < wants->n; idx++) {
        const struct want *want = &wants->items[idx];
        const struct want_way *way = &WAYS[want->kind];
        struct trial trial = {.checks = checks,
                              .inventory = inventory,
                              .facts = &probe->facts,
                              .want = want,
                              .way = way,
                              .check = {.id = way->id, .node = probe->spec->name, .of = want->of}};
        if (want->kind == WANT_NODES) {
            continue; /* over all nodes together */
        }
        trial.check.level = is_spared(want, groups) ? CHECK_ADVISED : way->level;
        way->try(&trial);
        checks_add(checks, trial.check);
        if (want->kind == WANT_CUDA) {
            trial.check.advice = STR_EMPTY;
            try_capability(&trial);
            checks_add(checks, trial.check);
        }
    }
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
    check.expected = str_of(arena_printf(
        checks->arena, "%lld %s with all that %.*s%s", (long long)wanted,
        wanted == 1 ? "node" : "nodes", STR_ARG(group->first),
        group->n_cases == 1
            ? " needs"
            : arena_printf(checks->arena, " and %zu more cases need", group->n_cases - 1)));
    check.found = str_of(arena_printf(checks->arena, "%lld of %zu%.*s%s", (long long)n[CHECK_HOLDS],
                                      probes->n, STR_ARG(strbuf_str(&lacking)),
                                      lacking.is_full ? " ..." : ""));
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
