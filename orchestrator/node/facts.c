/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/secret.h"
#include "base/vec.h"
#include "node/job.h"
#include "node/serve.h"
#include "node/tool.h"

/* ---- lines ---- */

static void emit(struct facts *facts, char mark, const char *key, const char *text)
{
    strbuf_printf(facts->out, "%c %s ", mark, key);
    for (const char *at = text; *at; at++) {
        strbuf_add_char(facts->out, *at == '\n' || *at == '\r' ? ' ' : *at);
    }
    strbuf_add_char(facts->out, '\n');
}

void facts_put(struct facts *facts, const char *key, const char *value)
{
    emit(facts, '=', key, value);
}

void facts_printf(struct facts *facts, const char *key, const char *fmt, ...)
{
    char text[FACTS_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    facts_put(facts, key, text);
}

void facts_unknown(struct facts *facts, const char *key, const char *why)
{
    emit(facts, '?', key, why);
}

/* The value, or if it is empty why. */
static void say(struct facts *facts, const char *key, const char *value, const char *why)
{
    emit(facts, value[0] ? '=' : '?', key, value[0] ? value : why);
}

bool facts_line(const char *path, char ret_text[FACTS_TEXT])
{
    bool is_read = job_read_small(path, ret_text, FACTS_TEXT);
    ret_text[is_read ? strcspn(ret_text, "\n") : 0] = '\0';
    return is_read;
}

static void facts_file(struct facts *facts, const char *key, const char *path)
{
    char text[FACTS_TEXT];
    (void)facts_line(path, text);
    say(facts, key, text, arena_printf(&facts->arena, "nothing in %s", path));
}

struct fs_names facts_names(struct facts *facts, const char *folder, const char *prefix)
{
    struct fs_names names = {0};
    size_t n = 0;
    if (!fs_is_dir(folder) || fs_list(&facts->arena, folder, &names, ERR_IGNORED) < 0) {
        return (struct fs_names){0};
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (str_starts(str_of(names.items[idx]), str_of(prefix))) {
            names.items[n++] = names.items[idx];
        }
    }
    names.n = n;
    return names;
}

/* ---- of a process ---- */

/* The next word, which is cut off *rest. */
static void say_word(struct facts *facts, const char *key, struct str *rest, const char *why)
{
    size_t at = str_span(*rest, 0, " \t");
    size_t end = str_cspan(*rest, at, " \t\n");
    say(facts, key, str_z(&facts->arena, str_sub(*rest, at, end - at)), why);
    *rest = str_sub(*rest, end, rest->len);
}

/* What follows a label; nothing: it is not there. */
static struct str after(struct str text, const char *label)
{
    int64_t at = str_find(text, str_of(label));
    return at < 0 ? STR_EMPTY : str_sub(text, (size_t)at + strlen(label), text.len);
}

/* PREFIX.NAME.soft and .hard, PREFIX.caps, of a process by its folder in /proc. */
static void facts_limits(struct facts *facts, const char *prefix, const char *proc)
{
    static const struct {
        const char *label, *name;
    } LIMITS[] = {{"Max locked memory", "memlock"},
                  {"Max open files", "nofile"},
                  {"Max processes", "nproc"},
                  {"Max stack size", "stack"}};
    struct arena *arena = &facts->arena;
    char text[FACTS_TEXT];
    const char *path = arena_printf(arena, "%s/limits", proc);
    const char *why = arena_printf(arena, "no %s", path);
    struct str all = str_of(job_read_small(path, text, sizeof(text)) ? text : "");
    for (size_t idx = 0; idx < ARRAY_LEN(LIMITS); idx++) {
        struct str rest = after(all, LIMITS[idx].label);
        say_word(facts, arena_printf(arena, "%s.%s.soft", prefix, LIMITS[idx].name), &rest, why);
        say_word(facts, arena_printf(arena, "%s.%s.hard", prefix, LIMITS[idx].name), &rest, why);
    }
    path = arena_printf(arena, "%s/status", proc);
    struct str rest =
        after(str_of(job_read_small(path, text, sizeof(text)) ? text : ""), "\nCapEff:");
    say_word(facts, arena_printf(arena, "%s.caps", prefix), &rest,
             arena_printf(arena, "no %s", path));
}

/* ---- the machine: system, processors, memory, disk space. Source: proc(5), sysfs's ABI documents of the kernel. ---- */

#define SAID_MAX    (1u << 20)
#define PROC_MAX    (64u << 20) /* /proc/cpuinfo of the largest machines is some MB */
#define CPU         "/sys/devices/system/cpu"
#define SPACE_LIMIT (10 * NS_PER_S)

/* ---- files of /proc ---- */

static struct str read_proc(struct facts *facts, const char *path)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(PROC_MAX);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    char chunk[65536];
    ssize_t len;
    while (fd >= 0 && (len = read(fd, chunk, sizeof(chunk))) > 0) {
        strbuf_add(&text, chunk, (size_t)len);
    }
    return str_dup(&facts->arena, strbuf_str(&text));
}

