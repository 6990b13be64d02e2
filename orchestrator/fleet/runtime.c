/* SPDX-License-Identifier: Apache-2.0 */
/* The container engines as rows of one table: the words that each gives for a part of what is asked. What is asked and has no row is
   refused. docker and podman are run in the tests; apptainer and enroot are untried: neither is in the distribution, their words are
   tested and were never run by us. Their image is a file and their network the node's own; so are enroot's IPC and devices.
   Source: apptainer.org, user guide, "apptainer exec", and cmd/internal/cli/action_flags.go at 917d66577963; doc/cmd/start.md,
   doc/image-format.md and doc/standard-hooks.md of github.com/NVIDIA/enroot at 8ea147d337da (read 2026-11). podman's GPUs: NVIDIA
   Container Toolkit, "Support for Container Device Interface". */
#include "base/base.h"

#include "fleet/runtime.h"

#include "base/embed.h"
#include "base/secret.h"
#include "base/str.h"

#define RUNTIME_ARGV_MAX 4096
#define RUNTIME_WORD_MAX (1u << 20) /* bytes */
/* The environment of the node's own network, set by the script that starts the engine, read by the check inside. */
#define RUNTIME_ENV_NETNS "REPERF_HOST_NETNS"

EMBED(inside_sh, "orchestrator/fleet/inside.sh");

struct argv_words { /* an argv being made */
    struct arena *arena;
    const char **items; /* RUNTIME_ARGV_MAX + 1 */
    size_t n;
    bool is_full;
};

static void words_init(struct argv_words *words, struct arena *arena)
{
    *words = (struct argv_words){.arena = arena,
                                 .items = arena_array(arena, const char *, RUNTIME_ARGV_MAX + 1)};
}

static void words_add(struct argv_words *words, const char *word)
{
    words->is_full = words->is_full || words->n == RUNTIME_ARGV_MAX;
    if (!words->is_full) {
        words->items[words->n++] = word;
    }
}

static PRINTF_LIKE(2, 3) void words_addf(struct argv_words *words, const char *fmt, ...)
{
    CLEANUP(free) char *text = NULL;
    va_list args;
    va_start(args, fmt);
    int len = vasprintf(&text, fmt, args);
    va_end(args);
    ASSERT(len >= 0);
    words_add(words, arena_strndup(words->arena, text, (size_t)len));
}

static void words_add_all(struct argv_words *words, const char *const *argv)
{
    for (; *argv; argv++) {
        words_add(words, *argv);
    }
}

/* ERR_CONTAINER where it is longer than RUNTIME_ARGV_MAX. */
static int words_end(struct argv_words *words, const char *const **ret_argv, struct err *err)
{
    if (words->is_full) {
        return err_set(err, ERR_CONTAINER, "the container's command has more than %d words",
                       RUNTIME_ARGV_MAX);
    }
    words->items[words->n] = NULL;
    *ret_argv = words->items;
    return 0;
}

/* ---- environment ---- */

/* Never NULL. */
static const struct container_flags *flags_of(const struct runtime_job *job)
{
    static const struct container_flags NONE;
    return job->flags ? job->flags : &NONE;
}

static struct str env_name(const char *entry)
{
    struct str rest = str_of(entry), name = STR_EMPTY;
    (void)str_next(&rest, '=', &name);
    return name;
}

static bool has_name(const char *const *env, struct str name)
{
    for (; env && *env; env++) {
        if (str_eq(env_name(*env), name)) {
            return true;
        }
    }
    return false;
}

/* flags->env and job->env, the latter's values where both have a name; ended by NULL. */
static const char *const *env_of(struct arena *arena, const struct runtime_job *job)
{
    const struct container_flags *flags = flags_of(job);
    size_t n = 0, n_job = 0;
    const char **env;
    while (job->env && job->env[n_job]) {
        n_job++;
    }
    env = arena_array(arena, const char *, n_job + flags->n_env + 1);
    for (size_t idx = 0; idx < flags->n_env; idx++) {
        const char *entry = str_z(arena, flags->env[idx]);
        if (!has_name(job->env, env_name(entry))) {
            env[n++] = entry;
        }
    }
    for (size_t idx = 0; idx < n_job; idx++) {
        env[n++] = job->env[idx];
    }
    return env;
}

