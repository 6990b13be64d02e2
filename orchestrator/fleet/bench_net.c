/* SPDX-License-Identifier: Apache-2.0 */
/* Every pair of nodes once, with as many disjoint pairs at a time as possible (the circle method of tournaments), then all in a ring. */
#include "base/base.h"

#include "fleet/bench_impl.h"

#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "codec/digest.h"
#include "sys/relay_net.h"

#define TOKEN_ENV  "REPERF_BENCH_TOKEN="
#define SIZES_MAX  8 /* series of a pair */
#define TOKEN_SIZE 32

struct net_bench { /* of all nodes */
    struct bench_job *job;
    const char **addresses; /* numeric; NULL: none */
    struct bench_link *links;
    size_t n_links, n_max;
    size_t *pairs; /* of each two nodes, where their links begin, plus one; 0: none yet */
};

static const char *const *new_token(struct bench_job *job, struct err *err)
{
    uint8_t bytes[TOKEN_SIZE];
    char hex[2 * TOKEN_SIZE + 1];
    const char **env = arena_array(job->arena, const char *, 2);
    if (relay_random(bytes, sizeof(bytes), err) < 0) {
        return NULL;
    }
    hex_encode(bytes, sizeof(bytes), hex);
    env[0] = arena_printf(job->arena, TOKEN_ENV "%s", hex);
    return env;
}

/* The address as this machine resolves the name: reperf-node is static and has no resolver. */
static const char *numeric(struct bench_job *job, const char *name)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char text[INET6_ADDRSTRLEN + 1];
    const char *address = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0) {
        return NULL;
    }
    if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                    NI_NUMERICHOST) == 0) {
        address = arena_printf(job->arena, "%s", text);
    }
    freeaddrinfo(found);
    return address;
}

static void find_addresses(struct net_bench *net)
{
    struct bench_job *job = net->job;
    for (size_t idx = 0; idx < job->fleet->n_nodes; idx++) {
        const char *name =
            str_z(job->arena, inventory_fast_address(&job->fleet->inventory->nodes[idx]));
        net->addresses[idx] = numeric(job, name);
        if (!net->addresses[idx]) {
            struct err why = {0};
            (void)!err_set(&why, ERR_NODE, "%.100s: its address cannot be resolved here", name);
            bench_node_fails(job, idx, &why);
        }
    }
}

static bool is_there(const struct net_bench *net, size_t node)
{
    return net->addresses[node] && !net->job->fleet->nodes[node].is_left_out;
}

static void add_listener(struct net_bench *net, struct bench_task *task, size_t node,
                         const char *const *env)
{
    struct bench_job *job = net->job;
    const char *const args[] = {net->addresses[node],
                                bench_number(job, job->opts->port + (int64_t)node), NULL};
    bench_task_is(job, task, node, "listen", args);
    task->env = env;
}

static void add_sender(struct net_bench *net, struct bench_task *task, const size_t ends[2],
                       const char *what, const char *const *env)
{
    struct bench_job *job = net->job;
    const char *const args[] = {
        net->addresses[ends[1]], bench_number(job, job->opts->port + (int64_t)ends[1]),
        bench_number(job, job->opts->sample_ms), bench_number(job, job->opts->n_repeats), NULL};
    bench_task_is(job, task, ends[0], what, args);
    task->env = env;
}

/* ---- results ---- */

/* The links of two nodes are adjacent, except the ring's, which is measured once. */
static struct bench_link *find_link(const struct net_bench *net, size_t begin,
                                    const struct bench_link *wanted)
{
    for (size_t idx = begin; idx < net->n_links; idx++) {
        struct bench_link *link = &net->links[idx];
        bool is_same = link->from == wanted->from && link->to == wanted->to;
        if (!is_same && (link->from != wanted->to || link->to != wanted->from)) {
            break;
        }
        if (is_same && link->size_bytes == wanted->size_bytes &&
            link->figure.measure == wanted->figure.measure) {
            return link;
        }
    }
    return NULL;
}

