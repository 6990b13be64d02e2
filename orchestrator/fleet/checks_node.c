/* SPDX-License-Identifier: Apache-2.0 */
/* What is required of a node whatever runs there. */
#include "base/base.h"

#include "fleet/checks.h"

#include "base/clock.h"

/* Raw logs of several nodes are ordered by their time stamps, and rendezvous tokens and TLS certificates expire. */
#define CLOCK_OFF_MAX_NS (2 * NS_PER_S)
#define INODES_MIN                                                                                 \
    100000 /* the largest dataset unpacked has 1.3 million files, one folder per class */
#define CLOCK_CAP_PERCENT 98 /* application clocks under this share of the highest are a cap */

static void add(struct checks *checks, const struct node_probe *probe, struct check check)
{
    check.node = probe->spec->name;
    check.of = check.of.ptr ? check.of : STR_LIT("the inventory");
    checks_add(checks, check);
}

static double ms(int64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

static void try_reach(struct checks *checks, const struct node_probe *probe)
{
    struct check check = {.id = "reached",
                          .expected = STR_LIT("sshd accepts the login and a shell answers")};
    if (probe->is_reached) {
        check.found = str_of(arena_printf(checks->arena, "first answer after %.0f ms, then %.0f ms",
                                          ms(probe->connect_ns), ms(probe->round_trip_ns)));
    } else {
        check.verdict = CHECK_FAILS;
        check.found = probe->error;
    }
    add(checks, probe, check);
}

static void try_noise(struct checks *checks, const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    struct check check = {.id = "shell-noise",
                          .level = CHECK_ADVISED,
                          .expected = STR_LIT("a login that prints nothing"),
                          .found = STR_LIT("nothing")};
    if (facts->noise_bytes) {
        check.verdict = CHECK_FAILS;
        check.found =
            str_of(arena_printf(checks->arena, "%zu bytes before the first line: %.*s",
                                facts->noise_bytes, STR_ARG(str_sub(facts->noise, 0, 80))));
        check.advice = STR_LIT("print only if the shell is interactive: case $- in *i*) ... esac");
    }
    add(checks, probe, check);
}

static void try_clock(struct checks *checks, const struct node_probe *probe)
{
    int64_t low = probe->clock_low_ns;
    int64_t high = probe->clock_high_ns;
    struct check check = {.id = "clock", .expected = STR_LIT("within 2 s of this machine's")};
    if (!probe->has_clock) {
        check.verdict = CHECK_UNKNOWN;
        check.found = STR_LIT("its date command prints no number");
        add(checks, probe, check);
        return;
    }
    if (low > CLOCK_OFF_MAX_NS || high < -CLOCK_OFF_MAX_NS) {
        check.verdict = CHECK_FAILS;
    } else if (low < -CLOCK_OFF_MAX_NS || high > CLOCK_OFF_MAX_NS) {
        check.verdict = CHECK_UNKNOWN;
    }
    check.found = str_of(arena_printf(checks->arena, "between %+.3f s and %+.3f s", ms(low) / 1000,
                                      ms(high) / 1000));
    check.advice =
        check.verdict == CHECK_HOLDS ? STR_EMPTY : STR_LIT("chronyd or ntpd on every node");
    add(checks, probe, check);
}

static void try_work_folder(struct checks *checks, const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    struct str path = facts_value(facts, "disk.work.path");
    struct str kind = facts_value(facts, "disk.work.kind");
    struct str writable = facts_value(facts, "disk.work.writable");
    int64_t inodes = 0;
    struct check check = {
        .id = "work-folder",
        .expected = str_of(arena_printf(checks->arena, "%.*s is writable", STR_ARG(path)))};
    struct check files = {
        .id = "inodes", .level = CHECK_ADVISED, .expected = STR_LIT("at least 100000 free inodes")};
    check.verdict = str_eq_z(writable, "1") ? CHECK_HOLDS : CHECK_FAILS;
    check.found =
        writable.ptr
            ? str_of(arena_printf(checks->arena, "%s, on %.*s",
                                  check.verdict == CHECK_HOLDS ? "it can" : "it cannot",
                                  STR_ARG(kind.ptr ? kind : STR_LIT("an unknown file system"))))
            : facts_why(facts, "disk.work.writable");
    if (!path.ptr) {
        check.verdict = CHECK_UNKNOWN;
        check.found = facts_why(facts, "disk.work.path");
    }
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
    if (!facts_i64(facts, "disk.work.inodes_free", &inodes)) {
        /* btrfs and others create inodes on demand. */
        files.verdict = CHECK_UNKNOWN;
        files.found = facts_why(facts, "disk.work.inodes_free");
    } else {
        files.verdict = inodes >= INODES_MIN || inodes == 0 ? CHECK_HOLDS : CHECK_FAILS;
        files.found = str_of(arena_printf(checks->arena, "%lld", (long long)inodes));
        files.found = inodes == 0 ? STR_LIT("the file system does not count them") : files.found;
    }
    add(checks, probe, files);
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
    struct check check = {.id = "engine",
                          .verdict = version.ptr ? CHECK_HOLDS : CHECK_FAILS,
                          .expected = str_of(arena_printf(checks->arena, "%s answers", name)),
                          .found = version.ptr ? version : facts_why(facts, key)};
    if (inventory->runtime == RUNTIME_NONE) {
        return;
    }
    add(checks, probe, check);
    if (n_gpus > 0 && version.ptr &&
        (inventory->runtime == RUNTIME_DOCKER || inventory->runtime == RUNTIME_PODMAN)) {
        bool has = has_gpu_support(facts);
        add(checks, probe,
            (struct check){.id = "engine-gpus",
                           .verdict = has ? CHECK_HOLDS : CHECK_FAILS,
                           .expected = STR_LIT("the engine can give a container GPUs"),
                           .found = has ? STR_LIT("NVIDIA's runtime or CDI files exist")
                                        : STR_LIT("no NVIDIA runtime, no CDI file"),
                           .advice = has ? STR_EMPTY
                                         : STR_LIT("install nvidia-container-toolkit; nvidia-ctk "
                                                   "cdi generate")});
    }
}

/* ---- GPUs ---- */

static struct str of_gpu(struct arena *arena, const struct node_facts *facts, int64_t gpu,
                         const char *field)
{
    return facts_value(facts, arena_printf(arena, "gpu.%lld.%s", (long long)gpu, field));
}

static struct str of_gpu_why(struct arena *arena, const struct node_facts *facts, int64_t gpu,
                             const char *field)
{
    return facts_why(facts, arena_printf(arena, "gpu.%lld.%s", (long long)gpu, field));
}

static bool says_no_such(struct str why)
{
    return str_eq_z(why, "[N/A]") || str_eq_z(why, "N/A") || str_eq_z(why, "[Not Supported]");
}

/* Lists each GPU whose field is not as it should be; an unknown field does not fail: old cards lack some. */
static void try_gpu_field(struct checks *checks, const struct node_probe *probe, int64_t n,
                          const char *field, const struct check *form)
{
    CLEANUP(strbuf) struct strbuf bad = STRBUF(FACT_TEXT_MAX);
    struct check check = *form;
    size_t n_bad = 0;
    size_t n_known = 0;
    struct str group = facts_why(&probe->facts, "smi.mig");
    bool is_mig = strcmp(form->id, "gpu-mig") == 0;
    for (int64_t gpu = 0; gpu < n; gpu++) {
        struct str value = of_gpu(checks->arena, &probe->facts, gpu, field);
        /* A card without the mode, or with a driver that predates it, does not have it on. */
        n_known += value.ptr != NULL ||
                   (is_mig && (says_no_such(of_gpu_why(checks->arena, &probe->facts, gpu, field)) ||
                               str_find(group, STR_LIT("not a valid field")) >= 0));
        if (value.ptr && !str_eq(value, form->expected)) {
            strbuf_printf(&bad, "%sGPU %lld: %.*s", n_bad++ ? ", " : "", (long long)gpu,
                          STR_ARG(value));
        }
    }
    check.expected =
        str_of(arena_printf(checks->arena, "%s: %.*s", field, STR_ARG(form->expected)));
    if (n_bad) {
        check.verdict = CHECK_FAILS;
        check.found = str_dup(checks->arena, strbuf_str(&bad));
    } else if (n_known < (size_t)n) {
        check.verdict = CHECK_UNKNOWN;
        check.found = facts_why(&probe->facts, arena_printf(checks->arena, "gpu.0.%s", field));
        check.found = check.found.ptr ? check.found : STR_LIT("not known for every GPU");
        check.advice = STR_EMPTY;
    } else {
        check.verdict = CHECK_HOLDS;
        check.found = form->expected;
        check.advice = STR_EMPTY;
    }
    add(checks, probe, check);
}

/* Application clocks that somebody has lowered below the card's highest. */
static void try_clocks(struct checks *checks, const struct node_probe *probe, int64_t n)
{
    struct check check = {.id = "gpu-clocks",
                          .level = CHECK_ADVISED,
                          .expected = STR_LIT("application clocks at the card's highest"),
                          .found = STR_LIT("they are")};
    for (int64_t gpu = 0; gpu < n; gpu++) {
        int64_t set = 0;
        int64_t max = 0;
        const struct node_facts *facts = &probe->facts;
        const char *set_key = arena_printf(
            checks->arena, "gpu.%lld.clocks.applications.graphics_mhz", (long long)gpu);
        if (!facts_i64(facts, set_key, &set) ||
            !facts_i64(facts,
                       arena_printf(checks->arena, "gpu.%lld.clocks.max.sm_mhz", (long long)gpu),
                       &max)) {
            check.verdict = CHECK_UNKNOWN;
            check.found = facts_why(facts, set_key);
            check.found = check.found.ptr ? check.found : STR_LIT("not known for every GPU");
            break;
        }
        if (set * 100 < max * CLOCK_CAP_PERCENT) {
            check.verdict = CHECK_FAILS;
            check.found = str_of(arena_printf(checks->arena, "GPU %lld: %lld of %lld MHz",
                                              (long long)gpu, (long long)set, (long long)max));
            check.advice = STR_LIT("nvidia-smi -ac, or record it: the published runs do not say");
            break;
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
    struct check busy = {.id = "gpu-idle",
                         .expected = STR_LIT("no process on the GPUs"),
                         .found = facts_why(&probe->facts, "nvidia.processes"),
                         .verdict = CHECK_UNKNOWN};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct check form = {.id = ROWS[idx].id,
                             .level = ROWS[idx].level,
                             .expected = str_of(ROWS[idx].expected),
                             .advice = str_of(ROWS[idx].advice)};
        try_gpu_field(checks, probe, n, ROWS[idx].field, &form);
    }
    try_clocks(checks, probe, n);
    if (facts_i64(&probe->facts, "nvidia.processes", &others)) {
        busy.verdict = others == 0 ? CHECK_HOLDS : CHECK_FAILS;
        busy.found = str_of(arena_printf(checks->arena, "%lld processes", (long long)others));
    }
    add(checks, probe, busy);
}

static void try_gpus(struct checks *checks, const struct node_probe *probe)
{
    const struct node_facts *facts = &probe->facts;
    int64_t wanted = probe->spec->gpus;
    int64_t n = 0;
    bool is_known = facts_i64(facts, "gpu.count", &n);
    struct check check = {
        .id = "inventory-gpus",
        .expected = str_of(arena_printf(checks->arena, "%lld", (long long)wanted)),
        .verdict = !is_known     ? CHECK_UNKNOWN
                   : n == wanted ? CHECK_HOLDS
                                 : CHECK_FAILS,
        .found = is_known ? str_of(arena_printf(checks->arena, "%lld", (long long)n))
                          : facts_why(facts, "gpu.count")};
    if (wanted > 0 || !is_known || n > 0) {
        /* More GPUs than the inventory lists: it may leave some out. */
        check.level = is_known && n > wanted ? CHECK_ADVISED : CHECK_REQUIRED;
        add(checks, probe, check);
    }
    if (is_known && n > 0) {
        try_gpu_health(checks, probe, n);
    }
}

static void try_cpu(struct checks *checks, const struct node_probe *probe)
{
    struct str governor = facts_value(&probe->facts, "cpu.governor");
    struct check check = {.id = "cpu-governor",
                          .level = CHECK_ADVISED,
                          .expected = STR_LIT("performance"),
                          .found = governor};
    check.verdict = str_eq_z(governor, "performance") ? CHECK_HOLDS : CHECK_FAILS;
    if (!governor.ptr) {
        check.verdict = CHECK_UNKNOWN;
        check.found = facts_why(&probe->facts, "cpu.governor");
    } else if (check.verdict == CHECK_FAILS) {
        check.advice = STR_LIT("cpupower frequency-set -g performance");
    }
    add(checks, probe, check);
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
