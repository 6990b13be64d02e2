/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/team.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "core/plan_book.h"
#include "core/sha256.h"
#include "train/device.h"

#define FACTS_MAX 4096

static void put_training(struct strbuf *text, const struct train_opts *opts)
{
    const struct opt_rule *rule = &opts->rule;
    const struct schedule *schedule = &opts->schedule;
    strbuf_printf(text, " optimizer=%s lr=%.17g momentum=%.17g weight_decay=%.17g decay=%s",
                  opt_method_name(rule->method), schedule->lr, rule->momentum, rule->weight_decay,
                  opts->decay == NET_DECAY_ALL ? "all" : "matrices");
    strbuf_printf(text, " betas=%.17g,%.17g eps=%.17g accumulate=%" PRId64, rule->beta1,
                  rule->beta2, rule->eps, rule->n_micro);
    strbuf_printf(text, " load=%d", opts->load_path != NULL);
    strbuf_printf(text, " loss_scale=%s,%.9g,%" PRId64, opt_scaling_name(rule->scaling),
                  (double)rule->loss_scale, rule->scale_window);
    strbuf_printf(text, " schedule=%s schedule_steps=%" PRId64 " lr_end=%.17g lr_power=%.17g",
                  schedule_name(schedule->kind), schedule->steps, schedule->end, schedule->power);
    strbuf_printf(text, " lr_warmup=%" PRId64 ",%.17g,%d lr_factor=%.17g", schedule->warmup_steps,
                  schedule->warmup_start, schedule->covers_warmup, schedule->factor);
    for (int i = 0; i < schedule->n_drops; i++) {
        strbuf_printf(text, " lr_drop%d=%" PRId64, i, schedule->drops[i]);
    }
}

/* One word a fact, so that a message can name the first that differs. Facts that may differ (threads, paths) are left
   out. */
static void put_facts(struct strbuf *text, const struct train_opts *opts,
                      const struct backend *backend, const char *extra)
{
    strbuf_printf(text, "model=%s device=%s backend=%s precision=%s dtype=%s batch=%" PRId64,
                  opts->model->name, opts->device, backend->name, opts->precision,
                  dtype_name(opts->dtype), opts->batch);
    strbuf_printf(text, " image=%" PRId64 "x%" PRId64 " sequence=%" PRId64 " predictions=%" PRId64,
                  opts->size.height, opts->size.width, opts->size.sequence, opts->size.predictions);
    strbuf_printf(text, " mode=%s steps=%" PRId64 " warmup=%" PRId64,
                  opts->mode == TRAIN_CHECK ? "check" : "train", opts->steps, opts->warmup_steps);
    strbuf_printf(text, " sync_bn=%d fused=%d tuned=%d", opts->has_sync_bn, opts->is_fused,
                  opts->is_tuned);
    strbuf_printf(text, " label_smoothing=%.17g seed=%" PRId64 " data=%s", opts->label_smoothing,
                  opts->seed, opts->data_path ? "folder" : synthetic_name(opts));
    if (opts->data_path) {
        strbuf_printf(text, " data_seed=%" PRId64 " start_step=%" PRId64 " augment_on=%s",
                      opts->data_seed, opts->start_step,
                      opts->is_augmented_on_device ? "device" : "host");
    }
    for (int i = 0; i < 3 && opts->has_mean; i++) {
        strbuf_printf(text, " mean%d=%.17g", i, opts->mean[i]);
    }
    for (int i = 0; i < 3 && opts->has_std; i++) {
        strbuf_printf(text, " std%d=%.17g", i, opts->std[i]);
    }
    strbuf_printf(text, " inference=%d eval_every=%" PRId64 " eval_image=%" PRId64 "x%" PRId64,
                  opts->is_inference, opts->eval_every, opts->eval_size.height,
                  opts->eval_size.width);
    strbuf_printf(text, " until=%.17g", opts->target);
    strbuf_printf(text, "%s%s", extra[0] != '\0' ? " " : "", extra);
    put_training(text, opts);
}

/* The facts, and the network down to the last shape and call. */
static void digest_network(const struct graph *graph, const char *facts, char *ret_hex)
{
    struct sha256 sha;
    char shape[SHAPE_TEXT_MAX];
    sha256_init(&sha);
    sha256_add(&sha, facts, strlen(facts) + 1);
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        const int head[3] = {(int)value->kind, (int)value->dtype, value->name != NULL};
        const char *name = value->name ? value->name : "";
        shape_text(&value->shape, shape);
        sha256_add(&sha, head, sizeof(head));
        sha256_add(&sha, name, strlen(name) + 1);
        sha256_add(&sha, shape, strlen(shape) + 1);
    }
    for (int i = 0; i < graph->n_calls; i++) {
        const int id = (int)graph->calls[i].args.id;
        sha256_add(&sha, &id, sizeof(id));
    }
    sha256_hex(&sha, ret_hex);
}

