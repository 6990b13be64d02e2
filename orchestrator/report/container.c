/* SPDX-License-Identifier: Apache-2.0 */
/* Reading `docker run` lines. Names of options, which of them take a value, and how sizes and limits are written. Source:
   Docker's command line reference, "docker container run" (docs.docker.com, read 2026-11). */
#include "base/base.h"

#include "report/container.h"

#include "codec/json_table.h"
#include "codec/pattern.h"
#include "report/shell_script.h"

#define BYTES_MAX (1LL << 53)

enum takes {
    TAKES_OTHER,   /* not understood */
    TAKES_NOTHING, /* ours to choose: mounts, names, -it, --rm, where its log goes */
    TAKES_SIZE,
    TAKES_TEXT,
    TAKES_LIST,
    TAKES_LIMIT,
    TAKES_WORD, /* a claim of ours that holds for one of its values */
};

struct option {
    const char *names; /* without their dashes; a single letter is a letter */
    enum takes takes;
    bool is_claim;    /* takes no value, but for =true and =false */
    size_t at, n_at;  /* in struct container_flags */
    const char *form; /* of the values that are understood */
    const char *word; /* NULL: the claim holds for any value */
};

#define AT(member) offsetof(struct container_flags, member)
/* The options of TAKES_OTHER take a value too, which must not be taken for the image. Some of the GPUs: the plan says which ones,
   so that the choice is shown. */
static const struct option OPTIONS[] = {
    {"cap-add", TAKES_LIST, false, AT(caps), AT(n_caps), CONTAINER_CAP, NULL},
    {"cpuset-cpus", TAKES_TEXT, false, AT(cpuset), 0, CONTAINER_CPUSET, NULL},
    {"device", TAKES_LIST, false, AT(devices), AT(n_devices), CONTAINER_DEVICE, NULL},
    {"env e", TAKES_LIST, false, AT(env), AT(n_env), CONTAINER_ENV, NULL},
    {"gpus", TAKES_WORD, false, AT(wants_gpus), 0, "^all$", NULL},
    {"ipc", TAKES_WORD, false, AT(is_host_ipc), 0, "^(host|private)$", "host"},
    {"memory m", TAKES_SIZE, false, AT(memory_bytes), 0, NULL, NULL},
    {"net network", TAKES_WORD, false, AT(is_host_net), 0, "^(host|bridge)$", "host"},
    {"pid", TAKES_WORD, false, AT(is_host_pid), 0, "^(host|private)$", "host"},
    {"privileged", TAKES_WORD, true, AT(is_privileged), 0, "^(true|false)$", "true"},
    {"runtime", TAKES_WORD, false, AT(wants_gpus), 0, "^(nvidia|runc)$", "nvidia"},
    {"security-opt", TAKES_LIST, false, AT(security), AT(n_security), CONTAINER_SECURITY, NULL},
    {"shm-size", TAKES_SIZE, false, AT(shm_bytes), 0, NULL, NULL},
    {"ulimit", TAKES_LIMIT, false, 0, 0, NULL, NULL},
    {"workdir w", TAKES_TEXT, false, AT(workdir), 0, CONTAINER_PATH, NULL},
    {"detach d init interactive i quiet q rm sig-proxy tty t", TAKES_NOTHING, true, 0, 0, NULL,
     NULL},
    {"attach a cidfile detach-keys label l label-file log-driver log-opt mount name pull restart "
     "stop-timeout volume v volume-driver",
     TAKES_NOTHING, false, 0, 0, NULL, NULL},
    {"publish-all P", TAKES_OTHER, true, 0, 0, NULL, NULL},
    {"add-host annotation blkio-weight blkio-weight-device c cap-drop cgroup-parent cgroupns "
     "cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-mems "
     "device-cgroup-rule device-read-bps device-read-iops device-write-bps device-write-iops dns "
     "dns-option dns-search domainname entrypoint env-file expose group-add h health-cmd "
     "health-interval health-retries health-start-interval health-start-period health-timeout "
     "hostname ip ip6 isolation kernel-memory link link-local-ip mac-address memory-reservation "
     "memory-swap memory-swappiness net-alias network-alias oom-score-adj p pids-limit platform "
     "publish stop-signal storage-opt sysctl tmpfs u user userns uts volumes-from",
     TAKES_OTHER, false, 0, 0, NULL, NULL},
};
static const struct option UNKNOWN = {"", TAKES_OTHER, true, 0, 0, NULL, NULL};

