/* SPDX-License-Identifier: Apache-2.0 */
/* A node over SSH: scripts, and a channel to reperf-node there. A connection that is lost is had again, for outage_ns in all, and what was
   under way is asked again where that is the same as asking once. */
#include "base/base.h"

#include "fleet/remote_ssh_impl.h"

#include <errno.h>
#include <sys/random.h>

#define OUTAGE_DEFAULT_S 30
#define OUTAGE_MAX_S     86400
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS   (2 * NS_PER_S)
#define OWN_OUTPUT_MAX   (64u << 10)

/* ---- connection ---- */

static void hang_up(struct remote_ssh *r)
{
    remote_node_lost(r);
    ssh_free(r->ssh);
    r->ssh = NULL;
    r->is_up = false;
}

static void on_retry(void *ctx)
{
    ((struct remote_ssh *)ctx)->retry_timer = 0;
}

/* After a loss: again later, or no more. */
static enum step back_off(struct remote_ssh *r, struct err *err)
{
    int64_t now_ns = loop_now_ns(r->loop);
    int64_t span_ns = BACKOFF_FIRST_NS;
    struct err cause = *err;
    hang_up(r);
    if (r->down_since_ns == 0) {
        r->down_since_ns = now_ns;
        r->n_attempts = 0;
    }
    for (size_t idx = 0; idx < r->n_attempts && span_ns < BACKOFF_MAX_NS; idx++) {
        span_ns *= 2;
    }
    span_ns = span_ns > BACKOFF_MAX_NS ? BACKOFF_MAX_NS : span_ns;
    r->n_attempts++;
    *err = (struct err){0};
    if (now_ns - r->down_since_ns >= r->outage_ns) {
        return step_fail(err_set(err, ERR_NODE, "unreachable for %.3g s (%zu attempts), last: %s",
                                 (double)(now_ns - r->down_since_ns) / NS_PER_S, r->n_attempts,
                                 cause.msg));
    }
    /* Half of it is chance, so that 128 nodes behind one switch do not come back at one moment. */
    span_ns = span_ns / 2 + (int64_t)rng_below(&r->rng, (uint64_t)span_ns);
    if (span_ns > r->down_since_ns + r->outage_ns - now_ns) {
        span_ns = r->down_since_ns + r->outage_ns - now_ns;
    }
    r->retry_at_ns = now_ns + span_ns;
    loop_timer_drop(r->loop, r->retry_timer);
    return loop_timer_add(r->loop, r->retry_at_ns, on_retry, r, &r->retry_timer, err) < 0
               ? STEP_FAIL
               : STEP_AGAIN;
}

static bool may_pass(const struct err *err)
{
    return err->code == ERR_NET;
}

static enum step connect_step(struct remote_ssh *r, struct err *err)
{
    enum step step;
    if (r->is_up) {
        return STEP_DONE;
    }
    if (loop_now_ns(r->loop) < r->retry_at_ns) {
        return STEP_AGAIN;
    }
    if (!r->ssh) {
        r->ssh = ssh_new(r->loop, &r->plan, err);
        if (!r->ssh) {
            return STEP_FAIL;
        }
    }
    step = ssh_connect(r->ssh, err);
    if (step == STEP_FAIL) {
        if (may_pass(err)) {
            return back_off(r, err);
        }
        hang_up(r);
    }
    r->is_up = step == STEP_DONE;
    return step;
}

/* ---- one script ---- */