/* As many whole words as fit; the digest covers the others. */
static void first_words(const char *facts, char ret_words[WIRE_FACTS_MAX])
{
    snprintf(ret_words, WIRE_FACTS_MAX, "%s", facts);
    char *end = strrchr(ret_words, ' ');
    if (strlen(facts) >= WIRE_FACTS_MAX && end) {
        *end = '\0';
    }
}

static int say_fatal(const struct mlog *log, const char *device, const char *where, struct err *err)
{
    struct err unsaid = {0};
    if (mlog_fatal(log, device, where, err->msg, &unsaid) < 0) {
        return err_wrap(err, "%s (%s)", where, unsaid.msg);
    }
    return -1;
}

int team_open(struct job *job, const struct team_opts *team, struct err *err)
{
    const struct train_opts *opts = team->train;
    CLEANUP(strbuf) struct strbuf facts;
    char network[SHA256_HEX_LEN + 1];
    char words[WIRE_FACTS_MAX];
    strbuf_init(&facts, FACTS_MAX);
    put_facts(&facts, opts, team->backend, team->extra);
    ASSERT(!facts.is_full);
    digest_network(team->graph, facts.ptr, network);
    first_words(facts.ptr, words);
    const struct job_opts job_opts = {.ranks = &opts->ranks,
                                      .token = getenv("REPERF_JOB"),
                                      .iface = getenv("REPERF_DIST_IFACE"),
                                      .facts = words,
                                      .network = network,
                                      .rendezvous_ns = opts->rendezvous_s * NS_PER_S,
                                      .timeout_ns = opts->comm_timeout_s * NS_PER_S,
                                      .stop = team->stop};
    if (job_open(job, &job_opts, err) < 0) {
        return err->code == ERR_INTERRUPTED ? -1
                                            : say_fatal(team->log, opts->device, "rendezvous", err);
    }
    const struct backend_async *async = &team->backend->async;
    char gpu[DEVICE_TEXT_MAX] = "";
    if (opts->ranks.n_ranks == 1 || !async->join_ranks) {
        return 0;
    }
    async->identify(team->backend->self, gpu, sizeof(gpu));
    const struct job_device device = {gpu, team->backend->self, async->drop_programs};
    if (job_use_cuda(job, &device, &job_opts, err) == 0) {
        return 0;
    }
    int status =
        err->code == ERR_INTERRUPTED ? -1 : say_fatal(team->log, opts->device, "ranks", err);
    job_fail(job, err->msg);
    return status;
}

/* ---- plans ---- */

static int has_failed(const struct comm *comm, struct err *err)
{
    if (comm->err.code != ERR_NONE) {
        *err = comm->err;
    }
    return comm->err.code != ERR_NONE ? -1 : 0;
}

/* (n_ranks, PLAN_ABOUT_MAX) */
static char *gather_kinds(struct comm *comm, const struct backend *backend)
{
    char *kinds = xcalloc((size_t)comm->n_ranks, PLAN_ABOUT_MAX);
    char *own = kinds + (size_t)comm->rank * PLAN_ABOUT_MAX;
    (void)snprintf(own, PLAN_ABOUT_MAX, "%s", backend->async.kind(backend->self));
    comm_all_gather(comm, kinds, PLAN_ABOUT_MAX);
    return kinds;
}

/* The first rank with a device of this one's kind. */
static int first_of(const char *kinds, int rank)
{
    int first = 0;
    while (memcmp(kinds + (size_t)first * PLAN_ABOUT_MAX, kinds + (size_t)rank * PLAN_ABOUT_MAX,
                  PLAN_ABOUT_MAX) != 0) {
        first++;
    }
    return first;
}

/* From `root` to all; its kind takes them. */
static int share_choices(struct comm *comm, const struct backend *backend, int root, bool is_kind,
                         struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    int64_t bytes = 0;
    strbuf_init(&text, PLAN_BOOK_TEXT_MAX);
    if (comm->rank == root) {
        backend->async.share_choices(backend->self, &text);
        ASSERT(!text.is_full);
        bytes = (int64_t)text.len;
    }
    comm_broadcast(comm, &bytes, sizeof(bytes), root);
    if (has_failed(comm, err) < 0) {
        return -1;
    }
    if (bytes < 0 || bytes >= PLAN_BOOK_TEXT_MAX) {
        return err_set(err, ERR_PARSE, "rank %d sends %" PRId64 " bytes of plans", root, bytes);
    }
    CLEANUP(free) char *copy = xcalloc((size_t)bytes + 1, 1);
    if (comm->rank == root && bytes > 0) {
        memcpy(copy, text.ptr, (size_t)bytes);
    }
    comm_broadcast(comm, copy, bytes, root);
    if (has_failed(comm, err) < 0) {
        return -1;
    }
    return is_kind && comm->rank != root
               ? backend->async.take_choices(backend->self, (struct str){copy, (size_t)bytes}, err)
               : 0;
}

