/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `docker run` lines. Names of options, which of them take a value, and how sizes and limits are written. Source: Docker's
   command line reference, "docker container run" (docs.docker.com, read 2026-11). */
#include "base/base.h"

#include "report/container.h"

#include "codec/pattern.h"

#define BYTES_MAX (1LL << 53)

enum what {
    W_OTHER,    /* not understood */
    W_LEFT_OUT, /* ours to choose */
    W_CAP,
    W_CPUSET,
    W_DEVICE,
    W_ENV,
    W_GPUS,
    W_IPC,
    W_MEMORY,
    W_NET,
    W_PID,
    W_PRIVILEGED,
    W_RUNTIME,
    W_SECURITY,
    W_SHM,
    W_ULIMIT,
    W_WORKDIR,
};

struct option {
    const char *names; /* without their dashes; a single letter is a letter */
    enum what what;
    bool is_claim; /* takes no value, but for =true and =false */
};

/* The options of W_OTHER take a value too, which must not be taken for the image. */
static const struct option OPTIONS[] = {
    {"cap-add", W_CAP, false},
    {"cpuset-cpus", W_CPUSET, false},
    {"device", W_DEVICE, false},
    {"env e", W_ENV, false},
    {"gpus", W_GPUS, false},
    {"ipc", W_IPC, false},
    {"memory m", W_MEMORY, false},
    {"net network", W_NET, false},
    {"pid", W_PID, false},
    {"privileged", W_PRIVILEGED, true},
    {"runtime", W_RUNTIME, false},
    {"security-opt", W_SECURITY, false},
    {"shm-size", W_SHM, false},
    {"ulimit", W_ULIMIT, false},
    {"workdir w", W_WORKDIR, false},
    {"detach d init interactive i quiet q rm sig-proxy tty t", W_LEFT_OUT, true},
    {"attach a cidfile detach-keys label l label-file log-driver log-opt mount name pull restart "
     "stop-timeout volume v volume-driver",
     W_LEFT_OUT, false},
    {"publish-all P", W_OTHER, true},
    {"add-host annotation blkio-weight blkio-weight-device c cap-drop cgroup-parent cgroupns "
     "cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-mems "
     "device-cgroup-rule device-read-bps device-read-iops device-write-bps device-write-iops dns "
     "dns-option dns-search domainname entrypoint env-file expose group-add h health-cmd "
     "health-interval health-retries health-start-interval health-start-period health-timeout "
     "hostname ip ip6 isolation kernel-memory link link-local-ip mac-address memory-reservation "
     "memory-swap memory-swappiness net-alias network-alias oom-score-adj p pids-limit platform "
     "publish stop-signal storage-opt sysctl tmpfs u user userns uts volumes-from",
     W_OTHER, false},
};
static const struct option UNKNOWN = {"", W_OTHER, true};

/* "64g", "512MB", "1GiB", "67108864": all powers of 1024. */
static bool size_of(struct str text, int64_t *ret_bytes)
{
    static const char UNITS[] = "bkmgtp";
    struct err err = {0};
    int64_t value, scale = 1;
    size_t digits = str_span(text, 0, DIGITS);
    struct str unit = str_sub(text, digits, SIZE_MAX);
    if (str_to_i64(str_sub(text, 0, digits), 1, BYTES_MAX, &value, &err) < 0 || unit.len > 3) {
        return false;
    }
    if (unit.len) {
        const char *found = memchr(UNITS, unit.ptr[0] | 0x20, sizeof(UNITS) - 1);
        struct str rest = str_sub(unit, 1, SIZE_MAX);
        if (!found || (rest.len && !str_eq_z(rest, "b") && !str_eq_z(rest, "B") &&
                       !str_eq_z(rest, "ib") && !str_eq_z(rest, "iB"))) {
            return false;
        }
        scale = 1LL << (10 * (found - UNITS));
    }
    if (__builtin_mul_overflow(value, scale, &value) || value > BYTES_MAX) {
        return false;
    }
    *ret_bytes = value;
    return true;
}