/* A line's reader. */
struct flags_reader {
    struct arena *arena;
    struct patterns patterns;
    struct container_flags flags;
};

/* ---- values ---- */

bool container_size(struct patterns *patterns, struct str text, int64_t *ret_bytes)
{
    static const char UNITS[] = "bkmgtp";
    struct str g[3];
    int64_t value;
    if (!patterns_find(patterns, "(?i)^(\\d+)(?:([bkmgtp])(?:i?b)?)?\\z", text, g, ARRAY_LEN(g)) ||
        str_to_i64(g[1], 1, BYTES_MAX, &value, ERR_IGNORED) < 0) {
        return false;
    }
    int64_t scale = g[2].len ? 1LL << (10 * (strchr(UNITS, g[2].ptr[0] | 0x20) - UNITS)) : 1;
    if (__builtin_mul_overflow(value, scale, &value) || value > BYTES_MAX) {
        return false;
    }
    *ret_bytes = value;
    return true;
}

/* "memlock=-1", "stack=67108864", "nofile=1024:1024"; the flags cannot express a limit of 0 or a different hard limit. */
static bool take_limit(struct flags_reader *r, struct str text)
{
    struct str g[3];
    int64_t value;
    if (!patterns_find(&r->patterns, "^(memlock|stack|nofile|nproc)=(-1|[1-9]\\d*)(?::\\2)?\\z",
                       text, g, ARRAY_LEN(g)) ||
        str_to_i64(g[2], LIMIT_UNLIMITED, BYTES_MAX, &value, ERR_IGNORED) < 0) {
        return false;
    }
    *(str_eq_z(g[1], "memlock")  ? &r->flags.memlock_bytes
      : str_eq_z(g[1], "stack")  ? &r->flags.stack_bytes
      : str_eq_z(g[1], "nofile") ? &r->flags.n_files
                                 : &r->flags.n_processes) = value;
    return true;
}

/* Once; false where the list is full. */
static bool add_to(struct arena *arena, struct str **items, size_t *n, struct str value)
{
    struct str *longer = arena_array(arena, struct str, *n + 1);
    if (str_is_in(value, *items, *n)) {
        return true;
    }
    if (*n == CONTAINER_LIST_MAX) {
        return false;
    }
    for (size_t idx = 0; idx < *n; idx++) {
        longer[idx] = (*items)[idx];
    }
    longer[(*n)++] = value;
    *items = longer;
    return true;
}

/* False: not understood. */
static bool take_value(struct flags_reader *r, const struct option *option, struct str value)
{
    void *at = (char *)&r->flags + option->at;
    void *n_at = (char *)&r->flags + option->n_at;
    bool *claim = at;
    struct str *text = at;
    /* A value that ends a line is of no form. */
    bool is_valid = option->form && !str_ends(value, STR_LIT("\n")) &&
                    patterns_find(&r->patterns, option->form, value, NULL, 0);
    switch (option->takes) {
    case TAKES_SIZE:
        return container_size(&r->patterns, value, at);
    case TAKES_LIMIT:
        return take_limit(r, value);
    case TAKES_LIST:
        return is_valid && add_to(r->arena, at, n_at, value);
    case TAKES_TEXT:
        *text = is_valid ? value : *text;
        return is_valid;
    case TAKES_WORD:
        *claim = (*claim && !option->is_claim) || !option->word || str_eq_z(value, option->word);
        return is_valid;
    case TAKES_OTHER:
    case TAKES_NOTHING:
        break;
    }
    return option->takes == TAKES_NOTHING;
}

/* ---- options ---- */

static const struct option *option_of_name(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(OPTIONS); idx++) {
        if (is_word_of(name, OPTIONS[idx].names)) {
            return &OPTIONS[idx];
        }
    }
    return &UNKNOWN;
}

