/* SPDX-License-Identifier: Apache-2.0 */
/* One script on one channel. The server's exec request is constant and means the same to every login shell: no backslash, line
   end, quote or exclamation mark inside it. Then /bin/sh reads from its stdin: one line with the loader, the script up to a
   line that is the nonce, and the script's own input. */
#include "base/base.h"

#include "net/ssh_impl.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "codec/digest.h"

#define TEXT_MAX       (32u << 20)
#define OPEN_WAIT_NS   (20 * NS_PER_MS)
#define OPEN_WAIT_MAX  (500 * NS_PER_MS)
#define READS_MAX      256 /* per step, so that other sessions get theirs */
#define CHANNEL_WINDOW (2u << 20)
#define CHANNEL_PACKET 32768

static const char COMMAND[] = "exec /bin/sh -c 'IFS= read -r c && eval \"$c\"'";

/* The line that COMMAND reads; the nonce stands before it as n=... The script runs in a shell of its own, so that it may
   exit, and nothing of it runs unless all of it came. */
static const char LOADER[] =
    "; x=$(printf '\\nx'); x=${x%x}; s=; k=; while IFS= read -r l; do if [ \"$l\" = \"$n\" ]; then "
    "k=1; break; fi; s=$s$l$x; done; [ \"$k\" ] || exit 71; exec 2>&1; printf 'BEGIN %s\\n' "
    "\"$n\"; "
    "(eval \"$s\"); r=$?; printf 'END %s %d\\n' \"$n\" \"$r\"; exit 0\n";

/* ---- begin and end ---- */

