/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/environment.h"

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/secret.h"
#include "codec/digest.h"
#include "codec/json_document.h"
#include "sys/child.h"

#define TOOL_DEADLINE_NS (10 * NS_PER_S)
#define TOOL_OUTPUT_MAX  65536
#define PROC_TEXT_BYTES  262144

/* Files below /proc and /sys say size 0, so they are read until their end. */
static struct str read_virtual(struct arena *arena, const char *path)
{
    char *text = arena_array(arena, char, PROC_TEXT_BYTES);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, PROC_TEXT_BYTES, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    return len ? (struct str){text, len} : STR_EMPTY;
}

/* "key   : value" of the first such line, or NULL. */
static struct str value_of(struct str text, const char *key)
{
    struct str rest = text;
    struct str line;
    while (str_next(&rest, '\n', &line)) {
        struct str name = STR_EMPTY;
        struct str value = line;
        if (str_next(&value, ':', &name) && value.ptr && str_eq_z(str_trim(name), key)) {
            return str_trim(value);
        }
    }
    return STR_EMPTY;
}

static int64_t count_lines(struct str text, const char *key)
{
    struct str rest = text;
    struct str line;
    int64_t n = 0;
    while (str_next(&rest, '\n', &line)) {
        struct str name = STR_EMPTY;
        n += str_next(&line, ':', &name) && str_eq_z(str_trim(name), key);
    }
    return n;
}

static struct str os_name(struct arena *arena)
{
    struct str rest = read_virtual(arena, "/etc/os-release");
    struct str line;
    while (str_next(&rest, '\n', &line)) {
        if (str_starts(line, STR_LIT("PRETTY_NAME="))) {
            struct str value = str_sub(line, 12, line.len);
            bool is_quoted = value.len >= 2 && value.ptr[0] == '"';
            return is_quoted ? str_sub(value, 1, value.len - 2) : value;
        }
    }
    return STR_EMPTY;
}

int64_t environment_gpus(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names names = {0};
    struct err ignored = {0};
    if (fs_list(&arena, "/proc/driver/nvidia/gpus", &names, &ignored) < 0) {
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

static struct str gpu_name(struct arena *arena)
{
    struct fs_names names = {0};
    struct err ignored = {0};
    if (fs_list(arena, "/proc/driver/nvidia/gpus", &names, &ignored) < 0 || names.n == 0) {
        return STR_EMPTY;
    }
    return value_of(
        read_virtual(
            arena, arena_printf(arena, "/proc/driver/nvidia/gpus/%s/information", names.items[0])),
        "Model");
}

/* ---- what others compare: the closed list of condition names ---- */

static void put_number_or_null(struct json_out *out, struct arena *arena, const char *key,
                               int64_t value)
{
    jw_z(out, key, value > 0 ? arena_printf(arena, "%lld", (long long)value) : NULL);
}

static struct environment_machine machine_of_here(struct arena *arena)
{
    struct utsname name;
    struct str cpuinfo = read_virtual(arena, "/proc/cpuinfo");
    bool is_known = uname(&name) == 0;
    struct environment_machine machine = {
        .gpu = gpu_name(arena),
        .cpu = value_of(cpuinfo, "model name"),
        .os = os_name(arena),
        .driver = first_line(read_virtual(arena, "/sys/module/nvidia/version")),
        .cpu_flags = value_of(cpuinfo, "flags"),
        .cpu_mhz = value_of(cpuinfo, "cpu MHz"),
        .cpu_governor = first_line(
            read_virtual(arena, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        .cpu_max_khz = first_line(
            read_virtual(arena, "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")),
        .load = first_line(read_virtual(arena, "/proc/loadavg")),
        .cpu_threads = count_lines(cpuinfo, "processor"),
        .cpus_online = (int64_t)sysconf(_SC_NPROCESSORS_ONLN),
        .memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE),
        .gpus = environment_gpus()};
    if (is_known) {
        machine.kernel = str_of(arena_printf(arena, "%s %s", name.sysname, name.release));
        machine.architecture = str_of(arena_printf(arena, "%s", name.machine));
    }
    return machine;
}

void environment_put_machine(struct json_out *out, struct arena *arena,
                             const struct environment_machine *machine)
{
    jw_object(out, "conditions");
    jw_str(out, "gpu", machine->gpu);
    jw_str(out, "cpu", machine->cpu);
    put_number_or_null(out, arena, "cpu_cores", machine->cpu_threads);
    put_number_or_null(out, arena, "memory_gb", (machine->memory_bytes + (1 << 29)) >> 30);
    jw_str(out, "os", machine->os);
    jw_str(out, "driver", machine->driver);
    jw_end_object(out);
    jw_object(out, "machine");
    jw_str(out, "kernel", machine->kernel);
    jw_str(out, "architecture", machine->architecture);
    jw_str(out, "cpu_flags", machine->cpu_flags);
    jw_str(out, "cpu_mhz", machine->cpu_mhz);
    jw_str(out, "cpu_governor", machine->cpu_governor);
    jw_str(out, "cpu_max_khz", machine->cpu_max_khz);
    jw_i64(out, "cpus_online", machine->cpus_online);
    jw_i64(out, "memory_bytes", machine->memory_bytes);
    jw_i64(out, "gpus", machine->gpus);
    jw_str(out, "load_before", machine->load);
    jw_end_object(out);
}

static void put_variables(struct json_out *out)
{
    jw_object(out, "variables");
    for (char **at = environ; *at; at++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct str rest = str_of(*at);
        struct str name = STR_EMPTY;
        if (str_next(&rest, '=', &name) && secret_may_keep(name, rest)) {
            jw_str(out, str_z(&arena, name), rest.ptr ? rest : STR_LIT(""));
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
    struct err ignored = {0};
    int status = -1;
    if (child_capture(opts->clock, argv, TOOL_DEADLINE_NS, &buf, &status, &ignored) < 0 ||
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
    const char *slash = strrchr(path, '/');
    jw_object(out, NULL);
    jw_z(out, "name", slash ? slash + 1 : path);
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

int environment_collect(const struct environment_opts *opts, struct strbuf *buf, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct environment_machine machine = machine_of_here(&arena);
    struct json_out out;
    char time[RFC3339_MAX];
    clock_rfc3339(opts->clock.wall_ns(opts->clock.ctx), time);
    jw_document(&out, buf);
    jw_z(&out, "node", "local");
    jw_z(&out, "collected_at", time);
    jw_z(&out, "runtime", "none");
    jw_null(&out, "image");
    environment_put_machine(&out, &arena, &machine);
    put_variables(&out);
    jw_object(&out, "software");
    jw_z(&out, "reperf", REPERF_VERSION);
    put_commit(&out, &arena, opts);
    jw_z(&out, "compiler", __VERSION__);
    jw_z(&out, "libc", gnu_get_libc_version());
    jw_array(&out, "programs");
    if (put_program(&out, &arena, opts, opts->self, err) < 0 ||
        (opts->train_path && put_program(&out, &arena, opts, opts->train_path, err) < 0)) {
        return -1;
    }
    jw_end_array(&out);
    jw_end_object(&out);
    if (opts->command) {
        jw_object(&out, "command");
        json_encode(&out, CODE_ROWS, CODE_N, opts->command);
        jw_end_object(&out);
    }
    jw_end_object(&out);
    return buf->is_full
               ? err_set(err, ERR_INTERNAL, "environment: more than %zu bytes", buf->cap_bytes)
               : 0;
}
