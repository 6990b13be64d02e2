/* SPDX-License-Identifier: Apache-2.0 */
/* reperf: finds the command, gives it its context, reports its error once, maps it to the exit status. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "load/places.h"

#define PATH_BYTES      4096
#define STACK_MIN_BYTES (1u << 20) /* a run takes 192 KiB */

static void print_group(FILE *out, const char *group)
{
    const struct cmd_row *row;
    fprintf(out, "%s\n", group);
    for (size_t idx = 0; (row = cmd_at(idx)); idx++) {
        if (row->group && strcmp(row->group, group) == 0) {
            fprintf(out, "  %-12s %s\n", row->cmd->name, row->cmd->summary);
        }
    }
}

static void print_usage(FILE *out)
{
    const struct cmd_row *row;
    const char *between = "Names of earlier releases, which still work:\n";
    fprintf(out,
            "reperf reproduces published deep-learning performance reports, and audits them.\n\n"
            "usage: reperf COMMAND [options]\n\n");
    for (const char *const *group = CMD_GROUPS; *group; group++) {
        print_group(out, *group);
    }
    fprintf(out,
            "\n--manifests DIR, anywhere: reports, formats and inventories of one's own, "
            "before ./manifests\n"
            "and the program's own.\n\nreperf COMMAND --help shows the options of a command, and "
            "the verbs of data and nodes;\nthe manual is reperf(1).\n");
    for (size_t idx = 0; (row = cmd_at(idx)); idx++) {
        if (!row->group) {
            fprintf(out, "%s%s", between, row->cmd->name);
            between = ", ";
        }
    }
    fprintf(out, ".\n");
}

static void print_command_help(const struct cmd *c, const char *verb_name)
{
    const struct cmd *const *verbs = cmd_verbs(c);
    for (const struct cmd *const *verb = verbs; verb && *verb; verb++) {
        if (strcmp((*verb)->name, verb_name) == 0) {
            printf("usage: reperf %s ", c->name);
            cmd_print_help(*verb);
            return;
        }
    }
    printf("usage: reperf %s %s%s\n\n%s\n\n", c->name, verbs ? "" : "[options] ", c->operands,
           c->summary);
    opt_print_help(stdout, c->opts);
    for (const struct cmd *const *verb = verbs; verb && *verb; verb++) {
        printf("  %-12s %s\n", (*verb)->name, (*verb)->summary);
    }
    if (verbs) {
        printf("\nreperf %s VERB --help shows the options of a verb.\n", c->name);
    }
    printf("  %-30s %s\n", "    --help", "this text");
}

/* Descriptors 0, 1 and 2 are open from here on, whatever the caller closed, so that no file of ours becomes one of them.
   A standard output that was closed cannot be written to: a result that nobody gets is an error. */
static void open_standard_fds(void)
{
    int fd;
    do {
        bool is_out = fcntl(STDIN_FILENO, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) < 0;
        fd = open("/dev/null", is_out ? O_RDONLY : O_RDWR); /* not O_CLOEXEC: for children too */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        close(fd);
    }
}

/* A smaller stack is made larger where the caller may; otherwise it would end a command by a signal, in the middle. */
static bool has_stack(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_MIN_BYTES) {
        return true;
    }
    limit.rlim_cur = limit.rlim_max < STACK_MIN_BYTES ? limit.rlim_max : STACK_MIN_BYTES;
    if (limit.rlim_cur == STACK_MIN_BYTES && setrlimit(RLIMIT_STACK, &limit) == 0) {
        return true;
    }
    log_line(LOG_ERROR, "a stack of %llu KiB (ulimit -s), expected at least %u",
             (unsigned long long)limit.rlim_cur >> 10, STACK_MIN_BYTES >> 10);
    return false;
}

/* The data folder: $REPERF_ROOT, else two levels above the program (build/MODE/reperf), else PREFIX/share/reperf. */
static const char *find_root(struct arena *arena, const char *self)
{
    const char *named = getenv("REPERF_ROOT");
    const char *const places[] = {"../..", "../share/reperf"};
    const struct str folder = str_rcut(str_of(self), 0, "/");
    if (named && named[0]) {
        return named;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(places); idx++) {
        char *place = arena_printf(arena, "%.*s%s", STR_ARG(folder), places[idx]);
        CLEANUP(free) char *whole = realpath(place, NULL);
        if (whole && fs_is_dir(fs_join(arena, whole, "manifests"))) {
            return arena_strndup(arena, whole, strlen(whole));
        }
    }
    return ".";
}

/* named: the variable's, if it is set. NULL: there is no home either. */
static const char *find_folder(struct arena *arena, const char *named, const char *xdg,
                               const char *in_home, const char *name)
{
    return named && named[0] ? named : places_user(arena, xdg, in_home, name);
}

/* --manifests DIR, wherever it stands before "--", is taken out of the arguments: the same for every command. */
static int take_manifests(int argc, char **argv, const char **ret_named)
{
    int n = 0;
    bool is_over = false;
    *ret_named = NULL;
    for (int idx = 0; idx < argc; idx++) {
        is_over = is_over || strcmp(argv[idx], "--") == 0;
        if (!is_over && strncmp(argv[idx], "--manifests=", 12) == 0) {
            *ret_named = argv[idx] + 12;
        } else if (!is_over && strcmp(argv[idx], "--manifests") == 0) {
            if (idx + 1 == argc) {
                return -1;
            }
            *ret_named = argv[++idx];
        } else {
            argv[n++] = argv[idx];
        }
    }
    argv[n] = NULL;
    return n;
}

