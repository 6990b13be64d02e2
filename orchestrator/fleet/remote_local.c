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

struct local_child {
    struct proc proc;
    bool is_open;
    int fd;          /* to its stdin; -1: none */
    bool is_watched; /* it did not accept all of the feed */
};

struct local {
    struct served base; /* first: a struct remote * is this */
    struct local_child node, exec;
};

/* ---- a child ---- */

static void note_ready(void *ctx UNUSED, int fd UNUSED, short events UNUSED)
{
    /* Only ends the loop's wait; the next step checks. */
}

static void watch(struct local *local, struct local_child *child, bool is_wanted)
{
    if (child->is_watched && !is_wanted) {
        loop_unwatch(local->base.loop, child->fd);
        child->is_watched = false;
    } else if (!child->is_watched && is_wanted) {
        child->is_watched =
            loop_watch(local->base.loop, child->fd, POLLOUT, note_ready, NULL, ERR_IGNORED) == 0;
    }
}

static void close_child(struct local *local, struct local_child *child)
{
    watch(local, child, false);
    fd_close(&child->fd);
    proc_release(&child->proc);
    child->proc = PROC_EMPTY;
    child->is_open = false;
}

/* A process group of its own: signals of the terminal are for us. It gets the part of our environment that a child may
   see. */
static int open_child(struct local *local, struct local_child *child, struct proc_spec spec,
                      bool has_feed, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    int ends[2] = {-1, -1};
    size_t n_env;
    if (has_feed && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return err_set(err, ERR_NODE, "socketpair: %s", err_errno_text(errno));
    }
    spec.env = proc_env_allowed(&arena, &n_env);
    spec.has_input = has_feed;
    spec.input_fd = ends[0];
    child->fd = ends[1];
    child->is_open = true;
    int result = proc_start(&child->proc, local->base.loop, &spec, err);
    fd_close(&ends[0]); /* the child alone has it, and its end ends the way in */
    if (result < 0) {
        close_child(local, child);
    }
    return result;
}

/* If a write fails, it has not read or is gone: then its exit tells. */
static void send_feed(struct local *local, struct local_child *child, struct strbuf *feed)
{
    size_t sent = 0;
    bool is_full = false;
    while (sent < feed->len) {
        ssize_t n =
            send(child->fd, feed->ptr + sent, feed->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR) {
            is_full = errno == EAGAIN;
            break;
        }
        sent += n > 0 ? (size_t)n : 0;
    }
    memmove(feed->ptr, feed->ptr + sent, feed->len - sent + 1);
    feed->len -= sent;
    watch(local, child, is_full);
}

/* Unless it goes on, it is closed. */
static enum step step_child(struct local *local, struct local_child *child, struct strbuf *feed,
                            int *ret_status, struct err *err)
{
    if (feed) {
        send_feed(local, child, feed);
    }
    enum step step = proc_step(&child->proc, err);
    if (step == STEP_DONE) {
        const struct proc *proc = &child->proc;
        *ret_status = proc->signal_no ? 128 + proc->signal_no : proc->exit_status;
        if (proc->is_timed_out) {
            step = step_fail(err_set(err, ERR_TIMEOUT, "a script did not end in time"));
        }
    }
    if (step != STEP_AGAIN) {
        close_child(local, child);
    }
    return step;
}

/* ---- reperf-node ---- */

static int find_node(struct served *base, struct err *err)
{
    struct remote_node *node = &base->node;
    free(node->program);
    node->program = remote_node_file();
    return access(node->program, X_OK) == 0 ? 0
                                            : err_set(err, ERR_NODE,
                                                      "reperf-node: %s: %s; make builds it, and "
                                                      "REPERF_NODE names another",
                                                      node->program, err_errno_text(errno));
}

static void close_node(struct served *base)
{
    struct local *local = (struct local *)base;
    close_child(local, &local->node);
}

static enum step local_turn(struct served *base, int *ret_status, bool *ret_again, struct err *err)
{
    struct local *local = (struct local *)base;
    struct remote_node *node = &base->node;
    const char *const argv[] = {node->program, base->work_folder, NULL};
    *ret_again = false;
    if (!node->is_open) {
        const struct proc_spec spec = {
            .argv = argv, .on_output = remote_collect, .output_ctx = &node->said};
        strbuf_clear(&node->feed);
        strbuf_clear(&node->said);
        if (open_child(local, &local->node, spec, true, err) < 0) {
            return STEP_FAIL;
        }
        node->is_open = true;
    }
    enum step step = step_child(local, &local->node, &node->feed, ret_status, err);
    if (step != STEP_AGAIN) {
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

static int exec_begin(struct local *local, const struct remote_exec *exec, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n_args = 0;
    while (exec->args && exec->args[n_args]) {
        n_args++;
    }
    const char **argv = arena_array(&arena, const char *, n_args + 5);
    memcpy(argv, (const char *[]){"/bin/sh", "-c", exec->script, "reperf"}, 4 * sizeof(*argv));
    memcpy(argv + 4, exec->args ? exec->args : argv, n_args * sizeof(*argv));
    ASSERT(exec->on_output || exec->output);
    const struct proc_spec spec = {.argv = argv,
                                   .on_output = exec->on_output ? exec->on_output : remote_collect,
                                   .output_ctx = exec->on_output ? exec->output_ctx : exec->output,
                                   .deadline_ns = exec->deadline_ns ? exec->deadline_ns
                                                                    : REMOTE_EXEC_DEADLINE_NS};
    return open_child(local, &local->exec, spec, exec->feed != NULL, err);
}

static enum step local_exec(struct remote *remote, const struct remote_exec *exec,
                            int *ret_exit_status, struct err *err)
{
    struct local *local = (struct local *)remote;
    if (!local->exec.is_open && exec_begin(local, exec, err) < 0) {
        return STEP_FAIL;
    }
    enum step step = step_child(local, &local->exec, exec->feed, ret_exit_status, err);
    return step == STEP_DONE && !exec->on_output && exec->output->is_full
               ? step_fail(err_set(err, ERR_NODE, "a script printed more than %zu bytes",
                                   exec->output->cap_bytes))
               : step;
}

/* ---- the rest ---- */

static void local_abort(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    if (local->exec.is_open) {
        close_child(local, &local->exec);
    } else if (!remote_node_abort(&local->base)) {
        close_node(&local->base);
    }
    served_end(&local->base);
}

/* A job must keep running. */
static void local_free(struct remote *remote)
{
    struct local *local = (struct local *)remote;
    close_child(local, &local->exec);
    close_child(local, &local->node);
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
    local->node = local->exec = (struct local_child){.proc = PROC_EMPTY, .fd = -1};
    return &local->base.remote;
}

void remote_free(struct remote *remote)
{
    if (remote) {
        remote->ops->free(remote);
    }
}