/* "key : value" */
static struct str value_of(struct str line)
{
    int64_t at = str_find(line, STR_LIT(":"));
    return at < 0 ? STR_EMPTY : str_trim(str_sub(line, (size_t)at + 1, line.len));
}

/* ---- system ---- */

static void say_system(struct facts *facts)
{
    struct utsname name;
    struct str rest = read_proc(facts, "/etc/os-release"), line, os = STR_EMPTY;
    char redhat[FACTS_TEXT];
    if (uname(&name) == 0) {
        facts_printf(facts, "system.kernel", "%s %s", name.sysname, name.release);
        facts_put(facts, "system.arch", name.machine);
        facts_put(facts, "system.host", name.nodename);
    }
    while (str_next(&rest, '\n', &line)) {
        if (str_starts(line, STR_LIT("PRETTY_NAME="))) {
            os = str_trim(str_sub(line, 12, line.len));
        }
    }
    if (os.len >= 2 && (os.ptr[0] == '"' || os.ptr[0] == '\'')) {
        os = str_sub(os, 1, os.len - 2);
    }
    if (!os.len && facts_line("/etc/redhat-release", redhat)) {
        os = str_of(redhat);
    }
    say(facts, "system.os", str_z(&facts->arena, os), "no /etc/os-release");
    facts_printf(facts, "system.user_id", "%u", geteuid());
    facts_file(facts, "load.average", "/proc/loadavg");
}

/* ---- processors ---- */

/* Words, each once. */
struct cpu_words {
    struct str *items;
    size_t n, n_max;
};

static void add_word(struct cpu_words *words, struct str word)
{
    if (!str_is_in(word, words->items, words->n)) {
        VEC_PUSH(words, word);
    }
}

struct cpus {
    size_t n;
    struct str model, mhz, flags, package;
    struct cpu_words packages, cores;
};

static void take_first(struct str *kept, struct str value)
{
    *kept = kept->len ? *kept : value;
}

static void read_cpu_line(struct facts *facts, struct cpus *cpus, struct str line)
{
    struct str value = value_of(line);
    if (str_starts(line, STR_LIT("processor"))) {
        cpus->n++;
    } else if (str_starts(line, STR_LIT("model name")) || str_starts(line, STR_LIT("Hardware"))) {
        take_first(&cpus->model, value);
    } else if (str_starts(line, STR_LIT("cpu MHz"))) {
        take_first(&cpus->mhz, value);
    } else if (str_starts(line, STR_LIT("flags")) || str_starts(line, STR_LIT("Features"))) {
        take_first(&cpus->flags, value);
    } else if (str_starts(line, STR_LIT("physical id"))) {
        cpus->package = value;
        add_word(&cpus->packages, value);
    } else if (str_starts(line, STR_LIT("core id"))) {
        add_word(&cpus->cores,
                 str_printf(&facts->arena, "%.*s/%.*s", STR_ARG(cpus->package), STR_ARG(value)));
    }
}

static void say_count(struct facts *facts, const char *key, size_t n, const char *why)
{
    if (n) {
        facts_printf(facts, key, "%zu", n);
    } else {
        facts_unknown(facts, key, why);
    }
}