/* Where manifests are looked for next to the program's own (load/places.h), first to last: named, the variable's, and unless
   the data folder is named too, ./manifests and the user's data folder. */
static const char *set_places(struct arena *arena, const char *named)
{
    const char *variable = getenv("REPERF_MANIFESTS");
    char *listed = arena_printf(arena, "%s", variable ? variable : "");
    const char *root = getenv("REPERF_ROOT");
    const char *user =
        places_user(arena, getenv("XDG_DATA_HOME"), ".local/share", "reperf/manifests");
    bool is_alone = root && root[0];
    for (char *at = listed; (at = strchr(at, ':'));) {
        *at = '\n';
    }
    const char *list = arena_printf(arena, "%s\n%s\n%s\n%s", named ? named : "", listed,
                                    !is_alone && fs_is_dir("manifests") ? "./manifests" : "",
                                    !is_alone && user && fs_is_dir(user) ? user : "");
    (void)setenv(PLACES_LIST, list, 1);
    return named ? named : listed[0] ? variable : NULL;
}

static const char *find_self(struct arena *arena)
{
    char path[PATH_BYTES];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    return len > 0 ? arena_strndup(arena, path, (size_t)len) : "reperf";
}

/* REPERF_LOG is the lowest level of messages that are shown. */
static int set_log_level(struct err *err)
{
    static const char *const NAMES[] = {"error", "warning", "info", "debug"};
    const char *wanted = getenv("REPERF_LOG");
    if (!wanted || !wanted[0]) {
        return 0;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        if (strcmp(wanted, NAMES[idx]) == 0) {
            log_set_level((enum log_level)idx);
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "REPERF_LOG=%.100s: expected error, warning, info or debug",
                   wanted);
}

static int run_command(const struct cmd *c, int argc, char **argv, const char *manifests)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    manifests = set_places(&arena, manifests);
    const char *self = find_self(&arena);
    struct cmd_ctx ctx = {clock_system(),
                          find_root(&arena, self),
                          find_folder(&arena, getenv("REPERF_STATE"), getenv("XDG_STATE_HOME"),
                                      ".local/state", "reperf"),
                          find_folder(&arena, getenv("REPERF_STORE"), getenv("XDG_DATA_HOME"),
                                      ".local/share", "reperf/store"),
                          self,
                          manifests};
    int status = !ctx.state || !ctx.store
                     ? err_set(&err, ERR_USAGE,
                               "no home folder: expected HOME, or REPERF_STATE and REPERF_STORE")
                 : set_log_level(&err) < 0 ? -1
                                           : cmd_run(c, &ctx, argc, argv, &err);
    if (status < 0) {
        if (err.msg[0]) {
            log_line(LOG_ERROR, "%s", err.msg);
        }
        return err.code == ERR_INTERRUPTED && stop_is_asked() ? stop_status()
                                                              : err_exit_status(err.code);
    }
    return status;
}

static int fail_command(const char *name)
{
    char text[NEAREST_TEXT_MAX];
    struct nearest nearest = nearest_to(name);
    for (size_t idx = 0; cmd_at(idx); idx++) {
        nearest_offer(&nearest, cmd_at(idx)->cmd->name);
    }
    log_line(LOG_ERROR, "unknown command \"%.100s\"%s; reperf --help lists them", name,
             nearest_text(&nearest, text));
    return 2;
}

static int flushed(void)
{
    return fflush(stdout) == 0 ? 0 : 10;
}

/* help; help COMMAND; help nodes VERB. */
static int help(int argc, char **argv)
{
    const struct cmd_row *row = argc > 0 ? cmd_find(argv[0]) : NULL;
    if (argc == 0) {
        print_usage(stdout);
        return flushed();
    }
    if (!row) {
        return fail_command(argv[0]);
    }
    print_command_help(row->cmd, argc > 1 ? argv[1] : "");
    return flushed();
}

/* --json before the command is the command's: it goes to its place behind it. */
static void move_json(int argc, char **argv)
{
    while (argc > 2 && strcmp(argv[1], "--json") == 0 && argv[2][0] != '-') {
        char *json = argv[1];
        argv[1] = argv[2];
        argv[2] = json;
    }
}

/* A core file would hold what is secret. A job may raise its own limit again. */
static void keep_no_core(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) == 0) {
        limit.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &limit);
    }
}

int main(int argc, char **argv)
{
    const char *manifests = NULL;
    open_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    keep_no_core();
    signal(SIGXFSZ, SIG_IGN); /* a write over the limit of file sizes fails instead, and is said */
    if (!has_stack()) {
        return 2;
    }
    argc = take_manifests(argc, argv, &manifests);
    if (argc < 0) {
        log_line(LOG_ERROR, "--manifests: expected a folder");
        return 2;
    }
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    move_json(argc, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return help(0, NULL);
    }
    if (strcmp(argv[1], "help") == 0) {
        return help(argc - 2, argv + 2);
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("reperf %s\n", REPERF_VERSION);
        return flushed();
    }
    const struct cmd_row *row = cmd_find(argv[1]);
    if (!row) {
        return fail_command(argv[1]);
    }
    if (cmd_asks_for_help(argc - 2, argv + 2)) {
        print_command_help(row->cmd, argv[2]);
        return flushed();
    }
    if (row->now) {
        log_line(LOG_INFO, "\"%s\" is now \"%s\"; the old name works in this release too",
                 row->cmd->name, row->now);
    }
    return run_command(row->cmd, argc - 2, argv + 2, manifests);
}
