/* SPDX-License-Identifier: Apache-2.0 */
/* What is required of a node whatever runs there. */
#include "base/base.h"

#include "fleet/checks.h"

#include "base/clock.h"
#include "base/str.h"

/* Raw logs of several nodes are ordered by their time stamps, and rendezvous tokens and TLS certificates expire. */
#define CLOCK_OFF_MAX_NS (2 * NS_PER_S)
#define INODES_MIN                                                                                 \
    100000 /* the largest dataset unpacked has 1.3 million files, one folder per class */
#define CLOCK_CAP_PERCENT 98 /* application clocks under this share of the highest are a cap */

static void add(struct checks *checks, const struct node_probe *probe, struct check check)
{
    check.node = probe->spec->name;
    check.of = STR_LIT("the inventory");
    checks_add(checks, check);
}

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void try_reach(struct checks *checks, const struct node_probe *probe)
{
    add(checks, probe,
        (struct check){.id = "reached",
                       .verdict = check_verdict_of(probe->is_reached),
                       .expected = STR_LIT("sshd accepts the login and a shell answers"),
                       .found = probe->is_reached
                                    ? str_printf(checks->arena,
                                                 "first answer after %.0f ms, then %.0f ms",
                                                 ms(probe->connect_ns), ms(probe->round_trip_ns))
                                    : probe->error});
}

static void try_noise(struct checks *checks, const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    struct check check = {.id = "shell-noise",
                          .level = CHECK_ADVISED,
                          .verdict = check_verdict_of(!facts->noise_bytes),
                          .expected = STR_LIT("a login that prints nothing"),
                          .found = STR_LIT("nothing")};
    if (facts->noise_bytes) {
        check.found = str_printf(checks->arena, "%zu bytes before the first line: %.*s",
                                 facts->noise_bytes, STR_ARG(str_sub(facts->noise, 0, 80)));
        check.advice = STR_LIT("print only if the shell is interactive: case $- in *i*) ... esac");
    }
    add(checks, probe, check);
}

static void try_clock(struct checks *checks, const struct node_probe *probe)
{
    int64_t low = probe->clock_low_ns;
    int64_t high = probe->clock_high_ns;
    bool is_off = low > CLOCK_OFF_MAX_NS || high < -CLOCK_OFF_MAX_NS;
    bool is_sure = is_off || (low >= -CLOCK_OFF_MAX_NS && high <= CLOCK_OFF_MAX_NS);
    struct check check = {.id = "clock",
                          .verdict = is_sure && probe->has_clock ? check_verdict_of(!is_off)
                                                                 : CHECK_UNKNOWN,
                          .expected = STR_LIT("within 2 s of this machine's"),
                          .found = STR_LIT("its date command prints no number")};
    if (probe->has_clock) {
        check.found = str_printf(checks->arena, "between %+.3f s and %+.3f s", ms(low) / 1000,
                                 ms(high) / 1000);
        check.advice =
            check.verdict == CHECK_HOLDS ? STR_EMPTY : STR_LIT("chronyd or ntpd on every node");
    }
    add(checks, probe, check);
}

static void try_inodes(struct checks *checks, const struct node_probe *probe)
{
    int64_t inodes = 0;
    /* btrfs and others create inodes on demand. */
    bool is_known = facts_i64(&probe->facts, "disk.work.inodes_free", &inodes);
    add(checks, probe,
        (struct check){.id = "inodes",
                       .level = CHECK_ADVISED,
                       .verdict = is_known ? check_verdict_of(inodes >= INODES_MIN || inodes == 0)
                                           : CHECK_UNKNOWN,
                       .expected = STR_LIT("at least 100000 free inodes"),
                       .found = !is_known ? facts_why(&probe->facts, "disk.work.inodes_free")
                                : inodes  ? str_printf(checks->arena, "%" PRId64, inodes)
                                          : STR_LIT("the file system does not count them")});
}

static void try_work_folder(struct checks *checks, const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    struct str path = facts_value(facts, "disk.work.path");
    struct str kind = facts_value(facts, "disk.work.kind");
    struct str writable = facts_value(facts, "disk.work.writable");
    bool can = str_eq_z(writable, "1");
    struct check check = {.id = "work-folder",
                          .verdict = path.ptr ? check_verdict_of(can) : CHECK_UNKNOWN,
                          .expected = str_printf(checks->arena, "%.*s is writable", STR_ARG(path)),
                          .found = !path.ptr ? facts_why(facts, "disk.work.path")
                                   : !writable.ptr
                                       ? facts_why(facts, "disk.work.writable")
                                       : str_printf(checks->arena, "%s, on %.*s",
                                                    can ? "it can" : "it cannot",
                                                    STR_ARG(kind.ptr ? kind
                                                                     : STR_LIT("an unknown file "
                                                                               "system")))};
    add(checks, probe, check);
    if (str_eq_z(kind, "tmpfs") || str_eq_z(kind, "ramfs")) {
        add(checks, probe,
            (struct check){.id = "work-on-disk",
                           .level = CHECK_ADVISED,
                           .verdict = CHECK_FAILS,
                           .expected = STR_LIT("a work folder on a disk"),
                           .found = kind,
                           .advice = STR_LIT("data there takes memory from the job and is lost on "
                                             "reboot: set work_folder")});
    }
    try_inodes(checks, probe);
}

