/* SPDX-License-Identifier: Apache-2.0 */
/* The node that is this machine: its jobs are those of a reperf-node that is a child of ours; scripts are children too. */
#include "base/base.h"

#include "fleet/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "fleet/remote_node_impl.h"

struct way_in {   /* to a child's stdin */
    int fd;       /* -1: none */
    bool is_full; /* it did not accept all of the feed: fd is watched */
};

struct local {
    struct served base; /* first: a struct remote * is this */
    struct proc child;  /* reperf-node, while node.is_open */
    struct way_in to_child;
    struct proc exec; /* of the exec under way */
    struct way_in to_exec;
    bool is_busy; /* exec is one */
};

/* ---- reperf-node ---- */

static void note_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
    /* Only ends the loop's wait; the next step checks. */
}

static int find_node(struct served *base, struct err *err)
{
    struct remote_node *node = &base->node;
    free(node->program);
    node->program = remote_node_file();
    return access(node->program, X_OK) == 0 ? 0
                                            : err_set(err, ERR_NODE, "reperf-node: %s: %s",
                                                      node->program, err_errno_text(errno));
}

/* A process group of its own: signals of the terminal are for us. It gets the part of our environment that a child may
   see. */
static int open_node(struct local *local, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct remote_node *node = &local->base.node;
    const char *const argv[] = {node->program, local->base.work_folder, NULL};
    size_t n_env;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return err_set(err, ERR_NODE, "socketpair: %s", err_errno_text(errno));
    }
    const struct proc_spec spec = {.argv = argv,
                                   .env = proc_env_allowed(&arena, &n_env),
                                   .has_input = true,
                                   .input_fd = ends[0],
                                   .on_output = remote_collect,
                                   .output_ctx = &node->said};
    strbuf_clear(&node->feed);
    strbuf_clear(&node->said);
    int result = proc_start(&local->child, local->base.loop, &spec, err);
    close(ends[0]);
    if (result < 0) {
        close(ends[1]);
        return -1;
    }
    local->to_child.fd = ends[1];
    node->is_open = true;
    return 0;
}

static void watch_feed(struct local *local, struct way_in *to, bool is_wanted)
{
    if (to->is_full && !is_wanted) {
        loop_unwatch(local->base.loop, to->fd);
        to->is_full = false;
    } else if (!to->is_full && is_wanted) {
        to->is_full =
            loop_watch(local->base.loop, to->fd, POLLOUT, note_ready, NULL, ERR_IGNORED) == 0;
    }
}

static void close_feed(struct local *local, struct way_in *to)
{
    watch_feed(local, to, false);
    fd_close(&to->fd);
}

static void close_node(struct served *base)
{
    struct local *local = (struct local *)base;
    close_feed(local, &local->to_child);
    proc_release(&local->child);
    local->child = PROC_EMPTY;
}