enum step remote_ssh_run(struct remote_ssh *r, const struct run_opts *opts, int *ret_exit_status,
                         bool *ret_again, struct err *err)
{
    bool has_begun = false;
    enum step step = connect_step(r, err);
    *ret_again = r->has_script_failed = false;
    if (step != STEP_DONE) {
        return step;
    }
    if (r->node.is_open && !opts->script->feed) {
        remote_node_close(r);
    }
    step = ssh_run(r->ssh, opts->script, ret_exit_status, &has_begun, err);
    if (step == STEP_DONE) {
        r->down_since_ns = r->retry_at_ns = 0;
        return step;
    }
    if (step == STEP_AGAIN) {
        return step;
    }
    if (!may_pass(err)) {
        /* A session that did not answer in time is not trusted with the next script. */
        hang_up(r);
        r->has_script_failed = true;
        return step;
    }
    if (has_begun && !opts->is_repeatable) {
        struct err cause = *err;
        hang_up(r);
        *err = (struct err){0};
        return step_fail(
            err_set(err, ERR_NODE, "connection lost while %s: %s", opts->what, cause.msg));
    }
    *ret_again = true;
    return back_off(r, err);
}

void remote_ssh_end(struct remote_ssh *r)
{
    if (r->op.is_active) {
        strbuf_release(&r->op.output);
        strbuf_release(&r->op.request);
    }
    r->op = (struct operation){0};
}

void remote_ssh_begin(struct remote_ssh *r, const char *what)
{
    uint64_t nonce = rng_u64(&r->rng);
    ASSERT(!r->op.is_active);
    r->op = (struct operation){.is_active = true, .what = what};
    strbuf_init(&r->op.output, READ_AHEAD_MAX + OWN_OUTPUT_MAX);
    strbuf_init(&r->op.request, NODE_FRAME_MAX);
    snprintf(r->op.nonce, sizeof(r->op.nonce), "%016" PRIx64, nonce);
}

void remote_ssh_collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* ---- operations ---- */

static void rewind_output(const struct remote_exec *exec, size_t len)
{
    if (!exec->on_output && exec->output) {
        exec->output->len = len;
        exec->output->ptr[len] = '\0';
    }
}

static enum step ssh_remote_exec(struct remote *remote, const struct remote_exec *exec,
                                 int *ret_exit_status, struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    struct ssh_script script = {.text = exec->script,
                                .args = exec->args,
                                .input = exec->input,
                                .input_fd = exec->has_input_fd ? exec->input_fd : -1,
                                .on_output = exec->on_output ? exec->on_output : remote_ssh_collect,
                                .output_ctx = exec->on_output ? exec->output_ctx : exec->output,
                                .deadline_ns = exec->deadline_ns ? exec->deadline_ns
                                                                 : REMOTE_EXEC_DEADLINE_NS};
    struct run_opts opts = {&script, exec->is_repeatable && !exec->on_output,
                            "a script was running"};
    bool is_again;
    enum step step;
    ASSERT(exec->on_output || exec->output);
    if (!r->op.is_active) {
        remote_ssh_begin(r, opts.what);
        r->op.output_from = exec->on_output ? 0 : exec->output->len;
    }
    step = remote_ssh_run(r, &opts, ret_exit_status, &is_again, err);
    if (is_again) {
        rewind_output(exec, r->op.output_from);
    }
    if (step != STEP_FAIL && !exec->on_output && exec->output->is_full) {
        hang_up(r);
        step = step_fail(err_set(err, ERR_NODE, "%s: a script printed more than %zu bytes",
                                 remote_ssh_label(r), exec->output->cap_bytes));
    }
    if (step != STEP_AGAIN) {
        remote_ssh_end(r);
    }
    return step;
}

static enum step ssh_remote_work_folder(struct remote *remote, const char **ret_path,
                                        struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    enum step step;
    if (r->work_folder) {
        *ret_path = r->work_folder;
        return STEP_DONE;
    }
    if (!r->op.is_active) {
        remote_ssh_begin(r, "the work folder");
    }
    remote_node_request(r, NODE_FOLDER, NULL, 0);
    step = remote_node_ask(r, err);
    if (step == STEP_DONE) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct str path = str_trim(strbuf_str(&r->op.output));
        if (!str_starts(path, STR_LIT("/"))) {
            step = step_fail(err_set(err, ERR_NODE,
                                     "%s: its work folder has no absolute path: \"%.*s\"",
                                     remote_ssh_label(r), STR_ARG(str_sub(path, 0, 200))));
        } else {
            r->work_folder = xstrdup(str_z(&arena, path));
            *ret_path = r->work_folder;
        }
        remote_ssh_end(r);
    }
    return step;
}