/* A word that is an option, and what stands in it as its value; ptr NULL: nothing does. Letters that take no value may stand
   before one that does: -itv X, -e=A=1, -m4g. A word with a letter that is not understood is not understood as a whole. */
static const struct option *option_of(struct str word, struct str *ret_value)
{
    static const struct option OTHER_VALUED = {"", TAKES_OTHER, false, 0, 0, NULL, NULL};
    const struct option *option = &UNKNOWN;
    struct str name;
    bool has_other = false;
    *ret_value = STR_EMPTY;
    if (word.ptr[1] == '-') {
        *ret_value = str_sub(word, 2, SIZE_MAX);
        (void)str_next(ret_value, '=', &name);
        return option_of_name(name);
    }
    for (size_t idx = 1; idx < word.len; idx++) {
        option = option_of_name(str_sub(word, idx, 1));
        has_other = has_other || option->takes == TAKES_OTHER;
        if (option == &UNKNOWN) {
            return option;
        }
        if (!option->is_claim) {
            struct str value = str_sub(word, idx + 1, SIZE_MAX);
            value = str_sub(value, value.len && value.ptr[0] == '=', SIZE_MAX);
            *ret_value = value.len ? value : STR_EMPTY;
            return has_other ? &OTHER_VALUED : option;
        }
    }
    return has_other ? &UNKNOWN : option;
}

static bool is_dashed(struct str word)
{
    return word.len > 1 && word.ptr[0] == '-';
}

/* The options that words[0, n) are, with their values. */
static int read_options(struct flags_reader *r, const struct shell_word *words, size_t n,
                        struct err *err)
{
    struct container_flags *flags = &r->flags;
    for (size_t at = 0; at < n;) {
        struct str word = words[at++].text, value = STR_EMPTY;
        const struct option *option = is_dashed(word) ? option_of(word, &value) : &UNKNOWN;
        if (option->is_claim) {
            value = value.ptr ? value : STR_LIT("true");
        } else if (!value.ptr && at == n) {
            return err_set(err, ERR_MANIFEST, "container command: %.*s has no value",
                           STR_ARG(word));
        } else if (!value.ptr) {
            value = words[at++].text;
            word = str_printf(r->arena, "%.*s %.*s", STR_ARG(word), STR_ARG(value));
        }
        if (!take_value(r, option, value) && !str_eq_z(word, "--") &&
            !add_to(r->arena, &flags->not_understood, &flags->n_not_understood, word)) {
            return err_set(err, ERR_MANIFEST,
                           "container command: more than %d options that are not understood",
                           CONTAINER_LIST_MAX);
        }
    }
    return 0;
}

bool container_is_engine(struct str program)
{
    static const char *const ENGINES[] = {"docker", "nvidia-docker", "podman", "nerdctl", NULL};
    return str_eq_any(path_base(program), ENGINES);
}

size_t container_image_at(const struct shell_word *words, size_t n)
{
    size_t at = 0;
    while (at < n && !str_eq_z(words[at].text, "run")) {
        at++;
    }
    for (at++; at < n && is_dashed(words[at].text);) {
        struct str word = words[at++].text, value;
        if (str_eq_z(word, "--")) {
            break;
        }
        at += !option_of(word, &value)->is_claim && !value.ptr;
    }
    return at < n ? at : n;
}

int container_flags_add(struct arena *arena, const struct str *words, size_t n,
                        struct container_flags *flags, struct err *err)
{
    struct flags_reader r = {.arena = arena, .flags = *flags};
    struct shell_word *items = arena_array(arena, struct shell_word, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        items[idx].text = words[idx];
    }
    int status = read_options(&r, items, n, err);
    patterns_release(&r.patterns);
    *flags = status == 0 ? r.flags : *flags;
    return status;
}