/* The existing link if they are measured again; else a new one. */
static struct bench_link *link_of(struct net_bench *net, size_t from, size_t to, int64_t size_bytes,
                                  const struct bench_measure *measure)
{
    const struct bench_link empty = {.from = from,
                                     .to = to,
                                     .size_bytes = size_bytes,
                                     .figure = {.measure = measure,
                                                .spread_given = (double)NAN,
                                                .group_median = (double)NAN,
                                                .group_spread = (double)NAN,
                                                .verdict = BENCH_NOT_MEASURED}};
    size_t *begin =
        &net->pairs[(from < to ? from : to) * net->job->fleet->n_nodes + (from < to ? to : from)];
    struct bench_link *link =
        net->job->is_again && *begin ? find_link(net, *begin - 1, &empty) : NULL;
    if (!link) {
        link = &net->links[net->n_links++];
        ASSERT(net->n_links <= net->n_max);
        *link = empty;
        *begin = *begin ? *begin : net->n_links;
    }
    return link;
}

static void add_series(struct net_bench *net, const struct bench_task *task, size_t to,
                       const struct bench_series *series)
{
    static const char RECEIVE[] = "net.receive";
    bool is_back = strcmp(series->measure->id, RECEIVE) == 0;
    const struct bench_measure *measure =
        is_back ? bench_measure_of(STR_LIT("net.send")) : series->measure;
    struct bench_link *link = link_of(net, is_back ? to : task->node, is_back ? task->node : to,
                                      series->size_bytes, measure);
    bench_figure_add(net->job, &link->figure, series);
    link->figure.verdict = BENCH_NOT_COMPARED;
    link->figure.why = measure->what == BENCH_RING ? STR_LIT("of a ring none are compared")
                                                   : STR_LIT("of this size none are compared");
}

static void take_answer(struct net_bench *net, struct bench_task *task, size_t to,
                        enum bench_what what)
{
    struct bench_answer answer;
    if (bench_read_task(net->job, task, what, &answer)) {
        for (size_t idx = 0; idx < answer.n_series; idx++) {
            add_series(net, task, to, &answer.series[idx]);
        }
        return;
    }
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        const struct bench_measure *measure = &BENCH_MEASURE[idx];
        if (measure->what == what && strcmp(measure->id, "net.receive") != 0) {
            struct bench_link *link = link_of(net, task->node, to, measure->size_bytes, measure);
            link->figure.n = 0;
            link->figure.verdict = BENCH_NOT_MEASURED;
            link->figure.why = str_of(arena_printf(net->job->arena, "%s", task->err.msg));
        }
    }
}

/* ---- pairs ---- */

/* The pairs of a round: of n (even), one stays, the others rotate. */
static size_t seat(size_t n, size_t round, size_t at)
{
    return at == 0 ? 0 : 1 + (at - 1 + round) % (n - 1);
}

static int run_pairs(struct net_bench *net, size_t round, size_t n_seats, struct err *err)
{
    struct bench_job *job = net->job;
    size_t n_nodes = job->fleet->n_nodes, n = 0;
    struct bench_task *tasks = bench_tasks_new(job, n_seats + 2);
    int rc = 0;
    for (size_t at = 0; at < n_seats / 2 && rc == 0; at++) {
        size_t a = seat(n_seats, round, at), b = seat(n_seats, round, n_seats - 1 - at);
        size_t ends[2] = {a < b ? a : b, a < b ? b : a};
        const char *const *env;
        if (ends[1] >= n_nodes || !is_there(net, ends[0]) || !is_there(net, ends[1])) {
            continue; /* one more than there are, or one that failed before */
        }
        env = new_token(job, err);
        if (!env) {
            rc = -1;
            break;
        }
        add_listener(net, &tasks[n++], ends[1], env);
        add_sender(net, &tasks[n++], ends, "link", env);
    }
    rc = rc < 0 ? rc : bench_round(job, tasks, n, err);
    for (size_t idx = 0; rc == 0 && idx + 1 < n; idx += 2) {
        take_answer(net, &tasks[idx + 1], tasks[idx].node, BENCH_NET);
    }
    bench_tasks_release(tasks, n_seats + 2);
    return rc;
}

