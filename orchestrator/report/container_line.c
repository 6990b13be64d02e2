/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `docker run` lines. Names of options, which of them take a value, and how sizes and limits are written. Source: Docker's
   command line reference, "docker container run" (docs.docker.com, read 2026-11). */
#include "base/base.h"

#include "report/container.h"

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
    const char *name; /* without its dashes */
    char letter;      /* or '\0' */
    bool is_claim;    /* takes no value, but for =true and =false */
    enum what what;
};

static const struct option OPTIONS[] = {
    {"attach", 'a', false, W_LEFT_OUT},
    {"cap-add", 0, false, W_CAP},
    {"cidfile", 0, false, W_LEFT_OUT},
    {"cpuset-cpus", 0, false, W_CPUSET},
    {"detach", 'd', true, W_LEFT_OUT},
    {"detach-keys", 0, false, W_LEFT_OUT},
    {"device", 0, false, W_DEVICE},
    {"env", 'e', false, W_ENV},
    {"gpus", 0, false, W_GPUS},
    {"init", 0, true, W_LEFT_OUT},
    {"interactive", 'i', true, W_LEFT_OUT},
    {"ipc", 0, false, W_IPC},
    {"label", 'l', false, W_LEFT_OUT},
    {"label-file", 0, false, W_LEFT_OUT},
    {"log-driver", 0, false, W_LEFT_OUT},
    {"log-opt", 0, false, W_LEFT_OUT},
    {"memory", 'm', false, W_MEMORY},
    {"mount", 0, false, W_LEFT_OUT},
    {"name", 0, false, W_LEFT_OUT},
    {"net", 0, false, W_NET},
    {"network", 0, false, W_NET},
    {"pid", 0, false, W_PID},
    {"privileged", 0, true, W_PRIVILEGED},
    {"pull", 0, false, W_LEFT_OUT},
    {"quiet", 'q', true, W_LEFT_OUT},
    {"restart", 0, false, W_LEFT_OUT},
    {"rm", 0, true, W_LEFT_OUT},
    {"runtime", 0, false, W_RUNTIME},
    {"security-opt", 0, false, W_SECURITY},
    {"shm-size", 0, false, W_SHM},
    {"sig-proxy", 0, true, W_LEFT_OUT},
    {"stop-timeout", 0, false, W_LEFT_OUT},
    {"tty", 't', true, W_LEFT_OUT},
    {"ulimit", 0, false, W_ULIMIT},
    {"volume", 'v', false, W_LEFT_OUT},
    {"volume-driver", 0, false, W_LEFT_OUT},
    {"workdir", 'w', false, W_WORKDIR},
};

/* Other options that take a value, which must not be taken for the image: not understood. An option that is listed nowhere is taken for
   one without. */
static const char VALUED[] =
    "add-host annotation blkio-weight blkio-weight-device cap-drop cgroup-parent cgroupns "
    "cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-mems "
    "device-cgroup-rule device-read-bps device-read-iops device-write-bps device-write-iops dns "
    "dns-option dns-search domainname entrypoint env-file expose group-add health-cmd "
    "health-interval health-retries health-start-interval health-start-period health-timeout "
    "hostname ip ip6 isolation kernel-memory link link-local-ip mac-address memory-reservation "
    "memory-swap memory-swappiness net-alias network-alias oom-score-adj pids-limit platform "
    "publish stop-signal storage-opt sysctl tmpfs user userns uts volumes-from";
static const struct option OTHER_VALUED = {NULL, 0, false, W_OTHER};
static const struct option OTHER_CLAIM = {NULL, 0, true, W_OTHER};

struct line_reader {
    struct arena *arena;
    const struct shell_words *words;
    size_t at, end; /* of the command's words */
    struct container_line line;
};

static int add(struct str **items, size_t *n, size_t max, struct str word)
{
    if (*n == max) {
        return -1;
    }
    (*items)[(*n)++] = word;
    return 0;
}

/* "64g", "512MB", "1GiB", "67108864": all powers of 1024. */
static bool size_of(struct str text, int64_t *ret_bytes)
{
    static const char UNITS[] = "bkmgtp";
    struct err err = {0};
    int64_t value, scale = 1;
    size_t digits = 0;
    struct str unit;
    while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9') {
        digits++;
    }
    unit = str_sub(text, digits, SIZE_MAX);
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

