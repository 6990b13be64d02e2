/* SPDX-License-Identifier: Apache-2.0 */
/* What a node must be whatever runs there, and what a report's launch needs of it. */
#include "base/base.h"

#include "fleet/checks.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/container.h"

#define GIB (1LL << 30)
/* Raw logs of several nodes are ordered by their time stamps, and rendezvous tokens and TLS certificates expire. */
#define CLOCK_OFF_MAX_NS (2 * NS_PER_S)
/* The largest dataset unpacked has 1.3 million files, one folder per class. */
#define INODES_MIN        100000
#define CLOCK_CAP_PERCENT 98 /* application clocks under this share of the highest are a cap */
#define CAP_RESOURCE      24 /* Source: linux/capability.h, CAP_SYS_RESOURCE: may raise hard limits */
/* A share of the vendor's figure: ECC in memory takes 1/16, the driver some more. */
#define GPU_MEMORY_MIN 0.9

void checks_add(struct checks *checks, struct check check)
{
    ASSERT(checks->n < CHECKS_MAX);
    VEC_RESERVE_IN(checks->arena, checks);
    /* A node may answer with an empty text. */
    check.expected = check.expected.len ? check.expected : STR_LIT("a name");
    check.found = check.found.len ? check.found : STR_LIT("nothing");
    checks->items[checks->n++] = check;
}

const char *const CHECK_VERDICT_NAMES[] = {"holds", "fails", "not_known"};
const char *const CHECK_LEVEL_NAMES[] = {"required", "advised"};

enum check_verdict check_verdict_of(bool holds)
{
    return holds ? CHECK_HOLDS : CHECK_FAILS;
}

/* ---- one requirement ---- */

struct trial;

/* How a kind of requirement is tried. */
struct want_way {
    void (*try)(struct trial *trial);
    const char *id;  /* the check's */
    const char *key; /* the fact; of a limit the suffix of systemd's setting, as in LimitMEMLOCK */
    bool is_count;   /* not bytes */
    enum check_level level;
    const char *wanted, *advice; /* for a GPU's field */
};

/* One requirement, one node. */
struct trial {
    struct checks *checks;
    const struct inventory *inventory;
    const struct node_probe *probe;
    const struct node_facts *facts; /* the probe's */
    const struct want *want;        /* NULL: what is required whatever runs there */
    const struct want_way *way;
    struct check check; /* being made */
    bool is_moot;       /* there is nothing to check */
};

static PRINTF_LIKE(2, 3) void expect(struct trial *trial, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    trial->check.expected = str_vprintf(trial->checks->arena, fmt, args);
    va_end(args);
}

static PRINTF_LIKE(3, 4) void judge(struct trial *trial, bool holds, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    trial->check.verdict = check_verdict_of(holds);
    trial->check.found = str_vprintf(trial->checks->arena, fmt, args);
    va_end(args);
}

static void not_known(struct trial *trial, struct str why)
{
    trial->check.verdict = CHECK_UNKNOWN;
    trial->check.found = why.len ? why : STR_LIT("not known");
}

/* False: it is not known, and the check says why. */
static bool knows(struct trial *trial, const char *key, struct str value)
{
    if (!value.ptr) {
        not_known(trial, facts_why(trial->facts, key));
    }
    return value.ptr;
}

static bool knows_i64(struct trial *trial, const char *key, int64_t *ret_value)
{
    bool is_known = facts_i64(trial->facts, key, ret_value);
    if (!is_known) {
        not_known(trial, facts_why(trial->facts, key));
    }
    return is_known;
}