static int plan_by_first(struct job *job, const struct train_opts *opts, struct arena *arena,
                         const struct backend *backend, struct net *ret_net, struct err *err)
{
    struct comm *comm = &job->comm;
    CLEANUP(free) char *kinds = gather_kinds(comm, backend);
    if (has_failed(comm, err) < 0) {
        return -1;
    }
    int first = first_of(kinds, comm->rank);
    if (first == comm->rank && train_plan(opts, arena, backend, comm, ret_net, err) < 0) {
        return -1;
    }
    for (int i = 0; i < comm->n_ranks; i++) {
        if (first_of(kinds, i) == i && share_choices(comm, backend, i, i == first, err) < 0) {
            return -1;
        }
    }
    return first == comm->rank ? 0 : train_plan(opts, arena, backend, comm, ret_net, err);
}

/* The first rank whose row of hex digits differs from rank 0's; 0: none. */
static int differing_rank(struct comm *comm, const char *sha256_hex, char **ret_rows)
{
    char *rows = xcalloc((size_t)comm->n_ranks, SHA256_HEX_LEN);
    memcpy(rows + (size_t)comm->rank * SHA256_HEX_LEN, sha256_hex, SHA256_HEX_LEN);
    comm_all_gather(comm, rows, SHA256_HEX_LEN);
    int rank = 1;
    while (rank < comm->n_ranks &&
           memcmp(rows, rows + (size_t)rank * SHA256_HEX_LEN, SHA256_HEX_LEN) == 0) {
        rank++;
    }
    *ret_rows = rows;
    return rank < comm->n_ranks ? rank : 0;
}

static int plan_alike(void *self, const struct train_opts *opts, struct arena *arena,
                      const struct backend *backend, struct net *ret_net, struct err *err)
{
    struct job *job = self;
    bool is_shared = job->comm.n_ranks > 1 && backend->async.kind;
    return is_shared ? plan_by_first(job, opts, arena, backend, ret_net, err)
                     : train_plan(opts, arena, backend, &job->comm, ret_net, err);
}

static int all_have_room(void *self, bool *is_room, struct err *err)
{
    struct job *job = self;
    double n_without = *is_room ? 0.0 : 1.0;
    comm_all_reduce(&job->comm, &n_without, 1, DT_F64);
    *is_room = n_without == 0.0;
    return has_failed(&job->comm, err);
}

int team_plan(struct job *job, struct train_opts *opts, struct arena *arena,
              const struct backend *backend, struct net *ret_net, struct err *err)
{
    struct comm *comm = &job->comm;
    const struct train_planner planner = {job, plan_alike, all_have_room};
    char network[SHA256_HEX_LEN + 1];
    if (train_plan_to_fit(opts, arena, backend, &planner, ret_net, err) < 0) {
        return -1;
    }
    /* The ranks that timed stop as well: the others would wait for them. */
    if (comm->n_ranks > 1 && backend->async.kind &&
        backend->async.take_choices(backend->self, STR_EMPTY, err) < 0) {
        return -1;
    }
    digest_network(ret_net->graph, "", network);
    CLEANUP(free) char *rows = NULL;
    int other = differing_rank(comm, network, &rows);
    if (other != 0 && comm->err.code == ERR_NONE) {
        job_ends_alike(job);
        return err_set(err, ERR_USAGE,
                       "rank %d computes other calls than rank 0: their devices or libraries fuse "
                       "different ones; with --no-fuse they can work together",
                       other);
    }
    return has_failed(comm, err);
}

/* ---- data ---- */

int team_agree_on_data(struct job *job, const char *option, const char *sha256_hex, struct err *err)
{
    CLEANUP(free) char *rows = NULL;
    int other = differing_rank(&job->comm, sha256_hex, &rows);
    if (other != 0 && job->comm.err.code == ERR_NONE) {
        job_ends_alike(job);
        return err_set(err, ERR_USAGE,
                       "%s: rank %d has another dataset (pack.json %.12s) than rank 0 (%.12s)",
                       option, other, rows + (size_t)other * SHA256_HEX_LEN, rows);
    }
    return has_failed(&job->comm, err);
}

/* ---- failures ---- */

int team_fail(struct job *job, const struct mlog *log, const char *device, const char *where,
              struct err *err)
{
    bool is_theirs = job->comm.err.code != ERR_NONE && job->comm.err.code != ERR_INTERRUPTED;
    if (is_theirs) {
        *err = job->comm.err;
        int status = say_fatal(log, device, where, err);
        job_abort(job);
        return status;
    }
    job_fail(job, err->msg);
    if (!job->ends_alike) {
        job_abort(job); /* operations that others no longer join must not block the device */
    }
    return -1;
}