static void ssh_remote_abort(struct remote *remote)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    if (remote_node_abort(r)) {
        remote_ssh_end(r);
        return;
    }
    if (r->is_up) {
        ssh_abort(r->ssh);
    } else {
        hang_up(r); /* half-way in, it would end each wait of the loop, and nobody steps it now */
    }
    remote_ssh_end(r);
}

static void ssh_remote_free(struct remote *remote)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    hang_up(r);
    loop_timer_drop(r->loop, r->retry_timer);
    remote_ssh_end(r);
    remote_node_release(r);
    strbuf_release(&r->ahead);
    ssh_plan_release(&r->plan);
    free(r->work_wanted);
    free(r->work_folder);
    free(r);
}

static struct str ssh_remote_login_noise(const struct remote *remote)
{
    const struct remote_ssh *r = (const struct remote_ssh *)remote;
    return r->ssh ? ssh_login_noise(r->ssh) : STR_LIT("");
}

static const struct remote_ops SSH_OPS = {
    .exec = ssh_remote_exec,
    .start = remote_ssh_start,
    .poll = remote_ssh_poll,
    .read_log = remote_ssh_read_log,
    .log_digest = remote_ssh_log_digest,
    .signal = remote_ssh_signal,
    .reap = remote_ssh_reap,
    .forget = remote_ssh_forget,
    .work_folder = ssh_remote_work_folder,
    .abort = ssh_remote_abort,
    .free = ssh_remote_free,
    .login_noise = ssh_remote_login_noise,
    .program = remote_node_there,
};

/* What a site knows of its network; who says nothing gets the default. */
static int find_outage(const struct remote_ssh_opts *opts, int64_t *ret_ns, struct err *err)
{
    const char *wanted = getenv("REPERF_OUTAGE");
    int64_t seconds = OUTAGE_DEFAULT_S;
    struct err why = {0};
    if (opts->outage_ns) {
        *ret_ns = opts->outage_ns;
        return 0;
    }
    if (wanted && *wanted && str_to_i64(str_of(wanted), 1, OUTAGE_MAX_S, &seconds, &why) < 0) {
        return err_set(err, ERR_USAGE, "REPERF_OUTAGE: %s", why.msg);
    }
    *ret_ns = seconds * NS_PER_S;
    return 0;
}

struct remote *remote_ssh_new(struct loop *loop, const struct remote_ssh_opts *opts,
                              struct err *err)
{
    struct ssh_plan_opts plan_opts = {.host = opts->host,
                                      .port = opts->port,
                                      .user = opts->user,
                                      .config_path = opts->config_path,
                                      .connect_timeout_ns = opts->connect_timeout_ns};
    struct remote_ssh *r;
    int64_t outage_ns = 0;
    uint64_t seed = 0;
    if (opts->work_folder && opts->work_folder[0] && opts->work_folder[0] != '/') {
        (void)!err_set(err, ERR_USAGE, "%s: its work folder %s is not absolute", opts->host,
                       opts->work_folder);
        return NULL;
    }
    if (find_outage(opts, &outage_ns, err) < 0) {
        return NULL;
    }
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        (void)!err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
        return NULL;
    }
    r = xcalloc(1, sizeof(*r));
    r->remote.ops = &SSH_OPS;
    r->loop = loop;
    if (ssh_plan_make(&r->plan, &plan_opts, err) < 0) {
        free(r);
        return NULL;
    }
    r->work_wanted = xstrdup(opts->work_folder ? opts->work_folder : "");
    r->outage_ns = outage_ns;
    r->known_size = -1;
    rng_init(&r->rng, seed);
    strbuf_init(&r->ahead, READ_AHEAD_MAX);
    remote_node_init(r);
    return &r->remote;
}