static struct str bytes_in_words(struct arena *arena, int64_t bytes)
{
    return bytes == LIMIT_UNLIMITED ? STR_LIT("unlimited")
           : bytes >= GIB           ? str_printf(arena, "%.1f GiB", (double)bytes / (double)GIB)
           : bytes >= 1048576       ? str_printf(arena, "%.1f MiB", (double)bytes / 1048576)
                                    : str_printf(arena, "%" PRId64 " bytes", bytes);
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

/* NULL: not known. */
static struct str gpu_value(const struct node_facts *facts, int64_t gpu, const char *field)
{
    return facts_at(facts, "gpu.%" PRId64 ".%s", gpu, field);
}

struct str gpus_in_words(struct arena *arena, const struct node_facts *facts, const char *field)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(FACT_TEXT_MAX);
    struct str first = gpu_value(facts, 0, field);
    int64_t n = 0;
    bool is_same = true;
    if (!facts_i64(facts, "gpu.count", &n)) {
        return STR_EMPTY;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str value = gpu_value(facts, gpu, field);
        if (!value.ptr) {
            return STR_EMPTY;
        }
        is_same = is_same && str_eq(value, first);
        strbuf_printf(&buf, "%s%.*s", gpu ? ", " : "", STR_ARG(value));
    }
    return n == 0    ? STR_LIT("none")
           : is_same ? str_printf(arena, "%" PRId64 " x %.*s", n, STR_ARG(first))
                     : str_dup(arena, strbuf_str(&buf));
}

static void try_gpus(struct trial *trial)
{
    int64_t n;
    expect(trial, "%" PRId64, trial->want->number);
    if (knows_i64(trial, "gpu.count", &n)) {
        judge(trial, n >= trial->want->number, "%" PRId64, n);
        trial->check.advice =
            n ? STR_EMPTY : STR_LIT("install NVIDIA's driver; nvidia-smi must list them");
    }
}

/* "V100-SXM2-16GB" without "-16GB". */
static struct str without_memory(struct str model)
{
    struct str bare = str_ends(model, STR_LIT("GB"))
                          ? str_rtrim(str_sub(model, 0, model.len - 2), 0, DIGITS)
                          : STR_EMPTY;
    return str_ends(bare, STR_LIT("-")) ? str_sub(bare, 0, bare.len - 1) : model;
}

/* Checks all of them, because a job uses every one. The same GPU with another memory runs the case if the memory is enough, which
   try_gpu_memory requires; its name is then advice only. */
static void try_model(struct trial *trial)
{
    struct str wanted = trial->want->text;
    struct str found = gpus_in_words(trial->checks->arena, trial->facts, "name");
    int64_t n = 0;
    bool holds = facts_i64(trial->facts, "gpu.count", &n) && n > 0;
    bool is_like = holds;
    trial->check.expected = wanted;
    if (!knows(trial, "gpu.0.name", found)) {
        return;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str name = gpu_value(trial->facts, gpu, "name");
        holds = holds && is_model(name, wanted);
        is_like =
            is_like && str_eq(without_memory(bare_model(name)), without_memory(bare_model(wanted)));
    }
    if (!holds && is_like) {
        trial->check.level = CHECK_ADVISED;
        trial->check.advice =
            STR_LIT("the same GPU with another memory: the published numbers were "
                    "measured on the one expected");
    }
    judge(trial, holds, "%.*s", STR_ARG(found));
}

static void try_gpu_memory(struct trial *trial)
{
    struct str found = gpus_in_words(trial->checks->arena, trial->facts, "memory.total_mib");
    int64_t n = 0;
    bool holds = facts_i64(trial->facts, "gpu.count", &n) && n > 0;
    expect(trial, "%" PRId64 " GB", trial->want->number);
    if (!knows(trial, "gpu.0.memory.total_mib", found)) {
        return;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        int64_t mib = 0;
        (void)!str_to_i64(gpu_value(trial->facts, gpu, "memory.total_mib"), 0, INT64_MAX, &mib,
                          &(struct err){0});
        holds = holds && (double)mib >= GPU_MEMORY_MIN * 1024 * (double)trial->want->number;
    }
    judge(trial, holds, "%.*s%s", STR_ARG(found), n ? " MiB" : "");
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
    struct str cuda = trial->want->text;
    const char *needed = cuda_needs_driver(cuda);
    struct str driver = facts_value(trial->facts, "nvidia.driver");
    struct str image = trial->want->image;
    const char *of = image.ptr ? arena_printf(arena, "image %.*s", STR_ARG(image)) : "the image";
    if (!needed) {
        expect(trial, "for CUDA %.*s", STR_ARG(cuda));
        not_known(trial, STR_LIT("unknown which driver this CUDA needs"));
        return;
    }
    expect(trial, "%s or newer, for CUDA %.*s of %s", needed, STR_ARG(cuda), of);
    if (!driver.ptr && has_no_gpu(trial->facts)) {
        judge(trial, false, "no driver");
    } else if (knows(trial, "nvidia.driver", driver)) {
        judge(trial, version_cmp(driver, str_of(needed)) >= 0, "%.*s", STR_ARG(driver));
    }
    if (trial->check.verdict == CHECK_FAILS && driver.ptr) {
        trial->check.advice = str_printf(
            arena, "driver %.*s is too old for %s, which needs %s%s", STR_ARG(driver), of, needed,
            image.ptr ? ": state \"driver\" in the inventory, and the plan takes an image for it"
                      : "");
    }
}