/* If a write fails, it has not read or is gone: then its exit tells. */
static void send_feed(struct local *local, struct way_in *to, struct strbuf *feed)
{
    size_t sent = 0;
    bool is_full = false;
    while (sent < feed->len) {
        ssize_t n = send(to->fd, feed->ptr + sent, feed->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR) {
            is_full = errno == EAGAIN;
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    memmove(feed->ptr, feed->ptr + sent, feed->len - sent + 1);
    feed->len -= sent;
    watch_feed(local, to, is_full);
}

static enum step local_turn(struct served *base, int *ret_status, bool *ret_again, struct err *err)
{
    struct local *local = (struct local *)base;
    *ret_again = false;
    if (!base->node.is_open && open_node(local, err) < 0) {
        return STEP_FAIL;
    }
    send_feed(local, &local->to_child, &base->node.feed);
    enum step step = proc_step(&local->child, err);
    if (step == STEP_DONE) {
        *ret_status =
            local->child.signal_no ? 128 + local->child.signal_no : local->child.exit_status;
        close_node(base);
        remote_node_lost(base);
    }
    return step;
}

static void nothing(struct served *base UNUSED)
{
    /* It sends nothing unasked, and a pipe has no deadline. */
}

static const char *no_label(const struct served *base UNUSED)
{
    return "";
}

static const struct node_way LOCAL_WAY = {.prepare = find_node,
                                          .turn = local_turn,
                                          .pause = nothing,
                                          .go_on = nothing,
                                          .close = close_node,
                                          .label = no_label};

/* ---- exec ---- */

static void end_exec(struct local *local)
{
    proc_release(&local->exec);
    local->exec = PROC_EMPTY;
    close_feed(local, &local->to_exec);
    local->is_busy = false;
}

static int exec_begin(struct local *local, const struct remote_exec *exec, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    int input_fd = -1;
    size_t n_args = 0;
    size_t n_env;
    while (exec->args && exec->args[n_args]) {
        n_args++;
    }
    const char **argv = arena_array(&arena, const char *, n_args + 5);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = exec->script;
    argv[3] = "reperf";
    for (size_t idx = 0; idx < n_args; idx++) {
        argv[4 + idx] = exec->args[idx];
    }
    struct proc_spec spec = {.argv = argv,
                             .env = proc_env_allowed(&arena, &n_env),
                             .on_output = exec->on_output ? exec->on_output : remote_collect,
                             .output_ctx = exec->on_output ? exec->output_ctx : exec->output,
                             .deadline_ns =
                                 exec->deadline_ns ? exec->deadline_ns : REMOTE_EXEC_DEADLINE_NS};
    ASSERT(exec->on_output || exec->output);
    if (exec->feed) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
            return err_set(err, ERR_NODE, "socketpair: %s", err_errno_text(errno));
        }
        input_fd = spec.input_fd = ends[0];
        local->to_exec.fd = ends[1];
        spec.has_input = true;
    }
    int result = proc_start(&local->exec, local->base.loop, &spec, err);
    fd_close(&input_fd); /* the child alone has it, and its end ends the way in */
    return result;
}

static enum step local_exec(struct remote *remote, const struct remote_exec *exec,
                            int *ret_exit_status, struct err *err)
{
    struct local *local = (struct local *)remote;
    if (!local->is_busy) {
        if (exec_begin(local, exec, err) < 0) {
            end_exec(local);
            return STEP_FAIL;
        }
        local->is_busy = true;
    }
    if (exec->feed) {
        send_feed(local, &local->to_exec, exec->feed);
    }
    enum step step = proc_step(&local->exec, err);
    if (step == STEP_AGAIN) {
        return step;
    }
    struct proc done = local->exec;
    end_exec(local);
    if (step == STEP_FAIL) {
        return step;
    }
    if (done.is_timed_out) {
        return step_fail(err_set(err, ERR_TIMEOUT, "a script did not end in time"));
    }
    if (!exec->on_output && exec->output->is_full) {
        return step_fail(err_set(err, ERR_NODE, "a script printed more than %zu bytes",
                                 exec->output->cap_bytes));
    }
    *ret_exit_status = done.signal_no ? 128 + done.signal_no : done.exit_status;
    return STEP_DONE;
}

/* ---- the rest ---- */

static void local_abort(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    if (local->is_busy) {
        end_exec(local);
    } else if (!remote_node_abort(&local->base)) {
        close_node(&local->base);
    }
    served_end(&local->base);
}

/* A job must keep running. */
static void local_free(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    if (local->is_busy) {
        end_exec(local);
    }
    close_node(&local->base);
    served_release(&local->base);
    free(local);
}

/* A relative one is below where we are. */
static char *absolute(const char *folder)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char *here CLEANUP(free) = folder[0] == '/' ? NULL : getcwd(NULL, 0);
    return xstrdup(here ? fs_join(&arena, here, folder) : folder);
}

struct remote *remote_local_new(struct loop *loop, const char *work_folder)
{
    struct local *local = xcalloc(1, sizeof(*local));
    served_init(&local->base, loop, &LOCAL_WAY,
                (struct remote_ops){.exec = local_exec, .abort = local_abort, .free = local_free});
    local->base.work_folder = absolute(work_folder);
    local->child = local->exec = PROC_EMPTY;
    local->to_child.fd = local->to_exec.fd = -1;
    return &local->base.remote;
}

void remote_free(struct remote *remote)
{
    if (remote) {
        remote->ops->free(remote);
    }
}