static void say_clocks(struct facts *facts)
{
    struct fs_names names = facts_names(facts, CPU, "cpu");
    struct cpu_words governors = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(FACTS_TEXT);
    char value[FACTS_TEXT];
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *path =
            arena_printf(&facts->arena, CPU "/%s/cpufreq/scaling_governor", names.items[idx]);
        if (facts_line(path, value) && value[0]) {
            add_word(&governors, str_dup(&facts->arena, str_of(value)));
        }
    }
    for (size_t idx = 0; idx < governors.n; idx++) {
        strbuf_printf(&text, "%s%.*s", idx ? " " : "", STR_ARG(governors.items[idx]));
    }
    VEC_RELEASE(&governors);
    say(facts, "cpu.governor", text.ptr, "no cpufreq: a virtual machine, or no driver for it");
    facts_file(facts, "cpu.max_khz", CPU "/cpu0/cpufreq/cpuinfo_max_freq");
    if (facts_line(CPU "/intel_pstate/no_turbo", value) && value[0]) {
        facts_put(facts, "cpu.turbo", strcmp(value, "0") == 0 ? "1" : "0");
    } else {
        facts_file(facts, "cpu.turbo", CPU "/cpufreq/boost");
    }
}

static size_t n_numbered(struct facts *facts, const char *folder, const char *prefix)
{
    struct fs_names names = facts_names(facts, folder, prefix);
    size_t n = 0;
    for (size_t idx = 0; idx < names.n; idx++) {
        char c = names.items[idx][strlen(prefix)];
        n += c >= '0' && c <= '9';
    }
    return n;
}

static void say_cpus(struct facts *facts)
{
    struct cpus cpus = {0};
    struct str rest = read_proc(facts, "/proc/cpuinfo"), line;
    while (str_next(&rest, '\n', &line)) {
        read_cpu_line(facts, &cpus, line);
    }
    say(facts, "cpu.model", str_z(&facts->arena, cpus.model), "not in /proc/cpuinfo");
    say_count(facts, "cpu.threads", cpus.n, "no /proc/cpuinfo");
    say(facts, "cpu.mhz", str_z(&facts->arena, cpus.mhz), "not in /proc/cpuinfo");
    say(facts, "cpu.flags", str_z(&facts->arena, cpus.flags), "not in /proc/cpuinfo");
    say_count(facts, "cpu.sockets", cpus.packages.n, "not in /proc/cpuinfo");
    say_count(facts, "cpu.cores", cpus.cores.n, "not in /proc/cpuinfo");
    VEC_RELEASE(&cpus.packages);
    VEC_RELEASE(&cpus.cores);
    say_count(facts, "cpu.usable", cpus_usable(), "the kernel does not say");
    say_clocks(facts);
    say_count(facts, "cpu.numa_nodes", n_numbered(facts, "/sys/devices/system/node", "node"),
              "no /sys/devices/system/node");
}

static void say_memory(struct facts *facts)
{
    static const struct {
        const char *label, *key;
    } ROWS[] = {{"MemTotal:", "memory.total_kb"},
                {"MemAvailable:", "memory.available_kb"},
                {"SwapTotal:", "memory.swap_kb"},
                {"SwapFree:", "memory.swap_free_kb"}};
    struct str rest = read_proc(facts, "/proc/meminfo"), line;
    while (str_next(&rest, '\n', &line)) {
        for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
            struct str value = value_of(line), number;
            if (str_starts(line, str_of(ROWS[idx].label)) && str_next(&value, ' ', &number)) {
                facts_put(facts, ROWS[idx].key, str_z(&facts->arena, number));
            }
        }
    }
}

/* ---- disk space ---- */

static void say_kb(struct facts *facts, const char *key, uint64_t blocks, uint64_t block_bytes)
{
    facts_printf(facts, key, "%" PRIu64, blocks * block_bytes / 1024);
}

/* The disk of a folder, or, where it is still to be made, of the first above it that exists. df comes first, with a limit: a
   dead file system blocks whoever looks at it. */