/* Of "NAME=VALUE": a name that sounds like a secret. */
static bool env_is_secret(const char *entry)
{
    struct str name = env_name(entry);
    struct str value = str_sub(str_of(entry), name.len + 1, SIZE_MAX);
    return secret_is(name, value);
}

/* Those that are; ended by NULL. */
static const char *const *env_secrets(struct arena *arena, const char *const *env)
{
    struct argv_words words;
    words_init(&words, arena);
    for (; *env; env++) {
        if (env_is_secret(*env)) {
            words_add(&words, *env);
        }
    }
    return words.items;
}

/* ---- checks ---- */

/* Mount paths with one of these characters cannot be written in the engine's syntax. */
static int check_mounts(const struct runtime_job *job, const char *forbidden, struct err *err)
{
    for (size_t idx = 0; idx < job->n_mounts; idx++) {
        const struct str paths[] = {job->mounts[idx].host, job->mounts[idx].inside};
        for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
            bool is_bad = !container_is_path(paths[p]);
            for (const char *c = forbidden; *c && !is_bad; c++) {
                is_bad = memchr(paths[p].ptr, *c, paths[p].len) != NULL;
            }
            if (is_bad) {
                return err_set(err, ERR_CONTAINER,
                               "\"%.*s\" cannot be mounted: expected an absolute path without "
                               "blanks, $ ` and %s",
                               (int)(paths[p].len < 200 ? paths[p].len : 200),
                               paths[p].ptr ? paths[p].ptr : "", forbidden);
            }
        }
    }
    return 0;
}

static int check_name(const char *name, struct err *err)
{
    size_t len = name ? strlen(name) : 0;
    if (len && (!str_is_made_of(str_of(name), "a-zA-Z0-9_.-") || strchr("-_.", name[0]))) {
        return err_set(err, ERR_CONTAINER, "\"%.100s\" is not a container name", name);
    }
    return len > 0 && len <= 200
               ? 0
               : err_set(err, ERR_CONTAINER, "a container's name has 1 to 200 characters, not %zu",
                         len);
}

/* ---- the engines ---- */

enum part {
    ALWAYS,
    END,
    WITH_ENTRYPOINT, /* the image's own */
    WITHOUT_ENTRYPOINT,
    PROGRAM, /* argv[0], instead of the image's entrypoint: argv goes on after it */
    JOB_NAME,
    RUN_ID,
    IMAGE_ID,
    IMAGE_FILE,
    HOST_NET,
    HOST_IPC,
    OWN_IPC,
    HOST_PID,
    OWN_PID,
    PRIVILEGED,
    CACHE,
    GPUS,
    GPUS_UNNAMED, /* and the environment names none */
    SHM,
    SHM_OWN, /* with the host's IPC it is the host's /dev/shm; podman refuses both together. The check inside looks at its size */
    MEMLOCK,
    STACK,
    FILES,
    PROCESSES,
    MEMORY,
    CPUSET,
    WORKDIR,
    DEVICE, /* each, as those below */
    CAP,
    SECURITY,
    MOUNT,
    ENV, /* of a secret the name: its value is in the engine's own environment */
};

/* Words with blanks between them. In a word %v is the part's value; of a limit %k is it in KiB and %u in pieces, or "unlimited"; of a
   mount %h and %i are the paths there and inside. */
struct row {
    enum part part;
    const char *words;
};