static void try_capability(struct trial *trial)
{
    struct str capability = facts_value(trial->facts, "gpu.0.compute_cap");
    const char *needed = capability.ptr ? capability_needs_cuda(capability) : NULL;
    trial->check.id = "gpu-code";
    expect(trial, "GPUs that CUDA %.*s supports", STR_ARG(trial->want->text));
    if (needed) {
        judge(trial, version_cmp(trial->want->text, str_of(needed)) >= 0,
              "compute capability %.*s, supported from CUDA %s on", STR_ARG(capability), needed);
    } else if (has_no_gpu(trial->facts)) {
        judge(trial, false, "no GPU");
    } else if (knows(trial, "gpu.0.compute_cap", capability)) {
        not_known(trial, str_printf(trial->checks->arena,
                                    "compute capability %.*s: unknown which CUDA it needs",
                                    STR_ARG(capability)));
    }
}

/* ---- memory and limits ---- */

static void try_shm(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    /* An engine mounts its own /dev/shm, which memory must be able to hold; without an engine the node's is used. */
    bool is_own =
        trial->inventory->runtime == RUNTIME_DOCKER || trial->inventory->runtime == RUNTIME_PODMAN;
    int64_t kb;
    expect(trial, "%.*s%s", STR_ARG(bytes_in_words(arena, trial->want->number)),
           is_own ? " of memory for the container's /dev/shm" : " in /dev/shm");
    if (knows_i64(trial, is_own ? "memory.total_kb" : "shm.size_kb", &kb)) {
        judge(trial, kb >= trial->want->number / 1024, "%.*s",
              STR_ARG(bytes_in_words(arena, kb * 1024)));
        trial->check.advice =
            is_own ? STR_EMPTY : STR_LIT("mount -o remount,size=... /dev/shm, or use docker");
    }
}

/* A container's limits come from its engine's daemon if there is one, else from whoever starts it: up to the hard limit, beyond
   it with CAP_SYS_RESOURCE. */
static void try_limit(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const char *name = trial->way->id;
    bool of_daemon = trial->inventory->runtime == RUNTIME_DOCKER;
    const char *prefix = of_daemon ? "engine.docker" : "limit";
    const char *key = arena_printf(arena, "%s.%s.hard", prefix, name);
    struct str hard = facts_value(trial->facts, key);
    int64_t wanted = trial->want->number;
    int64_t value = 0;
    uint64_t mask = 0;
    bool is_number = facts_i64(trial->facts, key, &value);
    bool may_raise =
        facts_hex(facts_at(trial->facts, "%s.caps", prefix), &mask) && (mask >> CAP_RESOURCE & 1);
    trial->check.expected = !trial->way->is_count || wanted == LIMIT_UNLIMITED
                                ? bytes_in_words(arena, wanted)
                                : str_printf(arena, "%" PRId64, wanted);
    if (!knows(trial, key, hard)) {
        return;
    }
    if (!is_number || (wanted != LIMIT_UNLIMITED && value >= wanted)) {
        judge(trial, is_number || str_eq_z(hard, "unlimited"), "%.*s", STR_ARG(hard));
        return;
    }
    judge(trial, may_raise, "hard limit %.*s%s%s", STR_ARG(hard), of_daemon ? " of dockerd" : "",
          may_raise ? ", may be raised" : "");
    trial->check.advice =
        of_daemon
            ? str_printf(arena, "start dockerd with Limit%s=infinity and CAP_SYS_RESOURCE",
                         trial->way->key)
            : str_printf(arena, "/etc/security/limits.conf: hard %s unlimited; log in again", name);
}