static bool take_to(struct str **items, size_t *n, struct str value, bool is_valid)
{
    return is_valid && add(items, n, CONTAINER_LIST_MAX, value) == 0;
}

/* False: not understood. */
static bool take_value(struct container_flags *flags, enum what what, struct str value)
{
    switch (what) {
    case W_CAP:
        return take_to(&flags->caps, &flags->n_caps, value, container_is_cap(value));
    case W_CPUSET:
        flags->cpuset = container_is_cpuset(value) ? value : flags->cpuset;
        return container_is_cpuset(value);
    case W_DEVICE:
        return take_to(&flags->devices, &flags->n_devices, value, container_is_device(value));
    case W_ENV:
        return take_to(&flags->env, &flags->n_env, value, container_is_env(value));
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
        return take_to(&flags->security, &flags->n_security, value, container_is_security(value));
    case W_SHM:
        return size_of(value, &flags->shm_bytes);
    case W_ULIMIT:
        return take_ulimit(flags, value);
    case W_WORKDIR:
        flags->workdir = container_is_path(value) ? value : flags->workdir;
        return container_is_path(value);
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
    struct str rest = STR_LIT(VALUED), word;
    for (size_t idx = 0; idx < ARRAY_LEN(OPTIONS); idx++) {
        if (str_eq_z(name, OPTIONS[idx].name)) {
            return &OPTIONS[idx];
        }
    }
    while (str_next(&rest, ' ', &word)) {
        if (str_eq(name, word)) {
            return &OTHER_VALUED;
        }
    }
    return &OTHER_CLAIM;
}

/* NULL: no option has that letter. */
static const struct option *option_of_letter(char letter)
{
    for (size_t idx = 0; idx < ARRAY_LEN(OPTIONS); idx++) {
        if (letter && letter == OPTIONS[idx].letter) {
            return &OPTIONS[idx];
        }
    }
    return letter == 'P' ? &OTHER_CLAIM : letter && strchr("chpu", letter) ? &OTHER_VALUED : NULL;
}

/* Joins the words from `from` to `to` into one and files it under its kind. */
static int put(struct line_reader *reader, size_t from, size_t to, enum what what, bool is_taken,
               struct err *err)
{
    struct container_line *line = &reader->line;
    struct str text = reader->words->items[from].text;
    size_t n = to - from;
    if (is_taken) {
        line->n_understood += n;
        return 0;
    }
    if (n > 1) {
        text = str_of(arena_printf(reader->arena, "%.*s %.*s", STR_ARG(text),
                                   STR_ARG(reader->words->items[from + 1].text)));
    }
    if (what == W_LEFT_OUT) {
        line->n_left_out_words += n;
        line->left_out[line->n_left_out++] = text;
        return 0;
    }
    line->n_not_understood_words += n;
    return add(&line->flags.not_understood, &line->flags.n_not_understood, CONTAINER_LIST_MAX,
               text) == 0
               ? 0
               : err_set(err, ERR_MANIFEST,
                         "container command: more than %d options that are not understood",
                         CONTAINER_LIST_MAX);
}

/* -itv X, -e=A=1, -m4g: letters that take no value, then perhaps one that does. */
static const struct option *option_of_cluster(struct str word, struct str *ret_value)
{
    const struct option *option = &OTHER_CLAIM;
    bool has_other = false;
    for (size_t idx = 1; idx < word.len; idx++) {
        const struct option *next = option_of_letter(word.ptr[idx]);
        if (!next) {
            return &OTHER_CLAIM;
        }
        has_other = has_other || next->what == W_OTHER;
        option = idx == 1 || next->what != W_LEFT_OUT ? next : option;
        if (!next->is_claim) {
            struct str value = str_sub(word, idx + 1, SIZE_MAX);
            bool has_sign = value.len && value.ptr[0] == '=';
            *ret_value = has_sign ? str_sub(value, 1, SIZE_MAX) : value;
            /* -Pv X: understood and other letters in one word */
            return has_other ? &OTHER_VALUED : next;
        }
    }
    return has_other ? &OTHER_CLAIM : option;
}

/* A word that is an option, and what stands in it as its value; ptr NULL: nothing does. */
static const struct option *option_of(struct str word, struct str *ret_value)
{
    struct str name;
    *ret_value = STR_EMPTY;
    if (word.ptr[1] != '-') {
        const struct option *option = option_of_cluster(word, ret_value);
        *ret_value = ret_value->len ? *ret_value : STR_EMPTY;
        return option;
    }
    *ret_value = str_sub(word, 2, SIZE_MAX);
    (void)str_next(ret_value, '=', &name);
    return option_of_name(name);
}

/* The option at reader->at, which moves past it and its value. */
static int read_option(struct line_reader *reader, struct err *err)
{
    size_t from = reader->at++;
    struct str word = reader->words->items[from].text, value;
    const struct option *option = option_of(word, &value);
    if (option->is_claim) {
        value = value.ptr ? value : STR_LIT("true");
    } else if (!value.ptr) {
        if (reader->at == reader->end) {
            return err_set(err, ERR_MANIFEST, "container command: %.*s has no value",
                           STR_ARG(word));
        }
        value = reader->words->items[reader->at++].text;
    }
    return put(reader, from, reader->at, option->what,
               take_value(&reader->line.flags, option->what, value), err);
}

bool container_is_engine(struct str program)
{
    static const char *const ENGINES[] = {"docker", "nvidia-docker", "podman", "nerdctl", NULL};
    return str_eq_any(path_base(program), ENGINES);
}

/* The words of the first simple command that is a `run`; *ret_run: the word "run". */
static bool find_run(const struct shell_words *words, size_t *ret_first, size_t *ret_run,
                     size_t *ret_end)
{
    for (size_t idx = 0; idx < words->n; idx++) {
        bool is_engine = container_is_engine(words->items[idx].text);
        size_t end = idx + 1;
        while (end < words->n && !words->items[end].starts) {
            end++;
        }
        for (size_t run = idx + 1; is_engine && words->items[idx].starts && run < end; run++) {
            if (str_eq_z(words->items[run].text, "run")) {
                *ret_first = idx;
                *ret_run = run;
                *ret_end = end;
                return true;
            }
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

static int read_words(struct line_reader *reader, size_t first, size_t run, struct err *err)
{
    struct container_line *line = &reader->line;
    const struct shell_word *items = reader->words->items;
    for (size_t idx = 0; idx < reader->words->n; idx++) {
        if (idx < first || idx >= reader->end) {
            line->elsewhere[line->n_elsewhere++] = items[idx].text;
        }
    }
    /* In `docker -H HOST container run` the words between are about the engine, not the container. */
    line->n_understood = 2;
    for (size_t idx = first + 1; idx < run; idx++) {
        if (put(reader, idx, idx + 1, W_LEFT_OUT, false, err) < 0) {
            return -1;
        }
    }
    line->flags.wants_gpus = str_eq_z(path_base(items[first].text), "nvidia-docker");
    for (reader->at = run + 1; reader->at < reader->end;) {
        struct str word = items[reader->at].text;
        if (str_eq_z(word, "--")) {
            line->n_understood++;
            reader->at++;
            break;
        }
        if (word.len < 2 || word.ptr[0] != '-') {
            break;
        }
        if (read_option(reader, err) < 0) {
            return -1;
        }
    }
    if (reader->at == reader->end) {
        return err_set(err, ERR_MANIFEST, "container command: no image");
    }
    line->image = items[reader->at++].text;
    while (reader->at < reader->end) {
        line->command[line->n_command++] = items[reader->at++].text;
    }
    return 0;
}

/* Redirections are for the shell, not for the container. */
static void leave_out_redirections(struct shell_words *words, struct container_line *line)
{
    size_t n = 0;
    for (size_t idx = 0; idx < words->n; idx++) {
        if (words->items[idx].role == SHELL_ARGUMENT) {
            words->items[n++] = words->items[idx];
        } else {
            line->elsewhere[line->n_elsewhere++] = words->items[idx].text;
        }
    }
    words->n = n;
}

int container_line_read(struct arena *arena, struct str text, struct container_line *ret_line,
                        struct err *err)
{
    struct shell_words words;
    size_t first, run;
    struct line_reader reader = {.arena = arena, .words = &words};
    struct container_line *line = &reader.line;
    if (text.len && memchr(text.ptr, '\0', text.len)) {
        return err_set(err, ERR_MANIFEST, "container command: it contains a NUL");
    }
    shell_split(arena, text, &words);
    if (words.n > SHELL_WORDS_MAX) {
        return err_set(err, ERR_MANIFEST, "container command: more than %d words", SHELL_WORDS_MAX);
    }
    line->command = arena_array(arena, struct str, words.n);
    line->left_out = arena_array(arena, struct str, words.n);
    line->elsewhere = arena_array(arena, struct str, words.n);
    line->flags.devices = arena_array(arena, struct str, CONTAINER_LIST_MAX);
    line->flags.caps = arena_array(arena, struct str, CONTAINER_LIST_MAX);
    line->flags.security = arena_array(arena, struct str, CONTAINER_LIST_MAX);
    line->flags.env = arena_array(arena, struct str, CONTAINER_LIST_MAX);
    line->flags.not_understood = arena_array(arena, struct str, CONTAINER_LIST_MAX);
    line->n_words = words.n;
    leave_out_redirections(&words, line);
    if (!find_run(&words, &first, &run, &reader.end)) {
        return err_set(err, ERR_MANIFEST,
                       "container command: expected docker run, nvidia-docker run or podman run");
    }
    if (read_words(&reader, first, run, err) < 0) {
        return -1;
    }
    ASSERT(line->n_understood + line->n_left_out_words + line->n_not_understood_words +
               line->n_command + line->n_elsewhere + 1 ==
           line->n_words);
    *ret_line = *line;
    return 0;
}

static void put_all(struct str *items, size_t *n, const struct str *more, size_t n_more)
{
    for (size_t idx = 0; idx < n_more && *n < CONTAINER_LIST_MAX; idx++) {
        if (!str_is_in(more[idx], items, *n)) {
            items[(*n)++] = more[idx];
        }
    }
}

int container_flags_add(struct arena *arena, const struct str *words, size_t n,
                        struct container_flags *flags, struct err *err)
{
    struct container_flags both;
    struct container_flags own;
    const char *line = "docker run";
    for (size_t idx = 0; idx < n; idx++) {
        line = arena_printf(arena, "%s %.*s", line, STR_ARG(words[idx]));
    }
    if (container_flags_of_command(arena, str_of(arena_printf(arena, "%s image", line)), &both,
                                   err) < 0) {
        return -1;
    }
    own = *flags;
    const struct {
        int64_t *site, own;
    } NUMBERS[] = {{&both.shm_bytes, own.shm_bytes},     {&both.memlock_bytes, own.memlock_bytes},
                   {&both.stack_bytes, own.stack_bytes}, {&both.n_files, own.n_files},
                   {&both.n_processes, own.n_processes}, {&both.memory_bytes, own.memory_bytes}};
    for (size_t idx = 0; idx < ARRAY_LEN(NUMBERS); idx++) {
        *NUMBERS[idx].site = *NUMBERS[idx].site ? *NUMBERS[idx].site : NUMBERS[idx].own;
    }
    both.is_host_net |= own.is_host_net;
    both.is_host_ipc |= own.is_host_ipc;
    both.is_host_pid |= own.is_host_pid;
    both.is_privileged |= own.is_privileged;
    both.wants_gpus |= own.wants_gpus;
    both.cpuset = both.cpuset.ptr ? both.cpuset : own.cpuset;
    both.workdir = both.workdir.ptr ? both.workdir : own.workdir;
    put_all(both.devices, &both.n_devices, own.devices, own.n_devices);
    put_all(both.caps, &both.n_caps, own.caps, own.n_caps);
    put_all(both.security, &both.n_security, own.security, own.n_security);
    put_all(both.env, &both.n_env, own.env, own.n_env);
    put_all(both.not_understood, &both.n_not_understood, own.not_understood, own.n_not_understood);
    *flags = both;
    return 0;
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
