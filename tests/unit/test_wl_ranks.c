/* SPDX-License-Identifier: Apache-2.0 */
/* N ranks with a batch of B each equal one rank with N x B: gradients, running statistics and loss in f64 within 1e-10. The ranks
   are threads connected by socket pairs. Real processes, several steps, f32 and --check:
   integration/test_wl_dist.sh. */
#include "tests/unit/wl_fixture.h"

#include "base/fs.h"
#include "dist/ring.h"
#include "tests/unit/wl_fuse.h"
#include "train/train.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Source: issue 4, item 8. */
#define ERROR_MAX 1e-10

struct task {
    const struct model *model;
    enum dtype dtype;
    int64_t size;
    int64_t batch; /* of all ranks */
    int n_ranks;
    bool has_sync_bn;
    bool is_fused;
    const struct net *like; /* parameters are copied from it; NULL: drawn */
};

struct rank_run {
    const struct task *task;
    int rank;
    int next, prev;
    pthread_t thread;
    struct fixture f;
    double loss;
    struct err err;
};

/* Those of the copied network have changed with its step. */
static void first_states(struct fixture *f)
{
    for (int i = 0; i < f->graph->n_values; i++) {
        const struct value *value = &f->graph->values[i];
        if (value->kind == VALUE_STATE) {
            CLEANUP(free) double *x = xcalloc((size_t)count_of(f, i), sizeof(*x));
            for (int64_t j = 0; j < count_of(f, i); j++) {
                x[j] = value->init.scale;
            }
            net_write_f64(&f->net, i, x);
        }
    }
}

/* A fused network may keep them in another order. */
static void copy_parameters(struct fixture *f, const struct net *like)
{
    for (int i = 0; i < f->graph->n_params; i++) {
        int param = f->graph->params[i];
        CLEANUP(free) void *x = xcalloc((size_t)count_of(f, param), sizeof(double));
        net_read(like, param, x);
        net_write(&f->net, param, x);
    }
}

static void one_rank(struct rank_run *run, struct comm *comm)
{
    const struct task *task = run->task;
    struct fixture *f = &run->f;
    fixture_init(f, task->dtype, CPU_PLAIN, 1);
    graph_set_ranks(f->graph, &(struct graph_ranks){.rank = run->rank,
                                                    .n_ranks = task->n_ranks,
                                                    .has_sync_bn = task->has_sync_bn});
    task->model->build(f->graph, &(struct model_opts){.batch = task->batch / task->n_ranks,
                                                      .height = task->size,
                                                      .width = task->size,
                                                      .sequence = task->size,
                                                      .predictions = 5,
                                                      .has_dropout = true});
    const struct fuse_support support = {
        .dtype = task->dtype, .channel_pad = 8, .channel_multiple = 8, .dilation_max = 8};
    const struct fuse_policy policy = task->is_fused ? fuse_supported(&support) : fuse_none();
    if (graph_finish(f->graph, &run->err) < 0 ||
        graph_fuse(f->graph, &policy, NULL, &run->err) < 0 ||
        net_plan_ranks(&f->net, &f->arena, f->graph, &f->backend, comm, &run->err) < 0 ||
        net_alloc(&f->net, &run->err) < 0) {
        return;
    }
    if (task->like) {
        copy_parameters(f, task->like);
        first_states(f);
    } else {
        net_init_values(&f->net, 7);
    }
    synthetic_batch(&f->net, task->model, 3, 0);
    set_step(&f->net, 1);
    if (net_gradients(&f->net, NULL)) {
        run->err = comm->err;
        return;
    }
    run->loss = net_loss(&f->net);
}

static void *start(void *arg)
{
    struct rank_run *run = arg;
    struct ring ring = {0};
    struct comm comm = comm_self();
    if (run->task->n_ranks > 1) {
        ring_init(&ring, run->rank, run->task->n_ranks, run->next, run->prev);
        comm = ring_comm(&ring);
    }
    one_rank(run, &comm);
    ring_release(&ring);
    return NULL;
}

static struct rank_run *run_ranks(const struct task *task)
{
    struct rank_run *runs = xcalloc((size_t)task->n_ranks, sizeof(*runs));
    for (int i = 0; i < task->n_ranks; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
                         0);
        runs[i].next = pair[0];
        runs[(i + 1) % task->n_ranks].prev = pair[1];
    }
    for (int i = 0; i < task->n_ranks; i++) {
        runs[i].task = task;
        runs[i].rank = i;
        assert_int_equal(pthread_create(&runs[i].thread, NULL, start, &runs[i]), 0);
    }
    for (int i = 0; i < task->n_ranks; i++) {
        pthread_join(runs[i].thread, NULL);
    }
    for (int i = 0; i < task->n_ranks; i++) {
        if (runs[i].err.code != ERR_NONE) {
            fail_msg("rank %d: %s", i, runs[i].err.msg);
        }
    }
    return runs;
}

static void release_ranks(struct rank_run *runs)
{
    int n = runs[0].task->n_ranks;
    for (int i = 0; i < n; i++) {
        fixture_release(&runs[i].f);
        if (n == 1) {
            fd_close(&runs[i].next);
            fd_close(&runs[i].prev);
        }
    }
    free(runs);
}