static void try_disk(struct trial *trial)
{
    struct arena *arena = trial->checks->arena;
    const struct str path = facts_value(trial->facts, "disk.work.path");
    const struct str rest = trial->want->text;
    int64_t kb;
    if (trial->want->number) {
        expect(trial, "%.*s free in %.*s%s%.*s",
               STR_ARG(bytes_in_words(arena, trial->want->number)), STR_ARG(path),
               rest.len ? "; and " : "", STR_ARG(rest));
    } else {
        expect(trial, "in %.*s %.*s", STR_ARG(path), STR_ARG(rest));
    }
    if (!knows_i64(trial, "disk.work.free_kb", &kb)) {
        return;
    }
    judge(trial, kb >= trial->want->number / 1024, "%.*s on %.*s",
          STR_ARG(bytes_in_words(arena, kb * 1024)),
          STR_ARG(facts_value(trial->facts, "disk.work.kind")));
    if (trial->check.verdict == CHECK_HOLDS && rest.len) {
        trial->check.verdict = CHECK_UNKNOWN; /* enough for the part that is known */
    }
}

/* ---- InfiniBand ---- */

struct ib_found {
    int64_t n_ports, n_active, best_gbit;
};

/* From the facts ib.DEVICE.PORT.state "4: ACTIVE", .rate "100 Gb/sec (4X EDR)", .link_layer "InfiniBand". False: the node did not
   say. Source: Documentation/ABI/stable/sysfs-class-infiniband. */
static bool find_ib(struct trial *trial, struct ib_found *found)
{
    const struct node_facts *facts = trial->facts;
    *found = (struct ib_found){0};
    for (size_t idx = 0; idx < facts->n; idx++) {
        const struct node_fact *fact = &facts->items[idx];
        struct str base = str_sub(fact->key, 0, fact->key.len - strlen(".link_layer"));
        if (!str_starts(fact->key, STR_LIT("ib.")) ||
            !str_ends(fact->key, STR_LIT(".link_layer")) || !str_eq_z(fact->value, "InfiniBand")) {
            continue;
        }
        struct str rate = facts_at(facts, "%.*s.rate", STR_ARG(base)), number = STR_EMPTY;
        double gbit = 0;
        found->n_ports++;
        if (!str_ends(facts_at(facts, "%.*s.state", STR_ARG(base)), STR_LIT("ACTIVE"))) {
            continue;
        }
        found->n_active++;
        if (rate.ptr && str_next(&rate, ' ', &number) &&
            str_to_f64(number, &gbit, &(struct err){0}) == 0 && gbit < 1e6 &&
            (int64_t)gbit > found->best_gbit) {
            found->best_gbit = (int64_t)gbit;
        }
    }
    if (!facts_find(facts, "ib.ports")) {
        not_known(trial, STR_LIT("the node did not say"));
        return false;
    }
    return true;
}

/* Without the device NCCL uses sockets, and says so only in its log. */
static void try_ib_device(struct trial *trial)
{
    struct ib_found found;
    trial->check.expected = STR_LIT("containers that get the node's InfiniBand");
    if (find_ib(trial, &found) && found.n_active) {
        judge(trial, false, "an active port, and containers without " INFINIBAND_DEVICES);
        trial->check.advice = STR_LIT("\"devices\": [\"" INFINIBAND_DEVICES
                                      "\"] in the inventory: else NCCL goes over sockets");
    } else if (trial->check.verdict != CHECK_UNKNOWN) {
        judge(trial, true, "the node has none");
    }
}

