/* SPDX-License-Identifier: Apache-2.0 */
/* A node over SSH: scripts, and a channel to reperf-node there. A lost connection is made again, for outage_ns in all, and
   the current request is repeated if it is idempotent. */
#include "base/base.h"

#include "fleet/remote.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/embed.h"
#include "base/fs.h"
#include "base/rng.h"
#include "fleet/remote_node_impl.h"
#include "net/ssh.h"

#define OUTAGE_DEFAULT_S 30
#define OUTAGE_MAX_S     86400
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS   (2 * NS_PER_S)
#define PUT_SPAN_NS      (300 * NS_PER_S)
#define SCRIPT_MAX       65536
#define PROGRAM_MAX      (64u << 20)

#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "unknown"
#endif

struct remote_ssh {
    struct served base; /* first: a struct remote * is this */
    struct ssh_plan *plan;
    struct ssh *ssh; /* NULL: not connected */
    bool is_up;
    char *work_wanted; /* "" for the default there */
    int64_t outage_ns;
    int64_t down_since_ns; /* 0: all is well */
    size_t n_attempts;     /* since then */
    int64_t retry_at_ns;
    uint64_t retry_timer;
    struct rng rng;
    char nonce[17]; /* for the put under way */
    struct arena put_arena;
    struct str put; /* the program's bytes, in that arena, while it is being put */
    struct strbuf script;
    bool has_script_failed; /* the last error is of the script itself, not of the way there */
};

/* ---- connection ---- */

static void hang_up(struct remote_ssh *r)
{
    remote_node_lost(&r->base);
    ssh_plan_pause(r->plan);
    ssh_free(r->ssh);
    r->ssh = NULL;
    r->is_up = false;
}

static void on_retry(void *ctx)
{
    ((struct remote_ssh *)ctx)->retry_timer = 0;
}

/* After a loss: retry later, or give up. */
static enum step back_off(struct remote_ssh *r, struct err *err)
{
    int64_t now_ns = loop_now_ns(r->base.loop);
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
    /* Half of it is random, so that 128 nodes behind one switch do not reconnect at once. */
    span_ns = span_ns / 2 + (int64_t)rng_below(&r->rng, (uint64_t)span_ns);
    if (span_ns > r->down_since_ns + r->outage_ns - now_ns) {
        span_ns = r->down_since_ns + r->outage_ns - now_ns;
    }
    r->retry_at_ns = now_ns + span_ns;
    loop_timer_drop(r->base.loop, r->retry_timer);
    return loop_timer_add(r->base.loop, r->retry_at_ns, on_retry, r, &r->retry_timer, err) < 0
               ? STEP_FAIL
               : STEP_AGAIN;
}

static bool may_pass(const struct err *err)
{
    return err->code == ERR_NET;
}