struct engine {
    const char *script;     /* run with what the rows give as its words */
    const struct row *rows; /* in the order of the words; NULL: no container */
    const char *gpus;       /* the words of a row of GPUS */
    const char *mounts_lack;
    const char *
        env_prefix; /* of the names in the engine's own environment; NULL: there only secrets are, rows have the rest */
    const char *env_lacks; /* a value with one of these would be expanded */
    bool is_confined;      /* by security options, which it needs a word to turn off */
    bool has_cleanup;
};

/* $1 the engine, then what follows its `run`. TERM reaches the client too, which passes it on: this only has to live on until it
   ends, also where nobody reads its log any more. podman's conmon writes a file "oom" where it is started: there, not here. The
   container is known by its id, since its name could be another's. One that never ran has year 1 as StartedAt. It is not removed by
   the engine (--rm) but here, after it was asked how it ended, and by cleanup where this was killed. */
static const char OCI_RUN[] =
    "engine=$1\n"
    "shift\n"
    "tmp=$(mktemp -d) && cd \"$tmp\" || exit 125\n"
    "trap : HUP INT TERM PIPE\n" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
    "export " RUNTIME_ENV_NETNS "\n"
    "\"$engine\" run --cidfile \"$tmp/id\" \"$@\"\n"
    "rc=$?\n"
    "id= started=false oom=false\n"
    "[ ! -s \"$tmp/id\" ] || read -r id <\"$tmp/id\" || [ -n \"$id\" ]\n"
    "cd / && rm -rf \"$tmp\"\n"
    "if [ \"$rc\" -ne 0 ]; then\n"
    "  [ -z \"$id\" ] || for wait in 1 0; do\n"
    "    case $(\"$engine\" container inspect --format "
    "'{{.State.OOMKilled}} {{.State.StartedAt}}' \"$id\" 2>/dev/null) in\n"
    "    'true '*) oom=true started=true ;;\n"
    "    'false 0001-'*) ;;\n"
    "    'false '*) started=true; [ \"$rc\" -ne 137 ] || { sleep \"$wait\"; continue; } ;;\n"
    "    *) oom=null started=null ;;\n"
    "    esac\n"
    "    break\n"
    "  done\n"
    "  printf '\\n{\"event\":\"container_end\",\"status\":%s,\"oom_killed\":%s,\"started\":%s}\\n' "
    "\"$rc\" \"$oom\" \"$started\" >&2\n"
    "fi\n"
    "[ -z \"$id\" ] || \"$engine\" rm -f \"$id\" >/dev/null 2>&1\n"
    "exit \"$rc\"\n";

/* $1 the engine, $2 the name. An engine that does not know the container has nothing to remove. */
static const char OCI_CLEANUP[] =
    "out=$(\"$1\" rm -f \"$2\" 2>&1) && exit 0\n"
    "case $out in *'o such container'* | *'no container with'*) exit 0 ;; esac\n"
    "printf '%s\\n' \"$out\" >&2\n"
    "exit 1\n";

/* --mount, not -v: a source that is not there is an error and not made as an empty folder. As much memory with swap as without:
   none. */
static const struct row OCI[] = {
    {JOB_NAME, "--name=%v"},
    {RUN_ID, "--label=" RUNTIME_LABEL_RUN "=%v"},
    {JOB_NAME, "--label=" RUNTIME_LABEL_JOB "=%v"},
    {ALWAYS, "--pull=never --log-driver=none"},
    {HOST_NET, "--network=host"},
    {HOST_IPC, "--ipc=host"},
    {HOST_PID, "--pid=host"},
    {PRIVILEGED, "--privileged"},
    {GPUS, NULL},
    {SHM_OWN, "--shm-size=%v"},
    {MEMLOCK, "--ulimit memlock=%v:%v"},
    {STACK, "--ulimit stack=%v:%v"},
    {FILES, "--ulimit nofile=%v:%v"},
    {PROCESSES, "--ulimit nproc=%v:%v"},
    {MEMORY, "--memory=%v --memory-swap=%v"},
    {CPUSET, "--cpuset-cpus=%v"},
    {DEVICE, "--device %v"},
    {CAP, "--cap-add %v"},
    {SECURITY, "--security-opt %v"},
    {WORKDIR, "--workdir=%v"},
    {MOUNT, "--mount type=bind,source=%h,target=%i,readonly"},
    {CACHE, "--mount type=volume,source=" RUNTIME_CACHE_NAME ",target=" RUNTIME_CACHE},
    {ALWAYS, "--env " RUNTIME_ENV_NETNS},
    {ENV, "--env %v"},
    {PROGRAM, "--entrypoint=%v"},
    {IMAGE_ID, "%v"},
    {END, NULL}};

