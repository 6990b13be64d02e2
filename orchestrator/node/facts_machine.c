/* SPDX-License-Identifier: Apache-2.0 */
/* The machine itself: system, processors, memory, disk space, limits. Source: proc(5), sysfs's ABI documents of the
   kernel. */
#include "base/base.h"

#include "node/facts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/vec.h"
#include "node/tool.h"

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
    facts_say(facts, "system.os", str_z(&facts->arena, os), "no /etc/os-release");
    facts_printf(facts, "system.user_id", "%u", geteuid());
    facts_file(facts, "load.average", "/proc/loadavg");
}

/* ---- processors ---- */

struct cpu_words { /* different ones */
    struct str *items;
    size_t n, n_max;
};

static void add_word(struct cpu_words *words, struct str word)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        if (str_eq(words->items[idx], word)) {
            return;
        }
    }
    VEC_PUSH(words, word);
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
        add_word(&cpus->cores, str_of(arena_printf(&facts->arena, "%.*s/%.*s",
                                                   STR_ARG(cpus->package), STR_ARG(value))));
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
    facts_say(facts, "cpu.governor", text.ptr,
              "no cpufreq: a virtual machine, or no driver for it");
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
    facts_say(facts, "cpu.model", str_z(&facts->arena, cpus.model), "not in /proc/cpuinfo");
    say_count(facts, "cpu.threads", cpus.n, "no /proc/cpuinfo");
    facts_say(facts, "cpu.mhz", str_z(&facts->arena, cpus.mhz), "not in /proc/cpuinfo");
    facts_say(facts, "cpu.flags", str_z(&facts->arena, cpus.flags), "not in /proc/cpuinfo");
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

/* Decodes a mount point as the kernel writes it: blanks and the like as \ooo. */
static const char *unescape(struct arena *arena, struct str word)
{
    char *text = str_z(arena, word);
    char *to = text;
    for (const char *at = text; *at; at++) {
        bool is_octal = at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' &&
                        at[2] <= '7' && at[3] >= '0' && at[3] <= '7';
        *to++ = is_octal ? (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + at[3] - '0') : *at;
        at += is_octal ? 3 : 0;
    }
    *to = '\0';
    return text;
}

/* The type of the mount that holds a path without symlinks: the longest mount point that is a prefix, the last of
   several. */
static const char *kind_of(struct facts *facts, const char *path)
{
    struct str rest = read_proc(facts, "/proc/self/mounts"), line;
    const char *kind = "";
    size_t best = 0;
    while (str_next(&rest, '\n', &line)) {
        struct str device, point, type;
        if (!str_next(&line, ' ', &device) || !str_next(&line, ' ', &point) ||
            !str_next(&line, ' ', &type)) {
            continue;
        }
        const char *at = unescape(&facts->arena, point);
        size_t len = strcmp(at, "/") == 0 ? 0 : strlen(at);
        if (len + 1 >= best && strncmp(path, at, len) == 0 &&
            (path[len] == '/' || path[len] == '\0')) {
            kind = str_z(&facts->arena, type);
            best = len + 1;
        }
    }
    return kind;
}

struct space {
    struct facts *facts;
    const char *key, *path;
    bool is_to_be; /* the folder may not exist yet: then the first existing one above it */
};

/* In a child process, because a dead file system may block it for ever. */
static int look_at_space(void *ctx)
{
    const struct space *space = ctx;
    CLEANUP(strbuf) struct strbuf text;
    struct facts facts = {.out = &text};
    char *path CLEANUP(free) = xstrdup(space->path);
    char *whole CLEANUP(free) = NULL;
    struct statvfs room;
    struct err ignored = {0};
    strbuf_init(&text, 1u << 16);
    while (space->is_to_be && path[1] && !fs_is_dir(path)) {
        char *slash = strrchr(path, '/');
        slash[slash == path] = '\0';
    }
    whole = realpath(path, NULL);
    if (statvfs(path, &room) < 0) {
        return 1;
    }
    if (space->is_to_be) {
        facts_put(&facts, arena_printf(&facts.arena, "%s.writable", space->key),
                  faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ? "1" : "0");
    }
    const char *key = space->key;
    uint64_t unit = room.f_frsize;
    facts_printf(&facts, arena_printf(&facts.arena, "%s.size_kb", key), "%" PRIu64,
                 (uint64_t)room.f_blocks * unit / 1024);
    facts_printf(&facts, arena_printf(&facts.arena, "%s.free_kb", key), "%" PRIu64,
                 (uint64_t)room.f_bavail * unit / 1024);
    facts_say(&facts, arena_printf(&facts.arena, "%s.kind", key),
              kind_of(&facts, whole ? whole : path), "not in /proc/self/mounts");
    if (room.f_files) {
        facts_printf(&facts, arena_printf(&facts.arena, "%s.inodes_free", key), "%" PRIu64,
                     (uint64_t)room.f_favail);
    } else {
        facts_unknown(&facts, arena_printf(&facts.arena, "%s.inodes_free", key),
                      "the file system does not count them");
    }
    arena_release(&facts.arena);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "the facts", &ignored) < 0;
}

static void say_space(struct space space)
{
    static const char *const NAMES[] = {"size_kb", "free_kb", "kind", "inodes_free", "writable"};
    struct facts *facts = space.facts;
    size_t before = facts->out->len;
    int status = tool_call(look_at_space, &space, SPACE_LIMIT, facts->out);
    if (status == 0) {
        return;
    }
    facts->out->len = before;
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES) - !space.is_to_be; idx++) {
        facts_unknown(facts, arena_printf(&facts->arena, "%s.%s", space.key, NAMES[idx]),
                      status == TOOL_LATE || status == TOOL_STUCK
                          ? "its file system does not answer within 10 s"
                          : arena_printf(&facts->arena, "nothing is known about %s", space.path));
    }
}

static void say_room(struct facts *facts, const char *work_folder)
{
    facts_put(facts, "disk.work.path", work_folder);
    say_space((struct space){facts, "disk.work", work_folder, true});
    if (fs_is_dir("/dev/shm")) {
        say_space((struct space){facts, "shm", "/dev/shm", false});
    } else {
        facts_unknown(facts, "shm.size_kb", "no /dev/shm");
    }
}

void facts_of_machine(struct facts *facts, const char *work_folder)
{
    bool is_one = fs_is_dir("/sys/fs/cgroup/memory") || fs_is_dir("/sys/fs/cgroup/cpu");
    say_system(facts);
    say_cpus(facts);
    say_memory(facts);
    say_room(facts, work_folder);
    facts_limits(facts, "limit", "/proc/self");
    facts_say(facts, "cgroup.version",
              fs_exists("/sys/fs/cgroup/cgroup.controllers") ? "2"
              : is_one                                       ? "1"
                                                             : "",
              "no /sys/fs/cgroup");
}