/* ---- container engine ---- */

/* Docker's own list of runtimes (after the third bar of its info), or a CDI file of NVIDIA's. */
static bool has_gpu_support(const struct node_facts *facts)
{
    struct str info = facts_value(facts, "engine.docker.info");
    struct str specs = facts_value(facts, "cdi.specs");
    return (info.ptr && str_find(info, STR_LIT("nvidia")) >= 0) ||
           (specs.ptr && str_find(specs, STR_LIT("nvidia")) >= 0) ||
           facts_value(facts, "engine.nvidia-ctk.version").ptr;
}

static void try_engine(struct checks *checks, const struct inventory *inventory,
                       const struct node_probe *probe, int64_t n_gpus)
{
    const struct node_facts *facts = &probe->facts;
    const char *name = RUNTIME_KIND_NAMES[inventory->runtime];
    const char *key = arena_printf(checks->arena, "engine.%s.version", name);
    struct str version = facts_value(facts, key);
    if (inventory->runtime == RUNTIME_NONE) {
        return;
    }
    add(checks, probe,
        (struct check){.id = "engine",
                       .verdict = check_verdict_of(version.ptr),
                       .expected = str_printf(checks->arena, "%s answers", name),
                       .found = version.ptr ? version : facts_why(facts, key)});
    if (n_gpus > 0 && version.ptr &&
        (inventory->runtime == RUNTIME_DOCKER || inventory->runtime == RUNTIME_PODMAN)) {
        bool has = has_gpu_support(facts);
        add(checks, probe,
            (struct check){.id = "engine-gpus",
                           .verdict = check_verdict_of(has),
                           .expected = STR_LIT("the engine can give a container GPUs"),
                           .found = has ? STR_LIT("NVIDIA's runtime or CDI files exist")
                                        : STR_LIT("no NVIDIA runtime, no CDI file"),
                           .advice = has ? STR_EMPTY
                                         : STR_LIT("install nvidia-container-toolkit; nvidia-ctk "
                                                   "cdi generate")});
    }
}

/* ---- GPUs ---- */

/* Why a field of a GPU is not known. */
static struct str gpu_why(struct checks *checks, const struct node_probe *probe, int64_t gpu,
                          const char *field)
{
    return facts_why(&probe->facts, arena_printf(checks->arena, "gpu.%" PRId64 ".%s", gpu, field));
}

static struct str not_known(struct checks *checks, const struct node_probe *probe, int64_t gpu,
                            const char *field)
{
    struct str why = gpu_why(checks, probe, gpu, field);
    return why.ptr ? why : STR_LIT("not known for every GPU");
}

static bool says_no_such(struct str why)
{
    return str_eq_z(why, "[N/A]") || str_eq_z(why, "N/A") || str_eq_z(why, "[Not Supported]");
}

/* Lists each GPU whose field is not as it should be; an unknown field does not fail: old cards lack some. */
static void try_gpu_field(struct checks *checks, const struct node_probe *probe, int64_t n,
                          const char *field, struct check check)
{
    CLEANUP(strbuf) struct strbuf bad = STRBUF(FACT_TEXT_MAX);
    struct str wanted = check.expected;
    int64_t n_known = 0;
    /* A card without the mode, or with a driver that predates it, does not have it on. */
    bool is_mig = strcmp(check.id, "gpu-mig") == 0;
    bool lacks_mig =
        is_mig && str_find(facts_why(&probe->facts, "smi.mig"), STR_LIT("not a valid field")) >= 0;
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str value = gpu_value(&probe->facts, gpu, field);
        n_known +=
            value.ptr || lacks_mig || (is_mig && says_no_such(gpu_why(checks, probe, gpu, field)));
        if (value.ptr && !str_eq(value, wanted)) {
            strbuf_printf(&bad, "%sGPU %" PRId64 ": %.*s", bad.len ? ", " : "", gpu,
                          STR_ARG(value));
        }
    }
    check.expected = str_printf(checks->arena, "%s: %.*s", field, STR_ARG(wanted));
    if (bad.len) {
        check.verdict = CHECK_FAILS;
        check.found = str_dup(checks->arena, strbuf_str(&bad));
    } else {
        check.verdict = n_known < n ? CHECK_UNKNOWN : CHECK_HOLDS;
        check.found = n_known < n ? not_known(checks, probe, 0, field) : wanted;
        check.advice = STR_EMPTY;
    }
    add(checks, probe, check);
}