/* Soft limits are inherited, there is no option for them: words LIMIT=KIB-OR-COUNT up to "--". One that cannot be had is left for the
   check inside to find. The word "cache" sets $cache, which is made where it is not there. */
#define TAKE_LIMITS                                                                                \
    "cache=\n"                                                                                     \
    "while [ \"$1\" != -- ]; do\n"                                                                 \
    "  case $1 in\n"                                                                               \
    "  cache) cache=${XDG_CACHE_HOME:-$HOME/.cache}/" RUNTIME_CACHE_NAME "\n"                      \
    "    mkdir -p \"$cache\" || exit 125 ;;\n"                                                     \
    "  l=* | s=* | n=* | u=*) ulimit -S -\"${1%%=*}\" \"${1#*=}\" 2>/dev/null ;;\n"                \
    "  esac\n"                                                                                     \
    "  shift\n"                                                                                    \
    "done\n"                                                                                       \
    "shift\n"
#define LIMITS                                                                                     \
    {MEMLOCK, "l=%k"}, {STACK, "s=%k"}, {FILES, "n=%u"}, {PROCESSES, "u=%u"}, {CACHE, "cache"},    \
    {                                                                                              \
        ALWAYS, "--"                                                                               \
    }

/* Its own /dev/shm is small, and has no option; its --env splits values at commas. */
static const char APPTAINER_RUN[] = TAKE_LIMITS
    "APPTAINERENV_" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
    "export APPTAINERENV_" RUNTIME_ENV_NETNS "\n"
    "mode=$1\n"
    "shift\n"
    "exec apptainer \"$mode\" ${cache:+--bind \"$cache:" RUNTIME_CACHE ":rw\"} \"$@\"\n";
static const struct row APPTAINER[] = {LIMITS,
                                       {WITH_ENTRYPOINT, "run"},
                                       {WITHOUT_ENTRYPOINT, "exec"},
                                       {ALWAYS, "--contain --cleanenv --no-eval --writable-tmpfs"},
                                       {OWN_PID, "--pid"},
                                       {OWN_IPC, "--ipc"},
                                       {GPUS, NULL},
                                       {SHM, "--bind /dev/shm:/dev/shm"},
                                       {DEVICE, "--bind %v"},
                                       {CAP, "--add-caps CAP_%v"},
                                       {MEMORY, "--memory %v"},
                                       {CPUSET, "--cpuset-cpus %v"},
                                       {WORKDIR, "--pwd %v"},
                                       {MOUNT, "--bind %h:%i:ro"},
                                       {IMAGE_FILE, "%v"},
                                       {END, NULL}};

/* Without the image's entrypoint the command is run by a script of two words, which enroot takes as a file. It expands what it reads
   of the environment. */
static const char ENROOT_RUN[] =
    TAKE_LIMITS "mode=$1\n"
                "shift\n" RUNTIME_ENV_NETNS "=$(readlink /proc/self/ns/net)\n"
                "export " RUNTIME_ENV_NETNS "\n"
                "[ -z \"$cache\" ] || set -- --mount "
                "\"$cache:" RUNTIME_CACHE ":none:x-create=dir,bind,rw\" \"$@\"\n"
                "[ \"$mode\" = plain ] || exec enroot start \"$@\"\n"
                "tmp=$(mktemp -d) || exit 125\n"
                "trap : HUP INT TERM\n"
                "printf '%s\\n' 'exec \"$@\"' >\"$tmp/rc\"\n"
                "enroot start --rc \"$tmp/rc\" \"$@\"\n"
                "rc=$?\n"
                "rm -rf \"$tmp\"\n"
                "exit \"$rc\"\n";