/* "memlock=-1", "stack=67108864", "nofile=1024:1024" */
static bool take_ulimit(struct container_flags *flags, struct str text)
{
    static const struct {
        const char *name;
        size_t at;
    } LIMITS[] = {{"memlock", offsetof(struct container_flags, memlock_bytes)},
                  {"stack", offsetof(struct container_flags, stack_bytes)},
                  {"nofile", offsetof(struct container_flags, n_files)},
                  {"nproc", offsetof(struct container_flags, n_processes)}};
    struct err err = {0};
    struct str name, soft;
    int64_t value;
    if (!str_next(&text, '=', &name) || !text.ptr || !str_next(&text, ':', &soft) ||
        (text.ptr && !str_eq(text, soft)) ||
        str_to_i64(soft, LIMIT_UNLIMITED, BYTES_MAX, &value, &err) < 0 || value == 0) {
        return false; /* the flags cannot express a limit of 0 or a different hard limit */
    }
    for (size_t idx = 0; idx < ARRAY_LEN(LIMITS); idx++) {
        if (str_eq_z(name, LIMITS[idx].name)) {
            memcpy((char *)flags + LIMITS[idx].at, &value, sizeof(value));
            return true;
        }
    }
    return false;
}

static bool take_host(bool *claim, struct str value, const char *usual)
{
    *claim = *claim || str_eq_z(value, "host");
    return str_eq_z(value, "host") || str_eq_z(value, usual);
}

/* A value that ends a line is none of them. */
static bool has_form(struct patterns *patterns, const char *form, struct str value)
{
    return !str_ends(value, STR_LIT("\n")) && patterns_find(patterns, form, value, NULL, 0);
}

static bool take_one(struct patterns *patterns, const char *form, struct str value, struct str *ret)
{
    bool is_valid = has_form(patterns, form, value);
    *ret = is_valid ? value : *ret;
    return is_valid;
}

static bool take_to(struct str *items, size_t *n, struct str value, bool is_valid)
{
    if (is_valid && str_is_in(value, items, *n)) {
        return true;
    }
    if (is_valid && *n < CONTAINER_LIST_MAX) {
        items[(*n)++] = value;
        return true;
    }
    return false;
}

/* Room for as many items as there may be, after those that there are. */
static void make_room(struct arena *arena, struct container_flags *flags)
{
    const struct {
        struct str **items;
        size_t n;
    } LISTS[] = {{&flags->devices, flags->n_devices},
                 {&flags->caps, flags->n_caps},
                 {&flags->security, flags->n_security},
                 {&flags->env, flags->n_env},
                 {&flags->not_understood, flags->n_not_understood}};
    for (size_t idx = 0; idx < ARRAY_LEN(LISTS); idx++) {
        struct str *items = arena_array(arena, struct str, CONTAINER_LIST_MAX);
        for (size_t at = 0; at < LISTS[idx].n; at++) {
            items[at] = (*LISTS[idx].items)[at];
        }
        *LISTS[idx].items = items;
    }
}

/* False: not understood. */
static bool take_value(struct patterns *p, struct container_flags *flags, enum what what,
                       struct str value)
{
    switch (what) {
    case W_CAP:
        return take_to(flags->caps, &flags->n_caps, value, has_form(p, CONTAINER_CAP, value));
    case W_CPUSET:
        return take_one(p, CONTAINER_CPUSET, value, &flags->cpuset);
    case W_DEVICE:
        return take_to(flags->devices, &flags->n_devices, value,
                       has_form(p, CONTAINER_DEVICE, value));
    case W_ENV:
        return take_to(flags->env, &flags->n_env, value, has_form(p, CONTAINER_ENV, value));
    case W_GPUS:
        /* Some of them: the plan says which ones, so that the choice is shown. */
        flags->wants_gpus = true;
        return str_eq_z(value, "all");
    case W_IPC:
        return take_host(&flags->is_host_ipc, value, "private");
    case W_MEMORY:
        return size_of(value, &flags->memory_bytes);
    case W_NET:
        return take_host(&flags->is_host_net, value, "bridge");
    case W_PID:
        return take_host(&flags->is_host_pid, value, "private");
    case W_RUNTIME:
        flags->wants_gpus = flags->wants_gpus || str_eq_z(value, "nvidia");
        return str_eq_z(value, "nvidia") || str_eq_z(value, "runc");
    case W_SECURITY:
        return take_to(flags->security, &flags->n_security, value,
                       has_form(p, CONTAINER_SECURITY, value));
    case W_SHM:
        return size_of(value, &flags->shm_bytes);
    case W_ULIMIT:
        return take_ulimit(flags, value);
    case W_WORKDIR:
        return take_one(p, CONTAINER_PATH, value, &flags->workdir);
    case W_PRIVILEGED:
        flags->is_privileged = !str_eq_z(value, "false");
        return str_eq_z(value, "true") || str_eq_z(value, "false");
    case W_OTHER:
    case W_LEFT_OUT:
        break;
    }
    return false;
}

