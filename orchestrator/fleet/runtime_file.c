/* SPDX-License-Identifier: Apache-2.0 */
/* Engines whose image is a file, apptainer and enroot, as data: a template of the argv each. Experimental: neither is in the
   distribution, so that their argv is tested and has never been run by us. The network is always the node's own; of enroot IPC and
   devices are, too.
   Source: apptainer.org, user guide, "apptainer exec", and cmd/internal/cli/action_flags.go at 917d66577963; doc/cmd/start.md,
   doc/image-format.md and doc/standard-hooks.md of github.com/NVIDIA/enroot at 8ea147d337da (read 2026-11). */
#include "base/base.h"

#include "fleet/runtime_impl.h"

/* Soft limits are inherited, there is no option for them: words LIMIT=KIB-OR-COUNT up to "--". One that cannot be had is left for the
   check inside to find. */
#define TAKE_LIMITS                                                                                \
    "while [ \"$1\" != -- ]; do\n"                                                                 \
    "  case $1 in\n"                                                                               \
    "  l=* | s=* | n=* | u=*) ulimit -S -\"${1%%=*}\" \"${1#*=}\" 2>/dev/null ;;\n"                \
    "  esac\n"                                                                                     \
    "  shift\n"                                                                                    \
    "done\n"                                                                                       \
    "shift\n"

enum part {
    ALWAYS,
    WITH_ENTRYPOINT, /* the image's own */
    WITHOUT_ENTRYPOINT,
    OWN_PID, /* not the node's */
    OWN_IPC,
    GPUS,
    GPUS_UNNAMED, /* and the environment names none */
    SHM,
    DEVICE, /* each, as those below of a list */
    CAP,
    SECURITY,
    MEMORY,
    CPUSET,
    PRIVILEGED,
    WORKDIR,
    MOUNT,
    ENV,
    FILE_ITSELF,
};

/* Words with blanks between them. In a word %v is the part's value; of a mount %h and %i are the paths there and inside, %m is ro or
   rw. */
struct row {
    enum part part;
    const char *words;
};

struct engine {
    const char *name;
    const char *script;
    const struct row *rows; /* in the order of the argv; end with words NULL */
    const char *mounts_lack;
    const char *
        env_prefix; /* of the names in the engine's own environment; NULL: there only secrets are, rows have the rest */
    const char *env_lacks;
    const char *const *
        security; /* options that it needs no word for: it confines by none of these unless told to; or NULL */
};

static const struct row APPTAINER[] = {{ALWAYS, "apptainer"},
                                       {WITH_ENTRYPOINT, "run"},
                                       {WITHOUT_ENTRYPOINT, "exec"},
                                       {ALWAYS, "--contain --cleanenv --no-eval --writable-tmpfs"},
                                       {OWN_PID, "--pid"},
                                       {OWN_IPC, "--ipc"},
                                       {GPUS, "--nv"},
                                       /* its own /dev/shm is small, and has no option */
                                       {SHM, "--bind /dev/shm:/dev/shm"},
                                       {DEVICE, "--bind %v"},
                                       {CAP, "--add-caps CAP_%v"},
                                       {MEMORY, "--memory %v"},
                                       {CPUSET, "--cpuset-cpus %v"},
                                       {WORKDIR, "--pwd %v"},
                                       {MOUNT, "--bind %h:%i:%m"},
                                       {FILE_ITSELF, "%v"},
                                       {ALWAYS, NULL}};

static const struct row ENROOT[] = {{WITH_ENTRYPOINT, "entrypoint"},
                                    {WITHOUT_ENTRYPOINT, "plain"},
                                    {ALWAYS, "--rw"},
                                    {MOUNT, "--mount %h:%i:none:x-create=auto,bind,%m"},
                                    {ALWAYS, "--env " RUNTIME_ENV_NETNS},
                                    {ENV, "--env %v"},
                                    {GPUS_UNNAMED, "--env NVIDIA_VISIBLE_DEVICES=all"},
                                    {ALWAYS, "--"},
                                    {FILE_ITSELF, "%v"},
                                    {ALWAYS, NULL}};

static const char *const UNCONFINED[] = {"seccomp=unconfined", "apparmor=unconfined",
                                         "label=disable", NULL};

