/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/child.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/stop.h"
#include "base/temp.h"
#include "sys/proc.h"

#define TICK_NS     (100 * NS_PER_MS)
#define RELAY_BYTES 4096

static void collect(void *ctx, const char *ptr, size_t len)
{
    if (ctx) {
        strbuf_add(ctx, ptr, len);
    }
}

/* What is new in the file of its stderr, to ours. */
static void relay(const struct child_call *call, int error_fd)
{
    char buf[RELAY_BYTES];
    ssize_t n = 1;
    while (call->shows_error && n > 0) {
        n = read(error_fd, buf, sizeof(buf));
        if (n > 0 && fwrite(buf, 1, (size_t)n, stderr) != (size_t)n) {
            return;
        }
    }
}

static int wait_for(const struct child_call *call, struct loop *loop, struct proc *proc,
                    int error_fd, struct child_result *result, struct err *err)
{
    enum step step = STEP_AGAIN;
    bool is_stopped = false;
    while (step == STEP_AGAIN) {
        if (loop_once(loop, TICK_NS, err) < 0) {
            return -1;
        }
        step = proc_step(proc, err);
        relay(call, error_fd);
        if (!is_stopped && stop_is_asked()) {
            is_stopped = true;
            proc_stop(proc);
        }
        if (!result->is_timed_out && call->is_alive && !call->is_alive(call->alive_ctx)) {
            result->is_timed_out = true;
            proc_stop(proc);
        }
    }
    if (step == STEP_FAIL) {
        return -1;
    }
    result->is_timed_out = result->is_timed_out || proc->is_timed_out;
    result->exit_status = proc->signal_no ? 128 + proc->signal_no : proc->exit_status;
    return is_stopped ? err_set(err, ERR_INTERRUPTED, "%s was stopped", call->argv[0]) : 0;
}

/* The last CHILD_ERROR_MAX bytes. */
static struct str read_end(struct arena *arena, int fd)
{
    char *text = arena_alloc(arena, CHILD_ERROR_MAX, 1);
    struct stat st;
    off_t from =
        fstat(fd, &st) == 0 && st.st_size > CHILD_ERROR_MAX ? st.st_size - CHILD_ERROR_MAX : 0;
    ssize_t got = pread(fd, text, CHILD_ERROR_MAX, from);
    return got > 0 ? (struct str){text, (size_t)got} : STR_EMPTY;
}

int child_run(struct arena *arena, struct clock_src clock, const struct child_call *call,
              struct child_result *ret_result, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    CLEANUP(fd) int input_fd = call->input_path ? open(call->input_path, O_RDONLY | O_CLOEXEC) : -1;
    CLEANUP(temp) struct temp *error = NULL;
    struct child_result result = {0};
    if (call->tmp_folder && temp_file(fs_join(arena, call->tmp_folder, ""), 0600, &error) < 0) {
        return err_set(err, ERR_IO, "no temporary file in %s", call->tmp_folder);
    }
    const struct proc_spec spec = {
        .argv = call->argv,
        .env = call->env,
        .folder = call->folder,
        .has_input = call->input_path,
        .input_fd = input_fd,
        .output_path = call->output_path,
        .error_path = error ? error->path : NULL,
        .on_output = call->output_path ? NULL : collect,
        .output_ctx = call->out,
        .deadline_ns = call->deadline_ns,
    };
    if (call->input_path && input_fd < 0) {
        return err_errno(err, "open", call->input_path);
    }
    loop_init(&loop, clock);
    int status = proc_start(&proc, &loop, &spec, err);
    status =
        status < 0 ? status : wait_for(call, &loop, &proc, error ? error->fd : -1, &result, err);
    result.error = status < 0 || !error ? STR_EMPTY : read_end(arena, error->fd);
    if (status < 0) {
        return -1;
    }
    *ret_result = result;
    return 0;
}

int child_capture(struct clock_src clock, const char *const *argv, int64_t deadline_ns,
                  struct strbuf *out, int *ret_exit_status, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n_env = 0;
    const struct child_call call = {.argv = argv,
                                    .env = proc_env_allowed(&arena, &n_env),
                                    .out = out,
                                    .deadline_ns = deadline_ns};
    struct child_result result;
    if (child_run(&arena, clock, &call, &result, err) < 0) {
        return -1;
    }
    *ret_exit_status = result.exit_status;
    return result.is_timed_out ? err_set(err, ERR_TIMEOUT, "%s: did not end within %lld s", argv[0],
                                         (long long)(deadline_ns / NS_PER_S))
                               : 0;
}