static int run_ring(struct net_bench *net, struct err *err)
{
    struct bench_job *job = net->job;
    size_t n_nodes = job->fleet->n_nodes, n_in = 0;
    size_t *in = arena_array(job->arena, size_t, n_nodes + 1);
    struct bench_task *tasks = bench_tasks_new(job, 2 * n_nodes);
    int rc = 0;
    for (size_t idx = 0; idx < n_nodes; idx++) {
        if (is_there(net, idx)) {
            in[n_in++] = idx;
        }
    }
    for (size_t at = 0; at < n_in && n_in > 1 && rc == 0; at++) {
        size_t ends[2] = {in[at], in[(at + 1) % n_in]};
        const char *const *env = new_token(job, err);
        if (!env) {
            rc = -1;
            break;
        }
        add_listener(net, &tasks[2 * at], ends[1], env);
        add_sender(net, &tasks[2 * at + 1], ends, "ring", env);
    }
    rc = rc < 0 || n_in < 2 ? rc : bench_round(job, tasks, 2 * n_in, err);
    for (size_t at = 0; rc == 0 && at < n_in && n_in > 1; at++) {
        take_answer(net, &tasks[2 * at + 1], tasks[2 * at].node, BENCH_RING);
    }
    bench_tasks_release(tasks, 2 * n_nodes);
    return rc;
}

/* ---- a node's figure: of its links ---- */

static void figure_of(struct bench_job *job, const struct bench_all *all, size_t node,
                      const struct bench_measure *measure)
{
    size_t n_nodes = job->fleet->n_nodes;
    if (!bench_sum_links(job->arena, all, node, measure)) {
        struct str why = n_nodes < 2 ? STR_LIT("there is one node")
                         : job->fleet->nodes[node].is_left_out
                             ? str_of(job->result->nodes[node].err.msg)
                             : STR_LIT("no peer was measured");
        bench_figure_lacks(job, node, measure, why, n_nodes < 2);
    }
}

static void take_figures(struct bench_job *job)
{
    struct bench_all all = bench_all_of(job);
    for (size_t node = 0; node < job->fleet->n_nodes; node++) {
        for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
            enum bench_what what = BENCH_MEASURE[idx].what;
            if (what == BENCH_NET || what == BENCH_RING) {
                figure_of(job, &all, node, &BENCH_MEASURE[idx]);
            }
        }
    }
}

static struct net_bench *new_net(struct bench_job *job)
{
    size_t n = job->fleet->n_nodes;
    struct net_bench *net = arena_new(job->arena, struct net_bench);
    net->job = job;
    net->n_max = SIZES_MAX * (n * n / 2 + n) + 1;
    net->links = arena_array(job->arena, struct bench_link, net->n_max);
    net->addresses = arena_array(job->arena, const char *, n + 1);
    net->pairs = arena_array(job->arena, size_t, n * n + 1);
    if (n > 1) {
        find_addresses(net);
    }
    return net;
}

int bench_net_all(struct bench_job *job, struct err *err)
{
    size_t n_nodes = job->fleet->n_nodes, n_seats = n_nodes + n_nodes % 2;
    size_t fanout = job->fleet->fanout;
    struct net_bench *net = job->net ? job->net : new_net(job);
    int rc = 0;
    job->net = net;
    if (n_nodes > 1) {
        job->fleet->fanout = n_nodes; /* both ends at once, whatever else is asked */
        for (size_t round = 0; round + 1 < n_seats && rc == 0; round++) {
            rc = run_pairs(net, round, n_seats, err);
        }
        rc = rc < 0 || job->is_again ? rc : run_ring(net, err); /* of a ring none are compared */
        job->fleet->fanout = fanout;
    }
    if (rc == 0) {
        job->result->links = net->links;
        job->result->n_links = net->n_links;
        take_figures(job);
    }
    return rc;
}