static const struct option *option_of_name(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(OPTIONS); idx++) {
        struct str names = str_of(OPTIONS[idx].names), each;
        while (str_next(&names, ' ', &each)) {
            if (str_eq(name, each)) {
                return &OPTIONS[idx];
            }
        }
    }
    return &UNKNOWN;
}

/* -itv X, -e=A=1, -m4g: letters that take no value, then perhaps one that does. A word with a letter that is not understood is not
   understood as a whole. */
static const struct option *option_of_cluster(struct str word, struct str *ret_value)
{
    static const struct option OTHER_VALUED = {"", W_OTHER, false};
    const struct option *option = &UNKNOWN;
    bool has_other = false;
    for (size_t idx = 1; idx < word.len; idx++) {
        option = option_of_name(str_sub(word, idx, 1));
        if (option == &UNKNOWN) {
            return option;
        }
        has_other = has_other || option->what == W_OTHER;
        if (!option->is_claim) {
            struct str value = str_sub(word, idx + 1, SIZE_MAX);
            value = str_sub(value, value.len && value.ptr[0] == '=', SIZE_MAX);
            *ret_value = value.len ? value : STR_EMPTY;
            return has_other ? &OTHER_VALUED : option;
        }
    }
    return has_other ? &UNKNOWN : option;
}

/* A word that is an option, and what stands in it as its value; ptr NULL: nothing does. */
static const struct option *option_of(struct str word, struct str *ret_value)
{
    struct str name;
    *ret_value = STR_EMPTY;
    if (word.ptr[1] != '-') {
        return option_of_cluster(word, ret_value);
    }
    *ret_value = str_sub(word, 2, SIZE_MAX);
    (void)str_next(ret_value, '=', &name);
    return option_of_name(name);
}

/* The option at *at, which moves past it and its value. */
static int read_option(struct arena *arena, struct patterns *patterns, struct container_line *line,
                       size_t *at, struct err *err)
{
    struct container_flags *flags = &line->flags;
    struct str word = line->words[(*at)++], value = STR_EMPTY;
    bool is_dashed = word.len > 1 && word.ptr[0] == '-';
    const struct option *option = is_dashed ? option_of(word, &value) : &UNKNOWN;
    if (option->is_claim) {
        value = value.ptr ? value : STR_LIT("true");
    } else if (!value.ptr) {
        if (*at == line->n) {
            return err_set(err, ERR_MANIFEST, "container command: %.*s has no value",
                           STR_ARG(word));
        }
        value = line->words[(*at)++];
        word = str_of(arena_printf(arena, "%.*s %.*s", STR_ARG(word), STR_ARG(value)));
    }
    if (option->what == W_LEFT_OUT) {
        line->left_out[line->n_left_out++] = word;
        return 0;
    }
    if (take_value(patterns, flags, option->what, value)) {
        return 0;
    }
    if (flags->n_not_understood == CONTAINER_LIST_MAX) {
        return err_set(err, ERR_MANIFEST,
                       "container command: more than %d options that are not understood",
                       CONTAINER_LIST_MAX);
    }
    flags->not_understood[flags->n_not_understood++] = word;
    return 0;
}

bool container_is_engine(struct str program)
{
    static const char *const ENGINES[] = {"docker", "nvidia-docker", "podman", "nerdctl", NULL};
    return str_eq_any(path_base(program), ENGINES);
}

/* The first simple command of an engine that has a word "run", and the index of that word among its arguments. */
static bool find_run(const struct shell_words *words, size_t *ret_first, size_t *ret_end,
                     size_t *ret_run)
{
    for (size_t first = 0, end; first < words->n; first = end) {
        size_t n = 0;
        end = first + 1;
        while (end < words->n && !words->items[end].starts) {
            end++;
        }
        for (size_t idx = first; container_is_engine(words->items[first].text) && idx < end;
             idx++) {
            bool is_argument = words->items[idx].role == SHELL_ARGUMENT;
            if (is_argument && str_eq_z(words->items[idx].text, "run")) {
                *ret_first = first;
                *ret_end = end;
                *ret_run = n;
                return true;
            }
            n += is_argument;
        }
    }
    return false;
}