static void try_infiniband(struct trial *trial)
{
    struct ib_found found;
    int64_t wanted = trial->want->number;
    if (wanted) {
        expect(trial, "an active port of %" PRId64 " Gb/s", wanted);
    } else {
        trial->check.expected = STR_LIT("an active port");
    }
    if (!find_ib(trial, &found)) {
        return;
    }
    const char *best =
        found.n_active ? arena_printf(trial->checks->arena, ", %" PRId64 " Gb/s", found.best_gbit)
                       : "";
    judge(trial, found.n_active > 0 && found.best_gbit >= wanted,
          "%" PRId64 " ports, %" PRId64 " active%s", found.n_ports, found.n_active, best);
}

static void try_device(struct trial *trial)
{
    bool is_there = str_eq_z(facts_value(trial->facts, "ib.device"), "1");
    trial->check.expected = trial->want->text;
    if (str_starts(trial->want->text, STR_LIT("/dev/infiniband"))) {
        judge(trial, is_there, is_there ? "there" : "no /dev/infiniband");
    } else {
        not_known(trial, STR_LIT("the probe does not check it"));
    }
}

/* ---- what is required whatever runs there ---- */

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void try_reach(struct trial *trial)
{
    const struct node_probe *probe = trial->probe;
    trial->check.expected = STR_LIT("sshd accepts the login and a shell answers");
    judge(trial, false, "%.*s", STR_ARG(probe->error));
    if (probe->is_reached) {
        judge(trial, true, "first answer after %.0f ms, then %.0f ms", ms(probe->connect_ns),
              ms(probe->round_trip_ns));
    }
}

static void try_clock(struct trial *trial)
{
    int64_t low = trial->probe->clock_low_ns;
    int64_t high = trial->probe->clock_high_ns;
    bool is_off = low > CLOCK_OFF_MAX_NS || high < -CLOCK_OFF_MAX_NS;
    bool is_sure = is_off || (low >= -CLOCK_OFF_MAX_NS && high <= CLOCK_OFF_MAX_NS);
    trial->check.expected = STR_LIT("within 2 s of this machine's");
    if (!trial->probe->has_clock) {
        not_known(trial, STR_LIT("its date command prints no number"));
        return;
    }
    judge(trial, !is_off, "between %+.3f s and %+.3f s", ms(low) / 1000, ms(high) / 1000);
    trial->check.verdict = is_sure ? trial->check.verdict : CHECK_UNKNOWN;
    trial->check.advice =
        trial->check.verdict == CHECK_HOLDS ? STR_EMPTY : STR_LIT("chronyd or ntpd on every node");
}

static void try_work_folder(struct trial *trial)
{
    struct str path = facts_value(trial->facts, "disk.work.path");
    struct str kind = facts_value(trial->facts, "disk.work.kind");
    struct str writable = facts_value(trial->facts, "disk.work.writable");
    bool can = str_eq_z(writable, "1");
    expect(trial, "%.*s is writable", STR_ARG(path));
    if (!knows(trial, "disk.work.path", path)) {
        return;
    }
    judge(trial, can, "%s, on %.*s", can ? "it can" : "it cannot",
          STR_ARG(kind.ptr ? kind : STR_LIT("an unknown file system")));
    if (!writable.ptr) {
        trial->check.found = facts_why(trial->facts, "disk.work.writable");
    }
}

static void try_work_on_disk(struct trial *trial)
{
    struct str kind = facts_value(trial->facts, "disk.work.kind");
    trial->is_moot = !str_eq_z(kind, "tmpfs") && !str_eq_z(kind, "ramfs");
    trial->check.expected = STR_LIT("a work folder on a disk");
    judge(trial, false, "%.*s", STR_ARG(kind));
    trial->check.advice = STR_LIT("data there takes memory from the job and is lost on reboot: set "
                                  "work_folder");
}

/* btrfs and others create inodes on demand. */
static void try_inodes(struct trial *trial)
{
    int64_t inodes = 0;
    trial->check.expected = STR_LIT("at least 100000 free inodes");
    if (knows_i64(trial, "disk.work.inodes_free", &inodes)) {
        judge(trial, inodes >= INODES_MIN || inodes == 0, "%" PRId64, inodes);
        trial->check.found =
            inodes ? trial->check.found : STR_LIT("the file system does not count them");
    }
}