static double distance(const struct fixture *a, const struct fixture *b, int value)
{
    CLEANUP(free) double *x = read_doubles(a, value);
    CLEANUP(free) double *y = read_doubles(b, value);
    for (int64_t i = 0; i < count_of(a, value); i++) {
        x[i] -= y[i];
    }
    double norm = norm_of(x, count_of(a, value));
    return norm;
}

/* The largest relative error of one kind's values. A value that is zero except for rounding (the gradient of a bias that a batch
   norm cancels, the mean of what another one has centred) has no relative error: it is compared with a millionth of the norm of
   all of them. */
static double worst_of(const struct rank_run *many, const struct rank_run *one,
                       enum value_kind kind)
{
    const struct graph *graph = one->f.graph;
    double most = 0.0;
    double all = 0.0;
    for (int i = 0; i < graph->n_values; i++) {
        all += graph->values[i].kind == kind ? pow(norm_of_value(&one->f, i), 2.0) : 0.0;
    }
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == kind) {
            double norm = norm_of_value(&one->f, i);
            double floor = 1e-6 * sqrt(all);
            double apart = distance(&many->f, &one->f, i) / (norm > floor ? norm : floor);
            most = apart > most ? apart : most;
        }
    }
    return most;
}

static double worst(const struct rank_run *many, const struct rank_run *one)
{
    double gradients = worst_of(many, one, VALUE_GRAD_PARAM);
    double states = worst_of(many, one, VALUE_STATE);
    return gradients > states ? gradients : states;
}

static void same_bits(const struct fixture *a, const struct fixture *b)
{
    assert_int_equal(a->net.plan.arena_bytes[MEMPLAN_GRAD], b->net.plan.arena_bytes[MEMPLAN_GRAD]);
    assert_memory_equal(a->net.mem[MEMPLAN_GRAD], b->net.mem[MEMPLAN_GRAD],
                        (size_t)a->net.plan.arena_bytes[MEMPLAN_GRAD]);
    assert_memory_equal(a->net.mem[MEMPLAN_PARAM], b->net.mem[MEMPLAN_PARAM],
                        (size_t)a->net.plan.arena_bytes[MEMPLAN_PARAM]);
}

static void hold(const struct model *model, int64_t size, int64_t batch, int n_min, int n_max,
                 bool is_fused)
{
    struct task task = {.model = model,
                        .dtype = DT_F64,
                        .size = size,
                        .batch = batch,
                        .n_ranks = 1,
                        .has_sync_bn = true};
    struct rank_run *one = run_ranks(&task);
    for (int n = n_min; n <= n_max; n++) {
        struct task more = task;
        more.n_ranks = n;
        more.is_fused = is_fused;
        more.like = &one[0].f.net;
        struct rank_run *many = run_ranks(&more);
        double apart = worst(&many[0], &one[0]);
        double loss = fabs(many[0].loss / one[0].loss - 1.0);
        print_message("# %s%s, %d ranks: gradients and statistics apart %.2g, loss %.2g\n",
                      model->name, is_fused ? ", fused" : "", n, apart, loss);
        assert_true(apart < ERROR_MAX);
        assert_true(loss < ERROR_MAX);
        for (int i = 1; i < n; i++) {
            same_bits(&many[i].f, &many[0].f);
        }
        release_ranks(many);
    }
    release_ranks(one);
}

TEST(hrnet_w18)
{
    hold(&model_hrnet_w18, 32, 6, 2, 3, false);
}

/* Larger, with calls that do not depend on ranks next to HRNet's and BERT's. */
TEST(larger_ones)
{
    if (in_test_all("ranks of ResNet-50 and DeepLabV3+, four of HRNet")) {
        hold(&model_resnet50, 40, 4, 4, 4, false);
        hold(&model_deeplabv3p, 32, 6, 3, 3, false);
        hold(&model_hrnet_w18, 32, 12, 4, 4, false);
    }
}

/* Sums over ranks are then made by other calls, and gradients are stored in another order. */
TEST(hrnet_w18_fused)
{
    hold(&model_hrnet_w18, 32, 6, 3, 3, true);
}

/* Two losses with labels of their own, dropout of shares and of values; nothing has statistics. */
TEST(bert_tiny)
{
    hold(&model_bert_tiny, 12, 6, 3, 3, false);
}

/* Without the switch each rank's batch norm is its own: the network is another one, and the test above could see it. */
TEST(without_sync_bn_it_is_another_network)
{
    struct task task = {
        .model = &model_hrnet_w18, .dtype = DT_F64, .size = 32, .batch = 4, .n_ranks = 1};
    struct task more = task;
    more.n_ranks = 2;
    struct rank_run *one = run_ranks(&task);
    struct rank_run *many = run_ranks(&more);
    assert_true(worst(&many[0], &one[0]) > 1e-3);
    same_bits(&many[1].f, &many[0].f);
    release_ranks(one);
    release_ranks(many);
}