static int make_text(struct ssh_job *job, const struct ssh_script *script, struct err *err)
{
    uint8_t bytes[SSH_NONCE_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    hex_encode(bytes, sizeof(bytes), job->nonce);
    strbuf_release(&job->text);
    strbuf_init(&job->text, TEXT_MAX);
    strbuf_printf(&job->text, "n=%s%s", job->nonce, LOADER);
    if (script->args) {
        strbuf_add_z(&job->text, "set --");
        for (size_t idx = 0; script->args[idx]; idx++) {
            strbuf_add_char(&job->text, ' ');
            shq_append(&job->text, str_of(script->args[idx]));
        }
        strbuf_add_char(&job->text, '\n');
    }
    strbuf_add_z(&job->text, script->text);
    strbuf_printf(&job->text, "\n%s\n", job->nonce);
    if (job->text.is_full) {
        return err_set(err, ERR_USAGE, "a script of more than %u bytes", TEXT_MAX);
    }
    return 0;
}

static int begin(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    if (make_text(job, script, err) < 0) {
        return -1;
    }
    stream_init(&job->stream);
    job->from_ns = loop_now_ns(ssh->loop);
    if (__builtin_add_overflow(job->from_ns, script->deadline_ns, &job->until_ns)) {
        job->until_ns = INT64_MAX;
    }
    job->sent = 0;
    job->is_text_sent = job->is_eof_sent = false;
    job->open_again_ns = 0;
    job->open_wait_ns = OPEN_WAIT_NS;
    job->state = RUN_OPEN;
    ssh->heard_ns = job->from_ns;
    ssh->asked_ns = 0;
    return 0;
}

/* Closes the last channel as far as possible without waiting. False: must be continued before anything else. */
static bool finish_closing(struct ssh *ssh)
{
    if (ssh->closing && libssh2_channel_free(ssh->closing) == LIBSSH2_ERROR_EAGAIN) {
        return false;
    }
    ssh->closing = NULL;
    return true;
}

void ssh_abort(struct ssh *ssh)
{
    struct ssh_job *job = &ssh->job;
    if (ssh->channel) {
        ASSERT(!ssh->closing);
        ssh->closing = ssh->channel;
        ssh->channel = NULL;
        (void)finish_closing(ssh);
    }
    if (job->state != RUN_IDLE) {
        stream_release(&job->stream);
        job->state = RUN_IDLE;
    }
    ssh_rest(ssh);
}

/* ---- opening ---- */

static enum step again(struct ssh *ssh, struct err *err)
{
    return ssh_want_session(ssh, err) < 0 ? STEP_FAIL : STEP_AGAIN;
}

static enum step open_channel(struct ssh *ssh, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    if (!finish_closing(ssh)) {
        return again(ssh, err);
    }
    if (loop_now_ns(ssh->loop) < job->open_again_ns) {
        return again(ssh, err);
    }
    ssh->channel = libssh2_channel_open_ex(ssh->session, "session", sizeof("session") - 1,
                                           CHANNEL_WINDOW, CHANNEL_PACKET, NULL, 0);
    if (ssh->channel) {
        job->state = RUN_EXEC;
        return STEP_DONE;
    }
    int rc = libssh2_session_last_errno(ssh->session);
    if (rc == LIBSSH2_ERROR_CHANNEL_FAILURE) {
        /* MaxSessions: the previous script may still be ending there. */
        job->open_again_ns = loop_now_ns(ssh->loop) + job->open_wait_ns;
        if (ssh_wake_in(ssh, job->open_wait_ns, err) < 0) {
            return STEP_FAIL;
        }
        job->open_wait_ns =
            job->open_wait_ns * 2 > OPEN_WAIT_MAX ? OPEN_WAIT_MAX : job->open_wait_ns * 2;
        return again(ssh, err);
    }
    return rc == LIBSSH2_ERROR_EAGAIN
               ? again(ssh, err)
               : step_fail(ssh_fail(ssh->plan->target.label, ssh->session, rc, "channel", err));
}

static enum step exec_command(struct ssh *ssh, struct err *err)
{
    int rc = libssh2_channel_process_startup(ssh->channel, "exec", sizeof("exec") - 1, COMMAND,
                                             sizeof(COMMAND) - 1);
    if (rc == LIBSSH2_ERROR_EAGAIN) {
        return again(ssh, err);
    }
    if (rc != 0) {
        return step_fail(ssh_fail(ssh->plan->target.label, ssh->session, rc,
                                  "the server does not run commands", err));
    }
    ssh->job.state = RUN_STREAM;
    ssh->pending = PENDING_NONE;
    return STEP_DONE;
}

/* ---- in and out ---- */

/* What to write next; empty at the end. */
static struct str next_bytes(const struct ssh_job *job, const struct ssh_script *script)
{
    return !job->is_text_sent ? str_sub(strbuf_str(&job->text), job->sent, job->text.len)
           : script->feed     ? strbuf_str(script->feed)
                              : str_sub(script->input, job->sent, script->input.len);
}

static void was_sent(struct ssh_job *job, const struct ssh_script *script, size_t len)
{
    if (job->is_text_sent && script->feed) {
        memmove(script->feed->ptr, script->feed->ptr + len, script->feed->len - len + 1);
        script->feed->len -= len;
        return;
    }
    job->sent += len;
    if (!job->is_text_sent && job->sent == job->text.len) {
        job->is_text_sent = true;
        job->sent = 0;
    }
}

/* Sends as much as possible. If libssh2 stops inside a packet, nothing else may be called until it has finished. */
static int send_some(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    while (!job->is_eof_sent && !job->stream.has_ended) {
        struct str bytes = next_bytes(job, script);
        bool is_end = bytes.len == 0;
        if (is_end && script->feed) {
            return 0; /* nothing to send for now */
        }
        ssize_t rc = is_end ? libssh2_channel_send_eof(ssh->channel)
                            : libssh2_channel_write_ex(ssh->channel, 0, bytes.ptr, bytes.len);
        if (rc == LIBSSH2_ERROR_EAGAIN || (rc == 0 && !is_end)) {
            bool is_half_done = rc != 0 && (libssh2_session_block_directions(ssh->session) &
                                            LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
            ssh->pending = is_half_done ? PENDING_WRITE : PENDING_NONE;
            return 0;
        }
        ssh->pending = PENDING_NONE;
        if (rc == LIBSSH2_ERROR_CHANNEL_CLOSED || rc == LIBSSH2_ERROR_CHANNEL_EOF_SENT) {
            job->is_eof_sent = true; /* it reads no more; its output is still to come */
            return 0;
        }
        if (rc < 0) {
            return ssh_fail(ssh->plan->target.label, ssh->session, (int)rc, "input of a script",
                            err);
        }
        if (is_end) {
            job->is_eof_sent = true;
        } else {
            was_sent(job, script, (size_t)rc);
        }
    }
    return 0;
}

/* Handles EAGAIN, half-way or not. */
static enum step read_again(struct ssh *ssh)
{
    bool is_half_done =
        (libssh2_session_block_directions(ssh->session) & LIBSSH2_SESSION_BLOCK_OUTBOUND) != 0;
    ssh->pending = is_half_done ? PENDING_READ : PENDING_NONE;
    return STEP_AGAIN;
}

/* LOADER sends all output of a script through stdout. Output on stderr is the login shell's and may be late: the server reads
   two pipes in any order. */
static enum step read_noise(struct ssh *ssh, struct err *err)
{
    char bytes[SSH_BUF_BYTES];
    for (int n_reads = 0; n_reads < READS_MAX; n_reads++) {
        ssize_t len =
            libssh2_channel_read_ex(ssh->channel, SSH_EXTENDED_DATA_STDERR, bytes, sizeof(bytes));
        if (len == LIBSSH2_ERROR_EAGAIN) {
            return read_again(ssh);
        }
        ssh->pending = PENDING_NONE;
        if (len < 0) {
            return step_fail(ssh_fail(ssh->plan->target.label, ssh->session, (int)len,
                                      "output of a login shell", err));
        }
        if (len == 0) {
            return STEP_DONE;
        }
        stream_take_noise(&ssh->job.stream, (struct str){bytes, (size_t)len});
    }
    return STEP_DONE;
}

/* Until EAGAIN. STEP_DONE: the stream is at its end. */
static enum step read_some(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    char bytes[SSH_BUF_BYTES];
    if (read_noise(ssh, err) == STEP_FAIL) {
        return STEP_FAIL;
    }
    for (int n_reads = 0; n_reads < READS_MAX; n_reads++) {
        ssize_t len = libssh2_channel_read_ex(ssh->channel, 0, bytes, sizeof(bytes));
        if (len == LIBSSH2_ERROR_EAGAIN) {
            return read_again(ssh);
        }
        ssh->pending = PENDING_NONE;
        if (len < 0) {
            return step_fail(ssh_fail(ssh->plan->target.label, ssh->session, (int)len,
                                      "output of a script", err));
        }
        if (len == 0) {
            if (read_noise(ssh, err) == STEP_FAIL) { /* unread, it would hide the end */
                return STEP_FAIL;
            }
            return libssh2_channel_eof(ssh->channel) ? STEP_DONE : STEP_AGAIN;
        }
        stream_take(&job->stream, job->nonce, (struct str){bytes, (size_t)len}, script->on_output,
                    script->output_ctx);
        if (job->stream.has_ended) {
            return STEP_DONE;
        }
    }
    ssh->is_ready = true; /* there may be more */
    return STEP_AGAIN;
}

/* ---- judging ---- */

static enum step ended_without_mark(struct ssh *ssh, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct ssh_stream *stream = &ssh->job.stream;
    const char *label = ssh->plan->target.label;
    char *signal_name = NULL;
    size_t name_len = 0;
    int status = libssh2_channel_get_exit_status(ssh->channel);
    (void)libssh2_channel_get_exit_signal(ssh->channel, &signal_name, &name_len, NULL, NULL, NULL,
                                          NULL);
    const char *by = signal_name ? arena_printf(&arena, "signal %.*s", (int)name_len, signal_name)
                                 : arena_printf(&arena, "status %d", status);
    if (signal_name) {
        libssh2_free(ssh->session, signal_name);
    }
    if (!stream->has_begun) {
        return step_fail(err_set(err, ERR_NODE,
                                 "%s: its login shell ended (%s) before the script began; one of "
                                 "its start-up files exits, or it cannot run /bin/sh%s",
                                 label, by, stream_noise(stream, &arena)));
    }
    return step_fail(
        err_set(err, ERR_NODE, "%s: the shell of a script was ended from outside (%s)", label, by));
}

static enum step ran_out(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct ssh_job *job = &ssh->job;
    const char *label = ssh->plan->target.label;
    double span_s = (double)(job->until_ns - job->from_ns) / NS_PER_S;
    stream_finish(&job->stream, script->on_output, script->output_ctx);
    if (job->state == RUN_OPEN) {
        return step_fail(err_set(err, ERR_TIMEOUT,
                                 "%s: its sshd opened no channel within %.3g s (MaxSessions?)",
                                 label, span_s));
    }
    if (!job->stream.has_begun) {
        return step_fail(err_set(err, ERR_TIMEOUT,
                                 "%s: its login shell did not begin the script within %.3g s: one "
                                 "of its start-up files waits%s",
                                 label, span_s, stream_noise(&job->stream, &arena)));
    }
    return step_fail(
        err_set(err, ERR_TIMEOUT, "%s: a script did not end within %.3g s", label, span_s));
}

/* A silent peer is asked whether it is alive; TCP alone never reveals a frozen node. */
static int check_alive(struct ssh *ssh, int64_t now_ns, struct err *err)
{
    int64_t interval_ns = ssh->plan->target.alive_interval_ns;
    int64_t silent_ns = now_ns - ssh->heard_ns;
    int seconds;
    if (!interval_ns || silent_ns < interval_ns) {
        return 0;
    }
    if (silent_ns >= interval_ns * ssh->plan->target.alive_count_max) {
        return err_set(err, ERR_NET, "%s: nothing was heard for %.3g s", ssh->plan->target.label,
                       (double)silent_ns / NS_PER_S);
    }
    if (ssh->pending == PENDING_NONE && now_ns - ssh->asked_ns >= interval_ns) {
        ssh->asked_ns = now_ns;
        libssh2_keepalive_config(ssh->session, 1, 1);
        int rc = libssh2_keepalive_send(ssh->session, &seconds);
        return rc < 0 ? ssh_fail(ssh->plan->target.label, ssh->session, rc, "keepalive", err) : 0;
    }
    return 0;
}

static enum step stream_step(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    enum step step = STEP_AGAIN;
    if (ssh->pending != PENDING_READ && send_some(ssh, script, err) < 0) {
        return STEP_FAIL;
    }
    if (ssh->pending != PENDING_WRITE) {
        step = read_some(ssh, script, err);
    }
    if (step == STEP_AGAIN) {
        return again(ssh, err);
    }
    if (step == STEP_FAIL) {
        return step;
    }
    stream_finish(&job->stream, script->on_output, script->output_ctx);
    return job->stream.has_ended ? STEP_DONE : ended_without_mark(ssh, err);
}

enum step run_step(struct ssh *ssh, const struct ssh_script *script, struct err *err)
{
    struct ssh_job *job = &ssh->job;
    enum step step = STEP_DONE;
    if (job->state == RUN_IDLE && begin(ssh, script, err) < 0) {
        return STEP_FAIL;
    }
    while (step == STEP_DONE) {
        switch (job->state) {
        case RUN_OPEN:
            step = open_channel(ssh, err);
            break;
        case RUN_EXEC:
            step = exec_command(ssh, err);
            break;
        case RUN_STREAM:
        case RUN_IDLE:
        default:
            step = stream_step(ssh, script, err);
            if (step == STEP_DONE) {
                return step;
            }
            break;
        }
    }
    if (step == STEP_AGAIN) {
        int64_t now_ns = loop_now_ns(ssh->loop);
        if (now_ns >= job->until_ns) {
            return ran_out(ssh, script, err);
        }
        if (check_alive(ssh, now_ns, err) < 0) {
            return STEP_FAIL;
        }
    }
    return step;
}