static void say_space(struct facts *facts, const char *name, const char *folder)
{
    static const char *const WHAT[] = {"size_kb", "free_kb", "kind", "inodes_free", "writable"};
    enum { SIZE, FREE, KIND, INODES, WRITABLE, N };
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    char *path = str_z(&facts->arena, str_of(folder)), *slash;
    const char *key[N];
    struct str line = STR_EMPTY, word;
    struct statvfs room;
    int status;
    for (size_t idx = 0; idx < N; idx++) {
        key[idx] = arena_printf(&facts->arena, "%s.%s", name, WHAT[idx]);
    }
    for (;;) {
        strbuf_clear(&said);
        status =
            tool_run((const char *const[]){"df", "-PkT", path, NULL}, SPACE_LIMIT, false, &said);
        bool is_there = status == TOOL_ABSENT ? fs_is_dir(path) : status != 1;
        if (is_there || !path[1] || !(slash = strrchr(path, '/'))) {
            break;
        }
        slash[slash == path] = '\0';
    }
    if ((status != 0 && status != TOOL_ABSENT) || statvfs(path, &room) < 0) {
        bool is_late = status == TOOL_LATE || status == TOOL_STUCK;
        for (size_t idx = 0; idx < N; idx++) {
            facts_unknown(facts, key[idx],
                          is_late ? "its file system does not answer within 10 s"
                                  : arena_printf(&facts->arena, "df: status %d", status));
        }
        return;
    }
    /* A head, then "DEVICE KIND ..."; the device may be called anything but have no blank. */
    for (struct str rest = str_trim(strbuf_str(&said)); str_next(&rest, '\n', &line);) {
    }
    (void)str_next(&line, ' ', &word);
    line = str_trim(line);
    say_word(facts, key[KIND], &line, "df does not say");
    say_kb(facts, key[SIZE], room.f_blocks, room.f_frsize);
    say_kb(facts, key[FREE], room.f_bavail, room.f_frsize);
    facts_put(facts, key[WRITABLE], faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? "1" : "0");
    if (room.f_files) {
        facts_printf(facts, key[INODES], "%" PRIu64, (uint64_t)room.f_favail);
    } else {
        facts_unknown(facts, key[INODES], "the file system does not count them");
    }
}

static void say_room(struct facts *facts, const char *work_folder)
{
    facts_put(facts, "disk.work.path", work_folder);
    say_space(facts, "disk.work", work_folder);
    if (fs_is_dir("/dev/shm")) {
        say_space(facts, "shm", "/dev/shm");
    } else {
        facts_unknown(facts, "shm.size_kb", "no /dev/shm");
    }
}

static void facts_of_machine(struct facts *facts, const char *work_folder)
{
    bool is_one = fs_is_dir("/sys/fs/cgroup/memory") || fs_is_dir("/sys/fs/cgroup/cpu");
    say_system(facts);
    say_cpus(facts);
    say_memory(facts);
    say_room(facts, work_folder);
    facts_limits(facts, "limit", "/proc/self");
    say(facts, "cgroup.version",
        fs_exists("/sys/fs/cgroup/cgroup.controllers") ? "2"
        : is_one                                       ? "1"
                                                       : "",
        "no /sys/fs/cgroup");
}

/* The container engines: which of them answer, and their configuration. */

#define TOOL_LIMIT (30 * NS_PER_S)
#define DOCKER_INFO                                                                                \
    "{{.CgroupVersion}}|{{.CgroupDriver}}|{{.Driver}}|{{range $k, $v := .Runtimes}}{{$k}} {{end}}"
#define PODMAN_INFO                                                                                \
    "{{.Host.CgroupsVersion}}|{{.Host.CgroupManager}}|{{.Store.GraphDriverName}}|"                 \
    "{{.Host.OCIRuntime.Name}}"

static bool is_asked(const struct facts *facts, const char *name)
{
    struct str rest = str_of(facts->engines), word;
    bool is_named = !rest.len;
    while (str_next(&rest, ' ', &word)) {
        is_named = is_named || str_eq_z(word, name);
    }
    return is_named;
}