static const struct engine ENGINES[] = {
    {.name = "apptainer",
     .script = TAKE_LIMITS "APPTAINERENV_" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
                           "export APPTAINERENV_" RUNTIME_ENV_NETNS "\n"
                           "exec \"$@\"\n",
     .rows = APPTAINER,
     .mounts_lack = ",:",
     .env_prefix = "APPTAINERENV_", /* its --env splits values at commas */
     .env_lacks = "",
     .security = UNCONFINED},
    /* Without the image's entrypoint the command is run by a script of two words, which enroot takes as a file. It expands what it
       reads of the environment. */
    {.name = "enroot",
     .script = TAKE_LIMITS "mode=$1\n"
                           "shift\n" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
                           "export " RUNTIME_ENV_NETNS "\n"
                           "[ \"$mode\" = plain ] || exec enroot start \"$@\"\n"
                           "tmp=$(mktemp -d) || exit 125\n"
                           "trap : HUP INT TERM\n"
                           "printf '%s\\n' 'exec \"$@\"' >\"$tmp/rc\"\n"
                           "enroot start --rc \"$tmp/rc\" \"$@\"\n"
                           "rc=$?\n"
                           "rm -rf \"$tmp\"\n"
                           "exit \"$rc\"\n",
     .rows = ENROOT,
     .mounts_lack = ":",
     .env_lacks = "$\n"},
};

/* ---- what it can give ---- */

static bool has_part(const struct engine *engine, enum part part)
{
    for (const struct row *row = engine->rows; row->words; row++) {
        if (row->part == part) {
            return true;
        }
    }
    return false;
}

static bool needs_security(const struct engine *engine, struct str option)
{
    for (const char *const *known = engine->security; known && *known; known++) {
        if (str_eq_z(option, *known)) {
            return false;
        }
    }
    return true;
}

/* What the flags ask for and no row gives. */
static const char *beyond(const struct engine *engine, const struct container_flags *flags)
{
    bool has_security = false;
    for (size_t idx = 0; idx < flags->n_security; idx++) {
        has_security = has_security || needs_security(engine, flags->security[idx]);
    }
    const struct {
        bool is_asked;
        enum part part;
        const char *what;
    } ASKED[] = {{flags->memory_bytes != 0, MEMORY, "a memory limit"},
                 {flags->cpuset.ptr != NULL, CPUSET, "a set of CPUs"},
                 {flags->is_privileged, PRIVILEGED, "privileges"},
                 {flags->n_caps != 0, CAP, "capabilities"},
                 {has_security, SECURITY, "security options"},
                 {flags->workdir.ptr != NULL, WORKDIR, "a working folder"}};
    for (size_t idx = 0; idx < ARRAY_LEN(ASKED); idx++) {
        if (ASKED[idx].is_asked && !has_part(engine, ASKED[idx].part)) {
            return ASKED[idx].what;
        }
    }
    return NULL;
}

static int check_env(const struct engine *engine, const char *const *env, struct err *err)
{
    for (; *env; env++) {
        if (strpbrk(*env, engine->env_lacks)) {
            return err_set(err, ERR_CONTAINER, "%.*s has a value that %s would expand",
                           STR_ARG(runtime_env_name(*env)), engine->name);
        }
    }
    return 0;
}

/* ---- the argv ---- */

struct value {
    struct str text;
    const struct container_mount *mount; /* instead */
};

static struct str value_of(const struct value *value, char letter)
{
    return letter == 'h'   ? value->mount->host
           : letter == 'i' ? value->mount->inside
           : letter == 'm' ? (value->mount->is_writable ? STR_LIT("rw") : STR_LIT("ro"))
                           : value->text;
}

static void add_row(struct argv_words *words, const struct row *row, struct value value)
{
    struct str rest = str_of(row->words), word;
    while (str_next(&rest, ' ', &word)) {
        CLEANUP(strbuf) struct strbuf text;
        strbuf_init(&text, RUNTIME_WORD_MAX);
        for (size_t at = 0; at < word.len; at++) {
            if (word.ptr[at] == '%') {
                strbuf_add_str(&text, value_of(&value, word.ptr[++at]));
            } else {
                strbuf_add_char(&text, word.ptr[at]);
            }
        }
        words->is_full = words->is_full || text.is_full;
        words_add(words, arena_strndup(words->arena, text.ptr, text.len));
    }
}

static void add_each(struct argv_words *words, const struct row *row, const struct str *items,
                     size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        add_row(words, row, (struct value){.text = items[idx]});
    }
}