static enum step connect_step(struct remote_ssh *r, struct err *err)
{
    if (r->is_up) {
        return STEP_DONE;
    }
    if (loop_now_ns(r->base.loop) < r->retry_at_ns) {
        return STEP_AGAIN;
    }
    enum step step = ssh_plan_step(r->plan, r->base.loop, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (!r->ssh) {
        r->ssh = ssh_new(r->base.loop, r->plan, err);
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

/* *ret_again: the connection was lost, and the script will be run from its beginning: what it printed so far does not count. */
static enum step run(struct remote_ssh *r, const struct ssh_script *script, bool is_repeatable,
                     int *ret_exit_status, bool *ret_again, struct err *err)
{
    bool has_begun = false;
    enum step step = connect_step(r, err);
    *ret_again = r->has_script_failed = false;
    if (step != STEP_DONE) {
        return step;
    }
    if (r->base.node.is_open && script->feed != &r->base.node.feed) {
        remote_node_close(&r->base);
    }
    step = ssh_run(r->ssh, script, ret_exit_status, &has_begun, err);
    if (step == STEP_DONE) {
        r->down_since_ns = r->retry_at_ns = 0;
        return step;
    }
    if (step == STEP_AGAIN) {
        return step;
    }
    if (!may_pass(err)) {
        /* A session that did not answer in time is not used for the next script. */
        hang_up(r);
        r->has_script_failed = true;
        return step;
    }
    if (has_begun && !is_repeatable) {
        struct err cause = *err;
        hang_up(r);
        *err = (struct err){0};
        return step_fail(
            err_set(err, ERR_NODE, "connection lost while %s: %s", r->base.op.what, cause.msg));
    }
    *ret_again = true;
    return back_off(r, err);
}

/* ---- reperf-node there ---- */

EMBED(remote_prelude_sh, "orchestrator/fleet/remote_prelude.sh");
EMBED(remote_launch_sh, "orchestrator/fleet/remote_launch.sh");
EMBED(remote_put_sh, "orchestrator/fleet/remote_put.sh");

static const char *ssh_label(const struct served *base)
{
    const struct remote_ssh *r = (const struct remote_ssh *)base;
    return ssh_plan_label(r->plan);
}

static int ssh_prepare(struct served *base, struct err *err)
{
    struct remote_node *node = &base->node;
    struct digest_value value;
    struct err why = {0};
    free(node->program);
    node->program = remote_node_file();
    if (digest_file(node->program, DIGEST_SHA256, &value, &why) < 0) {
        (void)remote_node_never(base, "reperf-node cannot be read here", str_of(why.msg), err);
        return -1;
    }
    hex_encode(value.sha256, SHA256_BYTES, node->sha256);
    return 0;
}

static void begin_script(struct remote_ssh *r, struct str script)
{
    strbuf_clear(&r->script);
    strbuf_add_str(&r->script, embedded_body(EMBEDDED(remote_prelude_sh)));
    strbuf_add_str(&r->script, embedded_body(script));
    strbuf_clear(&r->base.node.feed);
    strbuf_clear(&r->base.node.said);
}

static enum step ssh_turn(struct served *base, int *ret_status, bool *ret_again, struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)base;
    struct remote_node *node = &base->node;
    const char *const args[] = {r->work_wanted, node->sha256, MACHINE, NULL};
    struct ssh_script script = {.args = args,
                                .feed = &node->feed,
                                .on_output = remote_collect,
                                .output_ctx = &node->said,
                                .deadline_ns = ASK_SPAN_NS};
    if (!node->is_open) {
        begin_script(r, EMBEDDED(remote_launch_sh));
    }
    script.text = r->script.ptr;
    enum step step = run(r, &script, true, ret_status, ret_again, err);
    node->has_turn_failed = r->has_script_failed;
    if (step == STEP_AGAIN && r->is_up) {
        node->is_open = true;
    } else if (step == STEP_DONE) {
        remote_node_lost(base); /* the channel is closed */
    }
    return step;
}

static void end_put(struct remote_ssh *r)
{
    arena_release(&r->put_arena);
    r->put = STR_EMPTY;
}

static enum step ssh_put(struct served *base, struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)base;
    struct remote_node *node = &base->node;
    const char *const args[] = {r->work_wanted, node->sha256, r->nonce, NULL};
    int status = 0;
    bool is_again;
    if (!r->put.ptr) {
        struct err why = {0};
        if (fs_read(&r->put_arena, node->program, PROGRAM_MAX, &r->put, &why) < 0) {
            return remote_node_never(base, node->program, str_of(why.msg), err);
        }
        snprintf(r->nonce, sizeof(r->nonce), "%016" PRIx64, rng_u64(&r->rng));
        begin_script(r, EMBEDDED(remote_put_sh));
    }
    const struct ssh_script script = {.text = r->script.ptr,
                                      .args = args,
                                      .input = r->put,
                                      .on_output = remote_collect,
                                      .output_ctx = &node->said,
                                      .deadline_ns = PUT_SPAN_NS};
    enum step step = run(r, &script, true, &status, &is_again, err);
    if (is_again) {
        strbuf_clear(&node->said);
    }
    if (step == STEP_AGAIN) {
        return step;
    }
    end_put(r);
    if (step == STEP_FAIL) {
        return step;
    }
    if (status != 0) {
        return remote_node_never(base, "reperf-node could not be put there",
                                 strbuf_str(&node->said), err);
    }
    node->was_put = true;
    node->state = NODE_LAUNCH;
    return STEP_DONE;
}

static void ssh_way_pause(struct served *base)
{
    struct remote_ssh *r = (struct remote_ssh *)base;
    r->down_since_ns = r->retry_at_ns = 0;
    if (base->node.is_open) {
        ssh_pause(r->ssh);
    }
}

static void ssh_way_go_on(struct served *base)
{
    ssh_go_on(((struct remote_ssh *)base)->ssh, base->op.span_ns);
}

static void ssh_way_close(struct served *base)
{
    struct remote_ssh *r = (struct remote_ssh *)base;
    if (r->ssh) {
        ssh_abort(r->ssh);
    }
}

static const struct node_way SSH_WAY = {.prepare = ssh_prepare,
                                        .turn = ssh_turn,
                                        .put = ssh_put,
                                        .pause = ssh_way_pause,
                                        .go_on = ssh_way_go_on,
                                        .close = ssh_way_close,
                                        .label = ssh_label};

/* ---- operations ---- */

static enum step ssh_remote_exec(struct remote *remote, const struct remote_exec *exec,
                                 int *ret_exit_status, struct err *err)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    struct ssh_script script = {.text = exec->script,
                                .args = exec->args,
                                .feed = exec->feed,
                                .on_output = exec->on_output ? exec->on_output : remote_collect,
                                .output_ctx = exec->on_output ? exec->output_ctx : exec->output,
                                .deadline_ns = exec->deadline_ns ? exec->deadline_ns
                                                                 : REMOTE_EXEC_DEADLINE_NS};
    bool is_again;
    ASSERT(exec->on_output || exec->output);
    if (!r->base.op.is_active) {
        served_begin(&r->base, "a script was running");
    }
    enum step step = run(r, &script, false, ret_exit_status, &is_again, err);
    if (is_again && exec->feed &&
        step == STEP_AGAIN) { /* some of it has gone with the connection */
        step = step_fail(err_set(err, ERR_NET, "%s: connection lost", ssh_label(&r->base)));
    }
    if (step != STEP_FAIL && !exec->on_output && exec->output->is_full) {
        hang_up(r);
        step = step_fail(err_set(err, ERR_NODE, "%s: a script printed more than %zu bytes",
                                 ssh_label(&r->base), exec->output->cap_bytes));
    }
    if (step != STEP_AGAIN) {
        served_end(&r->base);
    }
    return step;
}