static const struct row ENROOT[] = {LIMITS,
                                    {WITH_ENTRYPOINT, "entrypoint"},
                                    {WITHOUT_ENTRYPOINT, "plain"},
                                    {ALWAYS, "--rw"},
                                    {MOUNT, "--mount %h:%i:none:x-create=auto,bind,ro"},
                                    {ALWAYS, "--env " RUNTIME_ENV_NETNS},
                                    {ENV, "--env %v"},
                                    {GPUS_UNNAMED, "--env NVIDIA_VISIBLE_DEVICES=all"},
                                    {ALWAYS, "--"},
                                    {IMAGE_FILE, "%v"},
                                    {END, NULL}};

static const struct engine ENGINES[RUNTIME_KIND_COUNT] = {
    [RUNTIME_DOCKER] = {OCI_RUN, OCI, "--gpus=all", ",\"", NULL, "", true, true},
    [RUNTIME_PODMAN] = {OCI_RUN, OCI, "--device nvidia.com/gpu=all", ",\"", NULL, "", true, true},
    [RUNTIME_APPTAINER] = {APPTAINER_RUN, APPTAINER, "--nv", ",:", "APPTAINERENV_", "", false,
                           false},
    [RUNTIME_ENROOT] = {ENROOT_RUN, ENROOT, NULL, ":", NULL, "$\n", true, false},
};

/* ---- what is asked ---- */

struct value {
    struct str text;
    int64_t limit;
    const struct container_mount *mount;
};

struct runtime_wish { /* of one job */
    struct arena *arena;
    const struct runtime_job *job;
    const struct container_flags *flags;
    const char *const *env;
    const struct engine *engine;
};

static bool names_gpus(const char *const *env)
{
    for (; *env; env++) {
        if (str_eq_z(env_name(*env), "NVIDIA_VISIBLE_DEVICES")) {
            return true;
        }
    }
    return false;
}

static int64_t number_of(const struct container_flags *flags, enum part part)
{
    switch ((int)part) {
    case SHM_OWN:
        return flags->is_host_ipc ? 0 : flags->shm_bytes;
    case MEMLOCK:
        return flags->memlock_bytes;
    case STACK:
        return flags->stack_bytes;
    case FILES:
        return flags->n_files;
    case PROCESSES:
        return flags->n_processes;
    case MEMORY:
        return flags->memory_bytes;
    default:
        return 0;
    }
}

static bool is_claimed(const struct runtime_wish *wish, enum part part)
{
    const struct container_flags *flags = wish->flags;
    switch ((int)part) {
    case ALWAYS:
        return true;
    case WITH_ENTRYPOINT:
        return wish->job->keeps_entrypoint;
    case WITHOUT_ENTRYPOINT:
        return !wish->job->keeps_entrypoint;
    case HOST_NET:
        return flags->is_host_net;
    case HOST_IPC:
        return flags->is_host_ipc;
    case OWN_IPC:
        return !flags->is_host_ipc;
    case HOST_PID:
        return flags->is_host_pid;
    case OWN_PID:
        return !flags->is_host_pid;
    case PRIVILEGED:
        return flags->is_privileged;
    case CACHE:
        return wish->job->keeps_cache;
    case GPUS:
        return flags->wants_gpus;
    case GPUS_UNNAMED:
        return flags->wants_gpus && !names_gpus(wish->env);
    case SHM:
        return flags->shm_bytes || flags->is_host_ipc;
    default:
        return false;
    }
}

