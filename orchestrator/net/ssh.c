/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"

#define JUMP_SAID_MAX 65536

/* ---- waiting ---- */

static void on_ready(void *ctx, int fd UNUSED, short events UNUSED)
{
    ((struct ssh *)ctx)->is_ready = true;
}

static void on_tick(void *ctx)
{
    struct ssh *ssh = ctx;
    ssh->tick_timer = 0;
    ssh->is_ready = true;
}

int ssh_want_session(struct ssh *ssh, struct err *err)
{
    int directions = libssh2_session_block_directions(ssh->session);
    short events = (short)(POLLIN | (directions & LIBSSH2_SESSION_BLOCK_OUTBOUND ? POLLOUT : 0));
    if (ssh->watched == events) {
        return 0;
    }
    if (ssh->watched) {
        loop_unwatch(ssh->loop, ssh->fd);
    }
    ssh->watched = 0;
    if (loop_watch(ssh->loop, ssh->fd, events, on_ready, ssh, err) < 0) {
        return -1;
    }
    ssh->watched = events;
    return 0;
}

int ssh_wake_in(struct ssh *ssh, int64_t span_ns, struct err *err)
{
    loop_timer_drop(ssh->loop, ssh->tick_timer);
    return loop_timer_add(ssh->loop, loop_now_ns(ssh->loop) + span_ns, on_tick, ssh,
                          &ssh->tick_timer, err);
}

/* Between two operations nobody steps a session, so it must not end the loop's wait. */
void ssh_rest(struct ssh *ssh)
{
    if (ssh->watched) {
        loop_unwatch(ssh->loop, ssh->fd);
    }
    ssh->watched = 0;
    loop_timer_drop(ssh->loop, ssh->tick_timer);
    ssh->tick_timer = 0;
    ssh->is_ready = true;
}

/* ---- life ---- */

struct ssh *ssh_new(struct loop *loop, struct ssh_plan *plan, struct err *err)
{
    struct ssh *ssh;
    if (libssh2_init(0) != 0) {
        (void)!err_set(err, ERR_INTERNAL, "libssh2 cannot be started");
        return NULL;
    }
    ssh = xcalloc(1, sizeof(*ssh));
    ssh->loop = loop;
    ssh->plan = plan;
    ssh->fd = -1;
    ssh->jump = PROC_EMPTY;
    strbuf_init(&ssh->jump_said, JUMP_SAID_MAX);
    ssh->is_ready = true;
    return ssh;
}

void ssh_free(struct ssh *ssh)
{
    if (!ssh) {
        return;
    }
    ssh_abort(ssh);
    if (ssh->session) {
        *libssh2_session_abstract(ssh->session) = NULL;
    } else if (ssh->login) { /* whatever its thread waits for in one of these ends */
        for (size_t idx = 0; idx < atomic_load(&ssh->login->n_fds); idx++) {
            (void)shutdown(ssh->login->fds[idx], SHUT_RDWR);
        }
    }
    task_leave(ssh->task);
    proc_release(&ssh->jump);
    strbuf_release(&ssh->jump_said);
    strbuf_release(&ssh->job.text);
    free(ssh);
}

void ssh_pause(struct ssh *ssh)
{
    ssh_rest(ssh);
}

void ssh_go_on(struct ssh *ssh, int64_t deadline_ns)
{
    ssh->job.from_ns = ssh->heard_ns = loop_now_ns(ssh->loop); /* nothing was read meanwhile */
    ssh->job.until_ns = ssh->job.from_ns + deadline_ns;
    ssh->asked_ns = 0;
    ssh->is_ready = true;
}

/* ---- jump hosts ---- */

static void collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* What ssh itself does for a ProxyJump: another ssh brings us a stream to the node. It asks nobody anything. */
static int start_jump(struct ssh *ssh, struct ssh_login *login, struct err *err)
{
    const struct ssh_target *target = login->target;
    struct str before = str_of(target->jumps);
    const char *last = ssh_last_jump(&login->arena, &before);
    const char *argv[16] = {"ssh", "-o", "BatchMode=yes"};
    size_t n = 3;
    int pair[2];
    if (login->plan->opts.config_path) {
        argv[n++] = "-F";
        argv[n++] = login->plan->opts.config_path;
    }
    if (before.len) {
        argv[n++] = "-J";
        argv[n++] = str_z(&login->arena, before);
    }
    argv[n++] = "-W";
    argv[n++] = arena_printf(&login->arena, "[%s]:%lld", target->host, (long long)target->port);
    argv[n++] = "--";
    argv[n++] = last;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return err_set(err, ERR_IO, "socketpair: %s", err_errno_text(errno));
    }
    login->fds[0] = pair[0];
    atomic_store(&login->n_fds, 1);
    const struct proc_spec spec = {.argv = argv,
                                   .env = (const char *const *)(uintptr_t)environ,
                                   .has_input = true,
                                   .input_fd = pair[1],
                                   .is_socket = true,
                                   .on_output = collect,
                                   .output_ctx = &ssh->jump_said};
    int result = proc_start(&ssh->jump, ssh->loop, &spec, err);
    close(pair[1]);
    return result;
}