static bool names_gpus(const char *const *env)
{
    for (; *env; env++) {
        if (str_eq_z(runtime_env_name(*env), "NVIDIA_VISIBLE_DEVICES")) {
            return true;
        }
    }
    return false;
}

/* A part that is there or not. */
static bool is_wanted(const struct runtime_job *job, const char *const *env, enum part part)
{
    const struct container_flags *flags = runtime_flags(job);
    switch ((int)part) {
    case WITH_ENTRYPOINT:
        return job->keeps_entrypoint;
    case WITHOUT_ENTRYPOINT:
        return !job->keeps_entrypoint;
    case OWN_PID:
        return !flags->is_host_pid;
    case OWN_IPC:
        return !flags->is_host_ipc;
    case GPUS:
        return flags->wants_gpus;
    case GPUS_UNNAMED:
        return flags->wants_gpus && !names_gpus(env);
    case SHM:
        return flags->shm_bytes || flags->is_host_ipc;
    default:
        return part == ALWAYS;
    }
}

static void add_part(struct argv_words *words, const struct row *row, const struct runtime_job *job,
                     const char *const *env)
{
    const struct container_flags *flags = runtime_flags(job);
    struct value value = {STR_EMPTY, NULL};
    switch ((int)row->part) {
    case DEVICE:
        add_each(words, row, flags->devices, flags->n_devices);
        return;
    case CAP:
        add_each(words, row, flags->caps, flags->n_caps);
        return;
    case MEMORY:
        value.text =
            flags->memory_bytes
                ? str_of(arena_printf(words->arena, "%lld", (long long)flags->memory_bytes))
                : STR_EMPTY;
        break;
    case CPUSET:
        value.text = flags->cpuset;
        break;
    case WORKDIR:
        value.text = flags->workdir;
        break;
    case FILE_ITSELF:
        value.text = job->image->file;
        break;
    case MOUNT:
        for (size_t idx = 0; idx < job->n_mounts; idx++) {
            add_row(words, row, (struct value){.mount = &job->mounts[idx]});
        }
        return;
    case ENV:
        for (; *env;
             env++) { /* of a secret the name: its value is in the engine's own environment */
            value.text = runtime_env_is_secret(*env) ? runtime_env_name(*env) : str_of(*env);
            add_row(words, row, value);
        }
        return;
    default:
        if (is_wanted(job, env, row->part)) {
            add_row(words, row, value);
        }
        return;
    }
    if (value.text.ptr) {
        add_row(words, row, value);
    }
}

static const char *const *prefixed(struct arena *arena, const char *prefix, const char *const *env)
{
    struct argv_words words;
    words_init(&words, arena);
    for (; *env; env++) {
        words_addf(&words, "%s%s", prefix, *env);
    }
    words.items[words.n] = NULL;
    return words.items;
}

static int commands_of(const struct engine *engine, struct arena *arena,
                       const struct runtime_job *job, struct runtime_commands *ret_commands,
                       struct err *err)
{
    const struct container_flags *flags = runtime_flags(job);
    const char *const *env = runtime_env(arena, job);
    struct argv_words words;
    if (!job->image->file.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: no file of it on the nodes",
                       STR_ARG(job->image->name));
    }
    if (runtime_refuse(engine->name, beyond(engine, flags), err) < 0 ||
        runtime_check_mounts(job, engine->mounts_lack, err) < 0 ||
        check_env(engine, env, err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    words_add_limited(&words, engine->script, flags);
    for (const struct row *row = engine->rows; row->words; row++) {
        add_part(&words, row, job, env);
    }
    words_add_all(&words, job->argv);
    ret_commands->env = engine->env_prefix ? prefixed(arena, engine->env_prefix, env)
                                           : runtime_env_secrets(arena, env);
    return words_end(&words, &ret_commands->argv, err);
}

static int apptainer(struct arena *arena, const struct runtime_job *job,
                     struct runtime_commands *ret_commands, struct err *err)
{
    return commands_of(&ENGINES[0], arena, job, ret_commands, err);
}

static int enroot(struct arena *arena, const struct runtime_job *job,
                  struct runtime_commands *ret_commands, struct err *err)
{
    return commands_of(&ENGINES[1], arena, job, ret_commands, err);
}

const struct runtime_driver RUNTIME_DRIVER_APPTAINER = {.name = "apptainer", .commands = apptainer};
const struct runtime_driver RUNTIME_DRIVER_ENROOT = {.name = "enroot", .commands = enroot};