int container_flags_of_command(struct arena *arena, struct str line,
                               struct container_flags *ret_flags, struct err *err)
{
    struct flags_reader r = {.arena = arena};
    struct shell_script script;
    size_t idx = 0;
    if (line.len > 0 && memchr(line.ptr, 0, line.len)) {
        return err_set(err, ERR_MANIFEST, "container command: holds U+0000");
    }
    shell_script_read(arena, line, &script);
    while (idx < script.n && !shell_engine_does(&script.runs[idx], "run")) {
        idx++;
    }
    if (idx == script.n) {
        return err_set(err, ERR_MANIFEST,
                       "container command: expected docker run, nvidia-docker run or podman run");
    }
    const struct shell_run *run = &script.runs[idx];
    size_t first = shell_engine_verb(run) + 1;
    size_t image = container_image_at(run->words, run->n);
    if (image == run->n) {
        return err_set(err, ERR_MANIFEST, "container command: no image");
    }
    r.flags.wants_gpus = str_eq_z(path_base(run->words[0].text), "nvidia-docker");
    int status = read_options(&r, run->words + first, image - first, err);
    patterns_release(&r.patterns);
    if (status == 0) {
        *ret_flags = r.flags;
    }
    return status;
}

bool container_is_path(struct str s)
{
    bool is_plain = s.len > 0 && s.ptr[0] == '/' && str_cspan(s, 0, "$`\x7f") == s.len;
    for (size_t idx = 0; is_plain && idx < s.len; idx++) {
        is_plain = (unsigned char)s.ptr[idx] > ' ';
    }
    return is_plain;
}

/* ---- as JSON ---- */

#define FLAGS struct container_flags
static const struct json_form DEVICE = {.pattern = CONTAINER_DEVICE, .what = "an absolute path"};
static const struct json_form CAP = {.pattern = CONTAINER_CAP, .what = "the name of a capability"};
static const struct json_form SECURITY = {.pattern = CONTAINER_SECURITY,
                                          .what = "a security option"};
static const struct json_form ENV = {.pattern = CONTAINER_ENV, .what = "NAME=VALUE"};
static const struct json_form CPUSET = {.pattern = CONTAINER_CPUSET, .what = "a list of CPUs"};
static const struct json_form FOLDER = {.pattern = CONTAINER_PATH, .what = "an absolute path"};
const struct json_field CONTAINER_FLAGS_ROWS[CONTAINER_FLAGS_N] = {
    ROW("shm_bytes", FLAGS, shm_bytes, JSON_REQUIRED),
    ROW("memlock_bytes", FLAGS, memlock_bytes, JSON_REQUIRED, .min = LIMIT_UNLIMITED,
        .max = BYTES_MAX),
    ROW("stack_bytes", FLAGS, stack_bytes, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("n_files", FLAGS, n_files, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("n_processes", FLAGS, n_processes, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("memory_bytes", FLAGS, memory_bytes, JSON_REQUIRED),
    ROW("is_host_net", FLAGS, is_host_net, JSON_REQUIRED),
    ROW("is_host_ipc", FLAGS, is_host_ipc, JSON_REQUIRED),
    ROW("is_host_pid", FLAGS, is_host_pid, JSON_REQUIRED),
    ROW("is_privileged", FLAGS, is_privileged, JSON_REQUIRED),
    ROW("wants_gpus", FLAGS, wants_gpus, JSON_REQUIRED),
    ROW("cpuset", FLAGS, cpuset, JSON_REQUIRED | JSON_NULLABLE, .form = &CPUSET),
    ROW("workdir", FLAGS, workdir, JSON_REQUIRED | JSON_NULLABLE, .form = &FOLDER),
    ROW_STRS("devices", FLAGS, devices, n_devices, JSON_REQUIRED, .max = CONTAINER_LIST_MAX,
             .form = &DEVICE),
    ROW_STRS("caps", FLAGS, caps, n_caps, JSON_REQUIRED, .max = CONTAINER_LIST_MAX, .form = &CAP),
    ROW_STRS("security", FLAGS, security, n_security, JSON_REQUIRED, .max = CONTAINER_LIST_MAX,
             .form = &SECURITY),
    ROW_STRS("env", FLAGS, env, n_env, JSON_REQUIRED, .max = CONTAINER_LIST_MAX, .form = &ENV),
    ROW_STRS("not_understood", FLAGS, not_understood, n_not_understood, JSON_REQUIRED,
             .max = CONTAINER_LIST_MAX),
};