static void ssh_remote_abort(struct remote *remote)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    end_put(r);
    if (remote_node_abort(&r->base)) {
        served_end(&r->base);
        return;
    }
    if (r->is_up) {
        ssh_abort(r->ssh);
    } else {
        /* A half-made connection would end each wait of the loop, and nobody steps it now. */
        hang_up(r);
    }
    served_end(&r->base);
}

static void ssh_remote_free(struct remote *remote)
{
    struct remote_ssh *r = (struct remote_ssh *)remote;
    hang_up(r);
    loop_timer_drop(r->base.loop, r->retry_timer);
    served_release(&r->base);
    strbuf_release(&r->script);
    end_put(r);
    ssh_plan_drop(r->plan);
    free(r->work_wanted);
    free(r);
}

/* For sites that know their network; otherwise the default applies. */
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
    struct ssh_plan *plan = NULL;
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
    if (ssh_plan_new(&plan_opts, &plan, err) < 0) {
        return NULL;
    }
    r = xcalloc(1, sizeof(*r));
    r->plan = plan;
    served_init(&r->base, loop, &SSH_WAY,
                (struct remote_ops){
                    .exec = ssh_remote_exec, .abort = ssh_remote_abort, .free = ssh_remote_free});
    r->work_wanted = xstrdup(opts->work_folder ? opts->work_folder : "");
    r->outage_ns = outage_ns;
    rng_init(&r->rng, seed);
    strbuf_init(&r->script, SCRIPT_MAX);
    return &r->base.remote;
}