static struct str text_of(const struct runtime_wish *wish, enum part part)
{
    const struct runtime_job *job = wish->job;
    switch ((int)part) {
    case PROGRAM:
        return job->keeps_entrypoint ? STR_EMPTY : str_of(job->argv[0]);
    case JOB_NAME:
        return str_of(job->name);
    case RUN_ID:
        return str_of(job->run_id);
    case IMAGE_ID:
        return job->image->id;
    case IMAGE_FILE:
        return job->image->file;
    case CPUSET:
        return wish->flags->cpuset;
    case WORKDIR:
        return wish->flags->workdir;
    default:
        return STR_EMPTY;
    }
}

/* An engine that does not confine needs no word not to. */
static bool is_needed(const struct engine *engine, enum part part, struct str item)
{
    static const char *const OFF[] = {"seccomp=unconfined", "apparmor=unconfined", "label=disable",
                                      NULL};
    return part != SECURITY || engine->is_confined || !str_eq_any(item, OFF);
}

/* The values of a part, idx 0, 1, ...; false: there are no more. */
static bool value_of(const struct runtime_wish *wish, enum part part, size_t idx,
                     struct value *ret_value)
{
    const struct container_flags *flags = wish->flags;
    const struct str *items = part == DEVICE ? flags->devices
                              : part == CAP  ? flags->caps
                                             : flags->security;
    size_t n_items = part == DEVICE     ? flags->n_devices
                     : part == CAP      ? flags->n_caps
                     : part == SECURITY ? flags->n_security
                                        : 0;
    *ret_value = (struct value){0};
    if (part == MOUNT) {
        ret_value->mount = &wish->job->mounts[idx];
        return idx < wish->job->n_mounts;
    }
    if (part == ENV) {
        const char *entry = wish->env[idx];
        ret_value->text = entry && env_is_secret(entry) ? env_name(entry) : str_of(entry);
        return entry != NULL;
    }
    if (n_items) {
        ret_value->text = idx < n_items ? items[idx] : STR_EMPTY;
        return idx < n_items;
    }
    ret_value->text = text_of(wish, part);
    ret_value->limit = number_of(flags, part);
    if (ret_value->limit) {
        ret_value->text = str_printf(wish->arena, "%lld", (long long)ret_value->limit);
    }
    return idx == 0 && (ret_value->text.ptr || is_claimed(wish, part));
}

static bool has_row(const struct engine *engine, enum part part)
{
    const struct row *row = engine->rows;
    while (row && row->part != END && row->part != part) {
        row++;
    }
    return row && row->part == part;
}

/* What is asked for and no row gives. */
static const char *beyond(const struct runtime_wish *wish)
{
    static const struct {
        enum part part;
        const char *what;
    } PARTS[] = {{MEMORY, "a memory limit"},     {CPUSET, "a set of CPUs"},
                 {PRIVILEGED, "privileges"},     {CAP, "capabilities"},
                 {SECURITY, "security options"}, {WORKDIR, "a working folder"}};
    for (size_t at = 0; at < ARRAY_LEN(PARTS); at++) {
        struct value value;
        for (size_t idx = 0; value_of(wish, PARTS[at].part, idx, &value); idx++) {
            if (!has_row(wish->engine, PARTS[at].part) &&
                is_needed(wish->engine, PARTS[at].part, value.text)) {
                return PARTS[at].what;
            }
        }
    }
    return NULL;
}

/* ---- words ---- */

static void add_value(struct strbuf *text, const struct value *value, char letter)
{
    switch (letter) {
    case 'h':
        strbuf_add_str(text, value->mount->host);
        break;
    case 'i':
        strbuf_add_str(text, value->mount->inside);
        break;
    case 'k':
    case 'u':
        if (value->limit == LIMIT_UNLIMITED) {
            strbuf_add_z(text, "unlimited");
        } else {
            strbuf_add_i64(text, letter == 'k' ? value->limit / 1024 : value->limit);
        }
        break;
    default:
        strbuf_add_str(text, value->text);
        break;
    }
}