static const char *trimmed(struct facts *facts, const struct strbuf *said)
{
    return str_z(&facts->arena, str_trim(strbuf_str(said)));
}

static bool is_late(int status)
{
    return status == TOOL_LATE || status == TOOL_STUCK;
}

/* A fact that a program says, into said. Not 0: it is not known, which is put down. */
static int ask(struct facts *facts, const char *key, const char *const *argv, struct strbuf *said)
{
    int status = tool_run(argv, TOOL_LIMIT, true, said);
    if (status != 0) {
        facts_unknown(facts, key,
                      is_late(status) ? "does not answer within 30 s"
                                      : arena_printf(&facts->arena, "status %d: %s", status,
                                                     trimmed(facts, said)));
    }
    return status;
}

/* engine.NAME.version. True: it answers. */
static bool say_version(struct facts *facts, const char *name, const char *const *argv)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *key = arena_printf(&facts->arena, "engine.%s.version", name);
    if (!is_asked(facts, name)) {
        return false;
    }
    if (!tool_is_there(argv[0])) {
        facts_unknown(facts, key, "not installed");
        return false;
    }
    if (ask(facts, key, argv, &said) != 0) {
        return false;
    }
    say(facts, key, trimmed(facts, &said), "it says nothing");
    return trimmed(facts, &said)[0];
}

static void say_info(struct facts *facts, const char *name, const char *form)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *key = arena_printf(&facts->arena, "engine.%s.info", name);
    if (ask(facts, key, (const char *const[]){name, "info", "--format", form, NULL}, &said) == 0) {
        say(facts, key, trimmed(facts, &said), "it says nothing");
    }
}

/* The limits of dockerd's process, which bound those of its containers. */
static void say_daemon(struct facts *facts)
{
    char text[FACTS_TEXT];
    const char *pid = facts_line("/var/run/docker.pid", text) && text[0] ? text : NULL;
    struct fs_names names = facts_names(facts, "/proc", "");
    for (size_t idx = 0; idx < names.n && !pid; idx++) {
        char comm[FACTS_TEXT];
        if (facts_line(arena_printf(&facts->arena, "/proc/%s/comm", names.items[idx]), comm) &&
            strcmp(comm, "dockerd") == 0) {
            pid = names.items[idx];
        }
    }
    facts_limits(facts, "engine.docker",
                 arena_printf(&facts->arena, "/proc/%s", pid ? pid : "none"));
}

static void say_cdi(struct facts *facts)
{
    static const char *const FOLDERS[] = {"/etc/cdi", "/var/run/cdi"};
    CLEANUP(strbuf) struct strbuf text = STRBUF(SAID_MAX);
    for (size_t at = 0; at < ARRAY_LEN(FOLDERS); at++) {
        struct fs_names names = facts_names(facts, FOLDERS[at], "");
        for (size_t idx = 0; idx < names.n; idx++) {
            strbuf_printf(&text, "%s%s", text.len ? " " : "", names.items[idx]);
        }
    }
    facts_put(facts, "cdi.specs", text.ptr);
}

static void facts_of_engines(struct facts *facts)
{
    static const char *const DOCKER[] = {"docker", "version", "--format", "{{.Server.Version}}",
                                         NULL};
    static const char *const PODMAN[] = {"podman", "version", "--format", "{{.Client.Version}}",
                                         NULL};
    static const char *const CTK[] = {"nvidia-ctk", "--version", NULL};
    if (say_version(facts, "docker", DOCKER)) {
        say_info(facts, "docker", DOCKER_INFO);
        say_daemon(facts);
    }
    if (say_version(facts, "podman", PODMAN)) {
        say_info(facts, "podman", PODMAN_INFO);
    }
    (void)say_version(facts, "nvidia-ctk", CTK);
    say_cdi(facts);
}

/* The GPUs, as nvidia-smi prints them: the lines go to the orchestrator as they are (report/node_facts.c reads them).
   Source: nvidia-smi --help-query-gpu, R410 to R610. */

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