size_t container_image_at(const struct shell_word *words, size_t n)
{
    size_t at = 0;
    while (at < n && !str_eq_z(words[at].text, "run")) {
        at++;
    }
    for (at++; at < n && words[at].text.len > 1 && words[at].text.ptr[0] == '-';) {
        struct str word = words[at++].text, value;
        if (str_eq_z(word, "--")) {
            break;
        }
        at += !option_of(word, &value)->is_claim && !value.ptr;
    }
    return at < n ? at : n;
}

static int read_words(struct arena *arena, struct patterns *patterns, struct container_line *line,
                      size_t run, struct err *err)
{
    size_t at = run + 1;
    line->flags.wants_gpus = str_eq_z(path_base(line->words[0]), "nvidia-docker");
    /* In `docker -H HOST container run` the words between are about the engine, not the container. */
    for (size_t idx = 1; idx < run; idx++) {
        line->left_out[line->n_left_out++] = line->words[idx];
    }
    while (at < line->n && line->words[at].len > 1 && line->words[at].ptr[0] == '-') {
        if (str_eq_z(line->words[at], "--")) {
            at++;
            break;
        }
        if (read_option(arena, patterns, line, &at, err) < 0) {
            return -1;
        }
    }
    if (at == line->n) {
        return err_set(err, ERR_MANIFEST, "container command: no image");
    }
    line->image = line->words[at++];
    line->command = line->words + at;
    line->n_command = line->n - at;
    return 0;
}

int container_line_read(struct arena *arena, struct str text, struct container_line *ret_line,
                        struct err *err)
{
    struct shell_words words;
    size_t first, end, run;
    struct container_line line = {0};
    if (text.len && memchr(text.ptr, '\0', text.len)) {
        return err_set(err, ERR_MANIFEST, "container command: it contains a NUL");
    }
    shell_split(arena, text, &words);
    if (words.n > SHELL_WORDS_MAX) {
        return err_set(err, ERR_MANIFEST, "container command: more than %d words", SHELL_WORDS_MAX);
    }
    if (!find_run(&words, &first, &end, &run)) {
        return err_set(err, ERR_MANIFEST,
                       "container command: expected docker run, nvidia-docker run or podman run");
    }
    line.words = arena_array(arena, struct str, words.n);
    line.left_out = arena_array(arena, struct str, words.n);
    line.elsewhere = arena_array(arena, struct str, words.n);
    make_room(arena, &line.flags);
    for (size_t idx = 0; idx < words.n; idx++) {
        if (idx >= first && idx < end && words.items[idx].role == SHELL_ARGUMENT) {
            line.words[line.n++] = words.items[idx].text;
        } else { /* redirections are for the shell, not for the container */
            line.elsewhere[line.n_elsewhere++] = words.items[idx].text;
        }
    }
    struct patterns patterns = {0};
    int status = read_words(arena, &patterns, &line, run, err);
    patterns_release(&patterns);
    if (status < 0) {
        return -1;
    }
    *ret_line = line;
    return 0;
}

int container_flags_add(struct arena *arena, const struct str *words, size_t n,
                        struct container_flags *flags, struct err *err)
{
    struct container_line line = {.flags = *flags,
                                  .words = arena_array(arena, struct str, n + 1),
                                  .n = n,
                                  .left_out = arena_array(arena, struct str, n + 1)};
    make_room(arena, &line.flags);
    for (size_t idx = 0; idx < n; idx++) {
        line.words[idx] = words[idx];
    }
    struct patterns patterns = {0};
    int status = 0;
    for (size_t at = 0; status == 0 && at < n;) {
        status = read_option(arena, &patterns, &line, &at, err);
    }
    patterns_release(&patterns);
    *flags = status == 0 ? line.flags : *flags;
    return status;
}

int container_flags_of_command(struct arena *arena, struct str line,
                               struct container_flags *ret_flags, struct err *err)
{
    struct container_line whole;
    if (container_line_read(arena, line, &whole, err) < 0) {
        return -1;
    }
    *ret_flags = whole.flags;
    return 0;
}