static void try_engine(struct trial *trial)
{
    const char *name = RUNTIME_KIND_NAMES[trial->inventory->runtime];
    const char *key = arena_printf(trial->checks->arena, "engine.%s.version", name);
    struct str version = facts_value(trial->facts, key);
    trial->is_moot = trial->inventory->runtime == RUNTIME_NONE;
    expect(trial, "%s answers", name);
    judge(trial, version.ptr, "%.*s",
          STR_ARG(version.ptr ? version : facts_why(trial->facts, key)));
}

/* Docker's own list of runtimes (after the third bar of its info), or a CDI file of NVIDIA's. */
static void try_engine_gpus(struct trial *trial)
{
    const struct node_facts *facts = trial->facts;
    enum runtime_kind runtime = trial->inventory->runtime;
    struct str info = facts_value(facts, "engine.docker.info");
    struct str specs = facts_value(facts, "cdi.specs");
    bool has = (info.ptr && str_find(info, STR_LIT("nvidia")) >= 0) ||
               (specs.ptr && str_find(specs, STR_LIT("nvidia")) >= 0) ||
               facts_value(facts, "engine.nvidia-ctk.version").ptr;
    int64_t n = 0;
    (void)facts_i64(facts, "gpu.count", &n);
    trial->is_moot = (runtime != RUNTIME_DOCKER && runtime != RUNTIME_PODMAN) ||
                     (n == 0 && trial->probe->spec->gpus == 0) ||
                     !facts_at(facts, "engine.%s.version", RUNTIME_KIND_NAMES[runtime]).ptr;
    trial->check.expected = STR_LIT("the engine can give a container GPUs");
    judge(trial, has, "%s",
          has ? "NVIDIA's runtime or CDI files exist" : "no NVIDIA runtime, no CDI file");
    trial->check.advice =
        has ? STR_EMPTY : STR_LIT("install nvidia-container-toolkit; nvidia-ctk cdi generate");
}

/* More GPUs than the inventory lists: it may leave some out. */
static void try_inventory_gpus(struct trial *trial)
{
    int64_t wanted = trial->probe->spec->gpus;
    int64_t n = 0;
    expect(trial, "%" PRId64, wanted);
    if (knows_i64(trial, "gpu.count", &n)) {
        trial->is_moot = wanted == 0 && n == 0;
        trial->check.level = n > wanted ? CHECK_ADVISED : CHECK_REQUIRED;
        judge(trial, n == wanted, "%" PRId64, n);
    }
}

/* False: it has none, or that is not known. */
static bool has_gpus(struct trial *trial, int64_t *ret_n)
{
    *ret_n = 0;
    trial->is_moot = !facts_i64(trial->facts, "gpu.count", ret_n) || *ret_n <= 0;
    return !trial->is_moot;
}

/* Why a field of a GPU is not known. */
static struct str gpu_why(const struct trial *trial, int64_t gpu, const char *field)
{
    return facts_why(trial->facts,
                     arena_printf(trial->checks->arena, "gpu.%" PRId64 ".%s", gpu, field));
}

static void gpu_not_known(struct trial *trial, int64_t gpu, const char *field)
{
    struct str why = gpu_why(trial, gpu, field);
    not_known(trial, why.ptr ? why : STR_LIT("not known for every GPU"));
}

static bool says_no_such(struct str why)
{
    return str_eq_z(why, "[N/A]") || str_eq_z(why, "N/A") || str_eq_z(why, "[Not Supported]");
}