static int query(struct facts *facts, const char *name, const char *fields)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    const char *what = arena_printf(&facts->arena, "--query-gpu=index,%s", fields);
    const char *key = arena_printf(&facts->arena, "smi.%s", name);
    int status =
        ask(facts, key, (const char *const[]){"nvidia-smi", "--format=csv", what, NULL}, &said);
    if (status == 0) {
        say_lines(facts, key, &said);
    }
    return status;
}

static int say_banner(struct facts *facts)
{
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    int status = ask(facts, "nvidia.smi", (const char *const[]){"nvidia-smi", NULL}, &said);
    struct str rest = strbuf_str(&said), line = STR_EMPTY;
    while (str_next(&rest, '\n', &line) && str_find(line, STR_LIT("CUDA")) < 0) {
        line = STR_EMPTY;
    }
    if (status == 0) {
        facts_put(facts, "nvidia.smi", str_z(&facts->arena, line));
    }
    return status;
}

static void say_processes(struct facts *facts)
{
    static const char *const ARGV[] = {"nvidia-smi", "--format=csv,noheader",
                                       "--query-compute-apps=pid,used_memory", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    int status = ask(facts, "nvidia.processes", ARGV, &said);
    struct str rest = strbuf_str(&said), line;
    size_t n = 0;
    while (str_next(&rest, '\n', &line)) {
        n += line.len && line.ptr[0] >= '0' && line.ptr[0] <= '9';
    }
    if (status == 0) {
        facts_printf(facts, "nvidia.processes", "%zu", n);
    }
}

static void say_topology(struct facts *facts)
{
    static const char *const ARGV[] = {"nvidia-smi", "topo", "-m", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(SAID_MAX);
    if (ask(facts, "topo", ARGV, &said) == 0) {
        say_lines(facts, "topo", &said);
    }
}

/* A field that an old driver does not know fails the whole query: then it is asked group by group. If it does not answer it
   is not asked again: a GPU that hangs delays every call. */
static void ask_smi(struct facts *facts)
{
    static const char *const GROUPS[][2] = {{"id", ID},       {"cap", CAP}, {"clock", CLOCK},
                                            {"app", APP},     {"ecc", ECC}, {"power", POWER},
                                            {"state", STATE}, {"mig", MIG}, {"pcie", PCIE}};
    static const char LATE[] = "nvidia-smi does not answer";
    bool has_hung = is_late(say_banner(facts));
    int status = has_hung ? TOOL_LATE : query(facts, "all", FIELDS);
    if (status != 0) {
        status = is_late(status) ? status : query(facts, GROUPS[0][0], GROUPS[0][1]);
        for (size_t idx = 1; idx < ARRAY_LEN(GROUPS) && status == 0; idx++) {
            status = is_late(query(facts, GROUPS[idx][0], GROUPS[idx][1])) ? TOOL_LATE : 0;
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

static void facts_of_gpus(struct facts *facts)
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

/* Interfaces and InfiniBand ports. Source: sysfs-class-net and sysfs-class-infiniband in the kernel's ABI documents. */

#define NET           "/sys/class/net"
#define IB            "/sys/class/infiniband"
#define TYPE_LOOPBACK "772"

static const char *key_of(struct facts *facts, const char *name, const char *what)
{
    return arena_printf(&facts->arena, "net.%s.%s", name, what);
}

static void say_kind(struct facts *facts, const char *name, const char *folder)
{
    char text[FACTS_TEXT];
    ssize_t len =
        readlink(arena_printf(&facts->arena, "%s/device/driver", folder), text, sizeof(text) - 1);
    const char *kind = "virtual";
    if (len > 0) {
        text[len] = '\0';
        facts_put(facts, key_of(facts, name, "driver"), basename(text));
        kind = "physical";
    } else if (fs_is_dir(arena_printf(&facts->arena, "%s/bridge", folder))) {
        kind = "bridge";
    } else if (fs_is_dir(arena_printf(&facts->arena, "%s/bonding", folder))) {
        kind = "bond";
    } else if (facts_line(arena_printf(&facts->arena, "%s/type", folder), text) &&
               strcmp(text, TYPE_LOOPBACK) == 0) {
        kind = "loopback";
    }
    facts_put(facts, key_of(facts, name, "kind"), kind);
}

static const char *addresses_of(struct facts *facts, const struct ifaddrs *all, const char *name)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SAID_MAX);
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        const void *bytes = NULL;
        int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(at->ifa_name, name) != 0) {
            continue;
        }
        if (family == AF_INET) {
            bytes = &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
        } else if (family == AF_INET6) {
            bytes = &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
        }
        if (bytes && inet_ntop(family, bytes, address, sizeof(address))) {
            strbuf_printf(&text, "%s%s", text.len ? " " : "", address);
        }
    }
    return str_z(&facts->arena, strbuf_str(&text));
}

static void say_interface(struct facts *facts, const struct ifaddrs *all, const char *name)
{
    static const char *const FILES[][2] = {
        {"index", "ifindex"}, {"state", "operstate"}, {"mtu", "mtu"}, {"numa", "device/numa_node"}};
    const char *folder = arena_printf(&facts->arena, NET "/%s", name);
    char speed[FACTS_TEXT];
    if (!fs_exists(arena_printf(&facts->arena, "%s/ifindex", folder))) {
        return;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(FILES); idx++) {
        const char *path = arena_printf(&facts->arena, "%s/%s", folder, FILES[idx][1]);
        if (access(path, R_OK) == 0) {
            facts_file(facts, key_of(facts, name, FILES[idx][0]), path);
        }
    }
    (void)facts_line(arena_printf(&facts->arena, "%s/speed", folder), speed);
    say(facts, key_of(facts, name, "speed_mbit"), speed[0] == '-' ? "" : speed, "it does not say");
    say_kind(facts, name, folder);
    facts_put(facts, key_of(facts, name, "address"), addresses_of(facts, all, name));
}

static void say_infiniband(struct facts *facts)
{
    struct fs_names devices = facts_names(facts, IB, "");
    size_t n = 0;
    for (size_t at = 0; at < devices.n; at++) {
        const char *folder = arena_printf(&facts->arena, IB "/%s/ports", devices.items[at]);
        struct fs_names ports = facts_names(facts, folder, "");
        for (size_t idx = 0; idx < ports.n; idx++) {
            static const char *const WHAT[] = {"state", "rate", "link_layer"};
            for (size_t what = 0; what < ARRAY_LEN(WHAT); what++) {
                facts_file(
                    facts,
                    arena_printf(&facts->arena, "ib.%s.%s.%s", devices.items[at], ports.items[idx],
                                 WHAT[what]),
                    arena_printf(&facts->arena, "%s/%s/%s", folder, ports.items[idx], WHAT[what]));
            }
            n++;
        }
    }
    facts_printf(facts, "ib.ports", "%zu", n);
    facts_put(facts, "ib.device", fs_is_dir("/dev/infiniband") ? "1" : "0");
}

static void facts_of_network(struct facts *facts)
{
    struct fs_names names = facts_names(facts, NET, "");
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0) {
        all = NULL;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        say_interface(facts, all, names.items[idx]);
    }
    if (all) {
        freeifaddrs(all);
    }
    say_infiniband(facts);
}

/* ---- all ---- */

static void say_environment(struct facts *facts)
{
    for (char **entry = environ; *entry; entry++) {
        struct str value = str_of(*entry), name;
        (void)str_next(&value, '=', &name);
        if (value.ptr && secret_may_keep(name, value)) { /* nothing else leaves the node */
            facts_put(facts, arena_printf(&facts->arena, "env.%.*s", STR_ARG(name)), value.ptr);
        }
    }
}

int serve_facts(struct server *server, const struct node_request *request, struct strbuf *text)
{
    struct facts facts = {.out = text};
    if (request->n_fields != 1) {
        return serve_bad(text);
    }
    facts.engines = request->fields[0].ptr;
    facts_of_machine(&facts, server->work_folder);
    facts_of_engines(&facts);
    facts_of_gpus(&facts);
    facts_of_network(&facts);
    say_environment(&facts);
    arena_release(&facts.arena);
    return text->is_full ? serve_failed(text, "more facts than an answer can hold", NULL) : 0;
}