static void add_row(const struct runtime_wish *wish, struct argv_words *words,
                    const struct row *row, const struct value *value)
{
    struct str rest = str_of(row->words ? row->words : wish->engine->gpus), word;
    while (str_next(&rest, ' ', &word)) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(RUNTIME_WORD_MAX);
        for (size_t at = 0; at < word.len; at++) {
            if (word.ptr[at] == '%') {
                add_value(&text, value, word.ptr[++at]);
            } else {
                strbuf_add_char(&text, word.ptr[at]);
            }
        }
        words->is_full = words->is_full || text.is_full;
        words_add(words, arena_strndup(words->arena, text.ptr, text.len));
    }
}

static void add_rows(const struct runtime_wish *wish, struct argv_words *words)
{
    const char *const *argv = wish->job->argv;
    for (const struct row *row = wish->engine->rows; row->part != END; row++) {
        struct value value;
        for (size_t idx = 0; value_of(wish, row->part, idx, &value); idx++) {
            add_row(wish, words, row, &value);
        }
    }
    words_add_all(words, argv + (has_row(wish->engine, PROGRAM) && !wish->job->keeps_entrypoint));
}

/* ---- checks ---- */

static int check(const struct runtime_wish *wish, const char *name, struct err *err)
{
    const struct runtime_image *image = wish->job->image;
    const char *what = beyond(wish);
    if (has_row(wish->engine, IMAGE_ID) && !image->id.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: its id is not known", STR_ARG(image->name));
    }
    if (has_row(wish->engine, IMAGE_FILE) && !image->file.ptr) {
        return err_set(err, ERR_CONTAINER, "image %.*s: no file of it on the nodes",
                       STR_ARG(image->name));
    }
    if (what) {
        return err_set(err, ERR_CONTAINER, "%s cannot give a container %s", name, what);
    }
    for (const char *const *env = wish->env; *env; env++) {
        if (strpbrk(*env, wish->engine->env_lacks)) {
            return err_set(err, ERR_CONTAINER, "%.*s has a value that %s would expand",
                           STR_ARG(env_name(*env)), name);
        }
    }
    return check_mounts(wish->job, wish->engine->mounts_lack, err);
}

/* ---- commands ---- */

static void add_script(struct argv_words *words, const char *script, const char *name)
{
    words_add(words, "/bin/sh");
    words_add(words, "-c");
    words_add(words, script);
    words_add(words, name);
}

/* The workload itself. What only a container can give is refused. */
static int commands_without(const struct runtime_wish *wish, struct runtime_commands *ret_commands,
                            struct err *err)
{
    struct runtime_wish beside = *wish;
    struct container_flags flags = *wish->flags;
    struct argv_words words;
    flags.workdir = STR_EMPTY; /* which needs none */
    beside.flags = &flags;
    const char *what = beyond(&beside);
    if (what) {
        return err_set(err, ERR_CONTAINER, "a plain process cannot give a container %s", what);
    }
    for (size_t idx = 0; idx < wish->job->n_mounts; idx++) {
        const struct container_mount *mount = &wish->job->mounts[idx];
        if (!str_eq(mount->host, mount->inside)) {
            return err_set(err, ERR_CONTAINER, "%.*s cannot be seen as %.*s without a container",
                           STR_ARG(mount->host), STR_ARG(mount->inside));
        }
    }
    words_init(&words, wish->arena);
    if (wish->flags->workdir.ptr) {
        add_script(&words, "cd \"$1\" && shift && exec \"$@\"", "reperf-run");
        words_add(&words, str_z(wish->arena, wish->flags->workdir));
    }
    words_add_all(&words, wish->job->argv);
    ret_commands->env = wish->env;
    return words_end(&words, &ret_commands->argv, err);
}

static const char *const *prefixed(struct arena *arena, const char *prefix, const char *const *env)
{
    struct argv_words words;
    words_init(&words, arena);
    for (; *env; env++) {
        words_addf(&words, "%s%s", prefix, *env);
    }
    return words.items;
}