/* Application clocks that somebody has lowered below the card's highest. */
static void try_clocks(struct checks *checks, const struct node_probe *probe, int64_t n)
{
    static const char SET[] = "clocks.applications.graphics_mhz", MAX[] = "clocks.max.sm_mhz";
    struct check check = {.id = "gpu-clocks",
                          .level = CHECK_ADVISED,
                          .expected = STR_LIT("application clocks at the card's highest"),
                          .found = STR_LIT("they are")};
    for (int64_t gpu = 0; gpu < n && check.verdict == CHECK_HOLDS; gpu++) {
        int64_t set = 0;
        int64_t max = 0;
        struct err ignored = {0};
        if (str_to_i64(gpu_value(&probe->facts, gpu, SET), 0, INT64_MAX, &set, &ignored) < 0 ||
            str_to_i64(gpu_value(&probe->facts, gpu, MAX), 0, INT64_MAX, &max, &ignored) < 0) {
            check.verdict = CHECK_UNKNOWN;
            check.found = not_known(checks, probe, gpu, SET);
        } else if (set * 100 < max * CLOCK_CAP_PERCENT) {
            check.verdict = CHECK_FAILS;
            check.found = str_printf(
                checks->arena, "GPU %" PRId64 ": %" PRId64 " of %" PRId64 " MHz", gpu, set, max);
            check.advice = STR_LIT("nvidia-smi -ac, or record it: the published runs do not say");
        }
    }
    add(checks, probe, check);
}

static void try_gpu_health(struct checks *checks, const struct node_probe *probe, int64_t n)
{
    static const struct {
        const char *field, *id;
        enum check_level level;
        const char *expected, *advice;
    } ROWS[] = {
        {"mig.mode.current", "gpu-mig", CHECK_REQUIRED, "Disabled",
         "nvidia-smi -mig 0: a job takes whole GPUs"},
        {"ecc.errors.uncorrected.aggregate.total", "gpu-ecc", CHECK_ADVISED, "0", NULL},
        {"persistence_mode", "gpu-persistence", CHECK_ADVISED, "Enabled",
         "nvidia-smi -pm 1, or nvidia-persistenced"},
        {"compute_mode", "gpu-compute-mode", CHECK_ADVISED, "Default", NULL},
    };
    int64_t others = 0;
    bool is_known = facts_i64(&probe->facts, "nvidia.processes", &others);
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        try_gpu_field(checks, probe, n, ROWS[idx].field,
                      (struct check){.id = ROWS[idx].id,
                                     .level = ROWS[idx].level,
                                     .expected = str_of(ROWS[idx].expected),
                                     .advice = str_of(ROWS[idx].advice)});
    }
    try_clocks(checks, probe, n);
    add(checks, probe,
        (struct check){.id = "gpu-idle",
                       .verdict = is_known ? check_verdict_of(others == 0) : CHECK_UNKNOWN,
                       .expected = STR_LIT("no process on the GPUs"),
                       .found = is_known
                                    ? str_printf(checks->arena, "%" PRId64 " processes", others)
                                    : facts_why(&probe->facts, "nvidia.processes")});
}

static void try_gpus(struct checks *checks, const struct node_probe *probe)
{
    int64_t wanted = probe->spec->gpus;
    int64_t n = 0;
    bool is_known = facts_i64(&probe->facts, "gpu.count", &n);
    if (wanted > 0 || !is_known || n > 0) {
        add(checks, probe,
            /* More GPUs than the inventory lists: it may leave some out. */
            (struct check){.id = "inventory-gpus",
                           .level = is_known && n > wanted ? CHECK_ADVISED : CHECK_REQUIRED,
                           .verdict = is_known ? check_verdict_of(n == wanted) : CHECK_UNKNOWN,
                           .expected = str_printf(checks->arena, "%" PRId64, wanted),
                           .found = is_known ? str_printf(checks->arena, "%" PRId64, n)
                                             : facts_why(&probe->facts, "gpu.count")});
    }
    if (is_known && n > 0) {
        try_gpu_health(checks, probe, n);
    }
}

static void try_cpu(struct checks *checks, const struct node_probe *probe)
{
    struct str governor = facts_value(&probe->facts, "cpu.governor");
    bool holds = str_eq_z(governor, "performance");
    add(checks, probe,
        (struct check){.id = "cpu-governor",
                       .level = CHECK_ADVISED,
                       .verdict = governor.ptr ? check_verdict_of(holds) : CHECK_UNKNOWN,
                       .expected = STR_LIT("performance"),
                       .found = governor.ptr ? governor : facts_why(&probe->facts, "cpu.governor"),
                       .advice = governor.ptr && !holds
                                     ? STR_LIT("cpupower frequency-set -g performance")
                                     : STR_EMPTY});
}

void checks_of_probe(struct checks *checks, const struct inventory *inventory,
                     const struct node_probe *probe)
{
    int64_t n_gpus = 0;
    try_reach(checks, probe);
    if (!probe->is_reached) {
        return;
    }
    (void)facts_i64(&probe->facts, "gpu.count", &n_gpus);
    try_noise(checks, probe);
    try_clock(checks, probe);
    try_work_folder(checks, probe);
    try_engine(checks, inventory, probe, n_gpus > probe->spec->gpus ? n_gpus : probe->spec->gpus);
    try_gpus(checks, probe);
    try_cpu(checks, probe);
}