/* The connection is lost, and the reason may be what ssh -W said before it ended. */
static enum step judge_jump(struct ssh *ssh, struct err *err)
{
    static const struct {
        const char *words;
        enum err_code code;
    } ROWS[] = {{"HAS CHANGED", ERR_INTEGRITY},
                {"verification failed", ERR_AUTH},
                {"Permission denied", ERR_AUTH}};
    CLEANUP(strbuf) struct strbuf line = STRBUF(ERR_MSG_MAX);
    enum err_code code = ERR_NET;
    proc_stop(&ssh->jump);
    if (ssh->jump.pid && proc_step(&ssh->jump, ERR_IGNORED) == STEP_AGAIN) {
        *err = (struct err){0}; /* the task gives it again */
        return STEP_AGAIN;
    }
    struct str said = str_trim(strbuf_str(&ssh->jump_said));
    if (err->code != ERR_NET || !said.len) {
        return STEP_FAIL;
    }
    for (size_t idx = ARRAY_LEN(ROWS); idx-- > 0;) {
        code = str_find(said, str_of(ROWS[idx].words)) >= 0 ? ROWS[idx].code : code;
    }
    strbuf_add_plain(&line, said.len > 300 ? str_sub(said, said.len - 300, said.len) : said);
    *err = (struct err){0};
    return step_fail(err_set(err, code, "%s: by way of %s: %s", ssh->plan->target.label,
                             ssh->plan->target.jumps, line.ptr));
}

/* ---- the way in ---- */

static int begin(struct ssh *ssh, struct err *err)
{
    struct ssh_login *login = xcalloc(1, sizeof(*login));
    const struct task_spec spec = {.fn = ssh_log_in, .arg = login, .release = ssh_login_free};
    login->plan = ssh_plan_hold(ssh->plan);
    login->target = &ssh->plan->target;
    atomic_store(&login->waits_for, "nothing was done");
    ssh->until_ns = loop_now_ns(ssh->loop) + login->target->connect_timeout_ns;
    if (login->target->jumps && start_jump(ssh, login, err) < 0) {
        ssh_login_free(login);
        return -1;
    }
    if (task_start(ssh->loop, &spec, &ssh->task, err) < 0) {
        return -1;
    }
    ssh->login = login;
    return 0;
}

static LIBSSH2_RECV_FUNC(receive)
{
    struct ssh *ssh = *abstract;
    ssize_t len = recv(socket, buffer, length, flags | MSG_DONTWAIT);
    if (len < 0) {
        return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
    }
    if (ssh) {
        ssh->heard_ns = loop_now_ns(ssh->loop);
    }
    return len;
}

/* From here on the session is the loop's. */
static void take_session(struct ssh *ssh)
{
    LIBSSH2_RECV_FUNC((*const function)) = receive;
    void *pointer; /* ISO C has no conversion to it */
    memcpy(&pointer, &function, sizeof(pointer));
    ssh->session = ssh->login->session;
    ssh->fd = ssh->login->fds[atomic_load(&ssh->login->n_fds) - 1];
    ssh->heard_ns = loop_now_ns(ssh->loop);
    libssh2_session_set_blocking(ssh->session, 0);
    *libssh2_session_abstract(ssh->session) = ssh;
    (void)libssh2_session_callback_set(ssh->session, LIBSSH2_CALLBACK_RECV, pointer);
    /* The end of ssh -W is the end of our socket: it must not end the waits of a session at rest. */
    loop_unwatch(ssh->loop, ssh->jump.pid_fd);
    loop_unwatch(ssh->loop, ssh->jump.out_fd);
}

static enum step bring_up(struct ssh *ssh, struct err *err)
{
    const struct ssh_target *target = &ssh->plan->target;
    if (!ssh->task && begin(ssh, err) < 0) {
        return STEP_FAIL;
    }
    if (ssh->jump.pid) {
        (void)proc_step(&ssh->jump, ERR_IGNORED); /* so that it can say what it has to say */
    }
    int result = task_result(ssh->task, err);
    if (result < 0) {
        return judge_jump(ssh, err);
    }
    if (result > 0) {
        take_session(ssh);
        return STEP_DONE;
    }
    return loop_now_ns(ssh->loop) < ssh->until_ns
               ? STEP_AGAIN
               : step_fail(err_set(err, ERR_NET, "%s: %s within %.3g s", target->label,
                                   atomic_load(&ssh->login->waits_for),
                                   (double)target->connect_timeout_ns / NS_PER_S));
}

enum step ssh_connect(struct ssh *ssh, struct err *err)
{
    enum step step = ssh->session ? STEP_DONE : bring_up(ssh, err);
    if (step != STEP_AGAIN) {
        ssh_rest(ssh);
    } else if (!ssh->tick_timer && ssh_wake_in(ssh, SSH_TICK_NS, err) < 0) {
        return STEP_FAIL;
    }
    return step;
}

enum step ssh_run(struct ssh *ssh, const struct ssh_script *script, int *ret_exit_status,
                  bool *ret_has_begun, struct err *err)
{
    enum step step = STEP_AGAIN;
    if (ssh->is_ready) {
        ssh->is_ready = false;
        step = run_step(ssh, script, err);
        *ret_exit_status = ssh->job.stream.exit_status;
    }
    *ret_has_begun = ssh->job.stream.has_begun;
    if (step == STEP_AGAIN && !ssh->tick_timer && ssh_wake_in(ssh, SSH_TICK_NS, err) < 0) {
        step = STEP_FAIL;
    }
    if (step != STEP_AGAIN) {
        ssh_abort(ssh);
    }
    return step;
}