/* Lists each GPU whose field is not as it should be; an unknown field does not fail: old cards lack some. */
static void try_gpu_field(struct trial *trial)
{
    CLEANUP(strbuf) struct strbuf bad = STRBUF(FACT_TEXT_MAX);
    const char *field = trial->way->key;
    int64_t n, n_known = 0;
    /* A card without the mode, or with a driver that predates it, does not have it on. */
    bool is_mig = strcmp(trial->check.id, "gpu-mig") == 0;
    bool lacks_mig =
        is_mig && str_find(facts_why(trial->facts, "smi.mig"), STR_LIT("not a valid field")) >= 0;
    if (!has_gpus(trial, &n)) {
        return;
    }
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str value = gpu_value(trial->facts, gpu, field);
        n_known += value.ptr || lacks_mig || (is_mig && says_no_such(gpu_why(trial, gpu, field)));
        if (value.ptr && !str_eq_z(value, trial->way->wanted)) {
            strbuf_printf(&bad, "%sGPU %" PRId64 ": %.*s", bad.len ? ", " : "", gpu,
                          STR_ARG(value));
        }
    }
    expect(trial, "%s: %s", field, trial->way->wanted);
    if (bad.len) {
        judge(trial, false, "%s", bad.ptr);
        trial->check.advice = str_of(trial->way->advice);
    } else if (n_known < n) {
        gpu_not_known(trial, 0, field);
    } else {
        judge(trial, true, "%s", trial->way->wanted);
    }
}

/* Application clocks that somebody has lowered below the card's highest. */
static void try_clocks(struct trial *trial)
{
    static const char SET[] = "clocks.applications.graphics_mhz", MAX[] = "clocks.max.sm_mhz";
    int64_t n;
    trial->check.expected = STR_LIT("application clocks at the card's highest");
    if (has_gpus(trial, &n)) {
        judge(trial, true, "they are");
    }
    for (int64_t gpu = 0; gpu < n && trial->check.verdict == CHECK_HOLDS; gpu++) {
        int64_t set = 0;
        int64_t max = 0;
        if (str_to_i64(gpu_value(trial->facts, gpu, SET), 0, INT64_MAX, &set, ERR_IGNORED) < 0 ||
            str_to_i64(gpu_value(trial->facts, gpu, MAX), 0, INT64_MAX, &max, ERR_IGNORED) < 0) {
            gpu_not_known(trial, gpu, SET);
        } else if (set * 100 < max * CLOCK_CAP_PERCENT) {
            judge(trial, false, "GPU %" PRId64 ": %" PRId64 " of %" PRId64 " MHz", gpu, set, max);
            trial->check.advice =
                STR_LIT("nvidia-smi -ac, or record it: the published runs do not say");
        }
    }
}

static void try_gpu_idle(struct trial *trial)
{
    int64_t n, others = 0;
    trial->check.expected = STR_LIT("no process on the GPUs");
    if (has_gpus(trial, &n) && knows_i64(trial, "nvidia.processes", &others)) {
        judge(trial, others == 0, "%" PRId64 " processes", others);
    }
}

static void try_governor(struct trial *trial)
{
    struct str governor = facts_value(trial->facts, "cpu.governor");
    bool holds = str_eq_z(governor, "performance");
    trial->check.expected = STR_LIT("performance");
    if (knows(trial, "cpu.governor", governor)) {
        judge(trial, holds, "%.*s", STR_ARG(governor));
        trial->check.advice = holds ? STR_EMPTY : STR_LIT("cpupower frequency-set -g performance");
    }
}