static int table_commands(struct arena *arena, enum runtime_kind kind,
                          const struct runtime_job *job, struct runtime_commands *ret_commands,
                          struct err *err)
{
    const struct engine *engine = &ENGINES[kind];
    const char *name = RUNTIME_KIND_NAMES[kind];
    const struct runtime_wish wish = {arena, job, flags_of(job), env_of(arena, job), engine};
    struct argv_words words, cleanup;
    if (!engine->rows) {
        return commands_without(&wish, ret_commands, err);
    }
    if (check(&wish, name, err) < 0) {
        return -1;
    }
    words_init(&words, arena);
    add_script(&words, engine->script, "reperf-run");
    if (engine->has_cleanup) {
        words_add(&words, name);
        words_init(&cleanup, arena);
        add_script(&cleanup, OCI_CLEANUP, "reperf-cleanup");
        words_add(&cleanup, name);
        words_add(&cleanup, job->name);
        if (words_end(&cleanup, &ret_commands->cleanup, err) < 0) {
            return -1;
        }
    }
    add_rows(&wish, &words);
    ret_commands->env = engine->env_prefix ? prefixed(arena, engine->env_prefix, wish.env)
                                           : env_secrets(arena, wish.env);
    return words_end(&words, &ret_commands->argv, err);
}

int runtime_commands(struct arena *arena, enum runtime_kind kind, const struct runtime_job *job,
                     struct runtime_commands *ret_commands, struct err *err)
{
    struct runtime_commands commands = {0};
    static const char *const NO_ENV[] = {NULL};
    ASSERT(kind < RUNTIME_KIND_COUNT && job->argv && job->argv[0]);
    if (kind != RUNTIME_NONE) {
        ASSERT(job->image && job->run_id);
        if (check_name(job->name, err) < 0) {
            return -1;
        }
    }
    commands.env = NO_ENV;
    if (table_commands(arena, kind, job, &commands, err) < 0) {
        return err->code == ERR_CONTAINER ? err_wrap(err, "runtime %s", RUNTIME_KIND_NAMES[kind])
                                          : -1;
    }
    *ret_commands = commands;
    return 0;
}

/* ---- the check inside, by inside.sh ---- */

static void add_number(struct argv_words *words, const char *name, int64_t value)
{
    if (value != 0) {
        words_addf(words, "%s=%lld", name, (long long)value);
    }
}

int runtime_inside_check(struct arena *arena, const struct container_flags *flags, bool is_required,
                         const char *const *argv, const char *const **ret_argv, struct err *err)
{
    struct argv_words words;
    words_init(&words, arena);
    words_add(&words, "/bin/sh");
    words_add(&words, "-c");
    words_add(&words, embedded_body(EMBEDDED(inside_sh)).ptr);
    words_add(&words, "reperf-inside");
    if (is_required) {
        words_add(&words, "required");
    }
    add_number(&words, "shm", flags->shm_bytes);
    add_number(&words, "memlock", flags->memlock_bytes);
    add_number(&words, "stack", flags->stack_bytes);
    add_number(&words, "files", flags->n_files);
    add_number(&words, "procs", flags->n_processes);
    add_number(&words, "memory", flags->memory_bytes);
    if (flags->is_host_net) {
        words_add(&words, "net");
    }
    if (flags->wants_gpus) {
        words_add(&words, "gpus");
    }
    for (size_t idx = 0; idx < flags->n_devices; idx++) {
        /* HOST:INSIDE:RIGHTS */
        struct str rest = flags->devices[idx], host, inside;
        (void)str_next(&rest, ':', &host);
        inside = rest.ptr && rest.len && rest.ptr[0] == '/' && str_next(&rest, ':', &inside)
                     ? inside
                     : host;
        words_addf(&words, "device=%.*s", STR_ARG(inside));
    }
    words_add(&words, "--");
    words_add_all(&words, argv);
    return words_end(&words, ret_argv, err);
}
