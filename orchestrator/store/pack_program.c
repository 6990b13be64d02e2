/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/pack_program.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "sys/proc.h"

#define TICK_NS       (100 * NS_PER_MS)
#define STDERR_MAX    (64u << 10) /* of which the end is kept */
#define LAST_LINE_MAX 300
#define RELAY_MAX     4096

int pack_program_find(struct arena *arena, const char *self, const char **ret_path, struct err *err)
{
    const char *named = getenv("REPERF_PACK");
    struct str folder = str_of(self);
    const char *path = named;
    while (folder.len && folder.ptr[folder.len - 1] != '/') {
        folder.len--;
    }
    if (!named || !named[0]) {
        path = arena_printf(arena, "%.*s%s", STR_ARG(folder), PACK_PROGRAM);
    }
    if (!fs_exists(path)) {
        return err_set(err, ERR_WORKLOAD,
                       "%s: the program that makes synthetic datasets and shards is not here",
                       path);
    }
    *ret_path = path;
    return 0;
}

static void add_output(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* Copies the child's new stderr output to ours. The last bytes are kept for a message. */
static void relay(int fd, struct strbuf *last)
{
    char buf[RELAY_MAX];
    ssize_t n;
    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        if (fwrite(buf, 1, (size_t)n, stderr) != (size_t)n) {
            return;
        }
        if (last->len + (size_t)n > STDERR_MAX) {
            strbuf_clear(last);
        }
        strbuf_add(last, buf, (size_t)n);
    }
}

static struct str last_line(const struct strbuf *text)
{
    struct str rest = str_trim(strbuf_str(text));
    struct str line = STR_EMPTY;
    while (str_next(&rest, '\n', &line)) {
        continue;
    }
    return str_sub(line, 0, LAST_LINE_MAX);
}

/* Its exit statuses are ours. */
static enum err_code code_of_status(int status)
{
    static const enum err_code CODES[] = {ERR_USAGE,    ERR_MANIFEST, ERR_FETCH, ERR_INTEGRITY,
                                          ERR_WORKLOAD, ERR_PARSE,    ERR_DISK};
    for (size_t idx = 0; idx < ARRAY_LEN(CODES); idx++) {
        if (err_exit_status(CODES[idx]) == status) {
            return CODES[idx];
        }
    }
    return ERR_WORKLOAD;
}

static int wait_for(struct proc *proc, struct loop *loop, const struct net_opts *net, int stderr_fd,
                    struct strbuf *last, struct err *err)
{
    enum step step = STEP_AGAIN;
    bool is_stopping = false;
    while (step == STEP_AGAIN) {
        if (loop_once(loop, TICK_NS, err) < 0) {
            return -1;
        }
        if (!is_stopping && net->should_stop && net->should_stop()) {
            is_stopping = true;
            proc_stop(proc);
        }
        relay(stderr_fd, last);
        step = proc_step(proc, err);
    }
    relay(stderr_fd, last);
    if (step == STEP_FAIL) {
        return -1;
    }
    return is_stopping ? err_set(err, ERR_INTERRUPTED, "%s: interrupted", PACK_PROGRAM) : 0;
}

static int judge(const struct proc *proc, const char *const *argv, const struct strbuf *last,
                 struct err *err)
{
    struct str line = last_line(last);
    if (proc->signal_no) {
        return err_set(err, ERR_WORKLOAD, "%s %s was ended by signal %d", argv[0], argv[1],
                       proc->signal_no);
    }
    return proc->exit_status == 0 ? 0
                                  : err_set(err, code_of_status(proc->exit_status),
                                            "%s %s failed with status %d: %.*s", PACK_PROGRAM,
                                            argv[1], proc->exit_status, STR_ARG(line));
}

int pack_program_run(struct arena *arena, const struct store *store, const struct net_opts *net,
                     const char *const *argv, struct strbuf *out, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    CLEANUP(strbuf) struct strbuf last = {0};
    const char *path =
        store_path(store, arena_printf(arena, "tmp/%s-%d.stderr", PACK_PROGRAM, (int)getpid()));
    CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t n_env = 0;
    const struct proc_spec spec = {.argv = argv,
                                   .env = proc_env_allowed(arena, &n_env),
                                   .error_path = path,
                                   .on_output = add_output,
                                   .output_ctx = out};
    int result;
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "create %s: %s", path, err_errno_text(errno));
    }
    strbuf_init(&last, (size_t)2 * STDERR_MAX);
    loop_init(&loop, net->clock);
    result = proc_start(&proc, &loop, &spec, err);
    result = result < 0 ? -1 : wait_for(&proc, &loop, net, fd, &last, err);
    result = result < 0 ? -1 : judge(&proc, argv, &last, err);
    if (unlink(path) < 0) {
        log_line(LOG_DEBUG, "remove %s: %s", path, err_errno_text(errno));
    }
    return result;
}