void checks_of_probe(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe)
{
    static const struct want_way ALWAYS[] = {
        {.try = try_reach, .id = "reached"},
        {.try = try_clock, .id = "clock"},
        {.try = try_work_folder, .id = "work-folder"},
        {.try = try_work_on_disk, .id = "work-on-disk", .level = CHECK_ADVISED},
        {.try = try_inodes, .id = "inodes", .level = CHECK_ADVISED},
        {.try = try_engine, .id = "engine"},
        {.try = try_engine_gpus, .id = "engine-gpus"},
        {.try = try_inventory_gpus, .id = "inventory-gpus"},
        {try_gpu_field, "gpu-mig", "mig.mode.current", false, CHECK_REQUIRED, "Disabled",
         "nvidia-smi -mig 0: a job takes whole GPUs"},
        {try_gpu_field, "gpu-ecc", "ecc.errors.uncorrected.aggregate.total", false, CHECK_ADVISED,
         "0", NULL},
        {try_gpu_field, "gpu-persistence", "persistence_mode", false, CHECK_ADVISED, "Enabled",
         "nvidia-smi -pm 1, or nvidia-persistenced"},
        {try_gpu_field, "gpu-compute-mode", "compute_mode", false, CHECK_ADVISED, "Default", NULL},
        {.try = try_clocks, .id = "gpu-clocks", .level = CHECK_ADVISED},
        {.try = try_gpu_idle, .id = "gpu-idle"},
        {.try = try_governor, .id = "cpu-governor", .level = CHECK_ADVISED},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ALWAYS) && (idx == 0 || probe->is_reached); idx++) {
        struct trial trial = {.checks = checks,
                              .inventory = inventory,
                              .probe = probe,
                              .facts = &probe->facts,
                              .way = &ALWAYS[idx],
                              .check = {.id = ALWAYS[idx].id,
                                        .node = probe->spec->name,
                                        .level = ALWAYS[idx].level,
                                        .of = STR_LIT("the inventory")}};
        ALWAYS[idx].try(&trial);
        if (!trial.is_moot) {
            checks_add(checks, trial.check);
        }
    }
}

/* ---- what the published numbers were measured on ---- */

static struct str plain(struct arena *arena, struct str text)
{
    static const char *const DROPPED[] = {"(R)", "(TM)", " CPU", " Processor", "(tm)", " @"};
    CLEANUP(strbuf) struct strbuf buf = STRBUF(FACT_TEXT_MAX);
    for (size_t at = 0; at < text.len;) {
        size_t skip = 0;
        for (size_t idx = 0; idx < ARRAY_LEN(DROPPED) && skip == 0; idx++) {
            struct str rest = str_sub(text, at, text.len);
            skip = str_starts(rest, str_of(DROPPED[idx])) ? strlen(DROPPED[idx]) : 0;
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
    struct str value = facts_value(trial->facts, trial->way->key);
    int64_t kb = 0;
    trial->check.expected = trial->want->text;
    if (!knows(trial, trial->way->key, value)) {
        return;
    }
    if (trial->want->kind == WANT_MEMORY) {
        (void)facts_i64(trial->facts, trial->way->key, &kb);
        int64_t gib = (kb + (1 << 19)) >> 20;
        judge(trial, gib >= trial->want->number, "%" PRId64 " GiB", gib);
        return;
    }
    judge(trial, str_eq(plain(arena, value), plain(arena, trial->want->text)), "%.*s",
          STR_ARG(value));
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
    [WANT_CPU] = {try_same, "as-published-cpu", "cpu.model", false, CHECK_ADVISED, NULL, NULL},
    [WANT_CORES] = {try_same, "as-published-cores", "cpu.cores", false, CHECK_ADVISED, NULL, NULL},
    [WANT_MEMORY] = {try_same, "as-published-memory", "memory.total_kb", false, CHECK_ADVISED, NULL,
                     NULL},
    [WANT_OS] = {try_same, "as-published-os", "system.os", false, CHECK_ADVISED, NULL, NULL},
    [WANT_DRIVER] = {try_same, "as-published-driver", "nvidia.driver", false, CHECK_ADVISED, NULL,
                     NULL},
};

void checks_of_wants(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe, const struct wants *wants)
{
    for (size_t idx = 0; probe->is_reached && idx < wants->n; idx++) {
        const struct want *want = &wants->items[idx];
        const struct want_way *way = &WAYS[want->kind];
        struct trial trial = {.checks = checks,
                              .inventory = inventory,
                              .probe = probe,
                              .facts = &probe->facts,
                              .want = want,
                              .way = way,
                              .check = {.id = way->id, .node = probe->spec->name, .of = want->of}};
        if (want->kind == WANT_NODES) {
            continue; /* over all nodes together */
        }
        trial.check.level = way->level;
        way->try(&trial);
        checks_add(checks, trial.check);
        if (want->kind == WANT_CUDA) {
            trial.check.advice = STR_EMPTY;
            try_capability(&trial);
            checks_add(checks, trial.check);
        }
    }
}
