/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/doctor.h"

#include "base/str.h"
#include "report/node_facts.h"
#include "report/plan.h"
#include "store/dataset_store.h"
#include "store/image_store.h"

#define FACTS_DEADLINE_NS   (240 * NS_PER_S) /* nvidia-smi without persistence takes seconds a GPU */
#define SHORT_DEADLINE_NS   (30 * NS_PER_S)
#define CONNECT_DEADLINE_NS (120 * NS_PER_S)
/* The doctor reports the present state and does not wait for recovery. */
#define OUTAGE_NS  (5 * NS_PER_S)
#define OUTPUT_MAX (4u << 20)

/* ---- one node's steps ---- */

/* The first is what it takes to connect and to start reperf-node. */
enum { HELLO, CLOCK, FACTS, N_PHASES };
static const struct {
    const char *what;
    enum node_op op;
    int64_t deadline_ns;
} PHASES[N_PHASES] = {[HELLO] = {"asked for the time", NODE_CLOCK, SHORT_DEADLINE_NS},
                      [CLOCK] = {"asked for the time", NODE_CLOCK, SHORT_DEADLINE_NS},
                      [FACTS] = {"asked what it is", NODE_FACTS, FACTS_DEADLINE_NS}};

/* The visit of one node. */
struct visit {
    size_t phase;
    bool is_begun; /* the phase */
    int64_t mono_ns, wall_ns;
    struct strbuf output;
};

struct exam {
    struct arena *arena;
    struct clock_src clock;
    struct node_probe *probes;
    struct visit *visits;
    const char *engines;
};

/* It read its clock between the request and the answer. */
static int read_clock(struct node_probe *probe, struct str text, int64_t before_ns,
                      int64_t after_ns, struct err *err)
{
    int64_t there_ns;
    if (str_to_i64(str_trim(text), 0, INT64_MAX, &there_ns, err) < 0) {
        return err_wrap(err, "asked for the time");
    }
    probe->has_clock = true;
    probe->clock_low_ns = there_ns - after_ns;
    probe->clock_high_ns = there_ns - before_ns;
    return 0;
}

static int read_facts(struct exam *exam, struct node_probe *probe, const struct visit *visit,
                      struct err *err)
{
    struct str text = strbuf_str(&visit->output);
    if (facts_parse(exam->arena, str_dup(exam->arena, text), &probe->facts, err) < 0) {
        return err_wrap(err, "asked what it is");
    }
    return facts_expand_gpus(exam->arena, &probe->facts, err);
}

static int end_phase(struct exam *exam, const struct visit *visit, struct node_probe *probe,
                     struct err *err)
{
    int64_t span_ns = exam->clock.mono_ns(exam->clock.ctx) - visit->mono_ns;
    if (visit->phase == HELLO) {
        probe->connect_ns = span_ns;
        return 0;
    }
    if (visit->phase == CLOCK) {
        probe->round_trip_ns = span_ns;
        return read_clock(probe, strbuf_str(&visit->output), visit->wall_ns,
                          visit->wall_ns + span_ns, err);
    }
    probe->is_reached = read_facts(exam, probe, visit, err) == 0;
    return probe->is_reached ? 0 : -1;
}

static enum step step_examine(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct exam *exam = ctx;
    struct visit *visit = &exam->visits[node_idx];
    const struct str engines = str_of(exam->engines);
    for (; visit->phase < N_PHASES; visit->phase++) {
        const struct remote_ask ask = {.what = PHASES[visit->phase].what,
                                       .op = PHASES[visit->phase].op,
                                       .fields = &engines,
                                       .n_fields = visit->phase == FACTS,
                                       .output = &visit->output,
                                       .deadline_ns = PHASES[visit->phase].deadline_ns};
        if (!visit->is_begun) {
            visit->is_begun = true;
            strbuf_clear(&visit->output);
            visit->mono_ns = exam->clock.mono_ns(exam->clock.ctx);
            visit->wall_ns = exam->clock.wall_ns(exam->clock.ctx);
        }
        enum step step = node->remote->ops->ask(node->remote, &ask, err);
        if (step != STEP_DONE) {
            return step;
        }
        visit->is_begun = false;
        if (end_phase(exam, visit, &exam->probes[node_idx], err) < 0) {
            return STEP_FAIL;
        }
    }
    return STEP_DONE;
}

int doctor_examine(struct arena *arena, struct fleet *fleet, struct clock_src clock,
                   const char *engines, struct node_probes *ret_probes, struct err *err)
{
    struct exam exam = {.arena = arena, .clock = clock, .engines = engines};
    struct node_probes probes = {fleet->inventory,
                                 arena_array(arena, struct node_probe, fleet->n_nodes + 1),
                                 fleet->n_nodes};
    exam.probes = probes.items;
    exam.visits = arena_array(arena, struct visit, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_init(&exam.visits[idx].output, OUTPUT_MAX);
        probes.items[idx].spec = fleet->nodes[idx].spec;
    }
    int status = fleet_each(fleet, 0, step_examine, &exam, err);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        struct node_probe *probe = &probes.items[idx];
        strbuf_release(&exam.visits[idx].output);
        if (!probe->is_reached) {
            probe->error = str_printf(arena, "%s", fleet->nodes[idx].err.msg);
            probe->cause = fleet->nodes[idx].err.code;
        }
    }
    *ret_probes = probes;
    return status < 0 ? -1 : 0;
}

/* ---- ports ---- */

struct port_round {
    struct arena *arena;
    const struct node_probes *probes;
    enum node_op op;
    struct str port;
    struct str **fields; /* each node's */
    size_t *n_fields;
    struct strbuf *outputs;
};

static enum step step_round(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct port_round *round = ctx;
    const struct remote_ask ask = {.what = "trying a port",
                                   .op = round->op,
                                   .fields = round->fields[node_idx],
                                   .n_fields = round->n_fields[node_idx],
                                   .output = &round->outputs[node_idx],
                                   .deadline_ns = CONNECT_DEADLINE_NS};
    return round->probes->items[node_idx].is_reached
               ? node->remote->ops->ask(node->remote, &ask, err)
               : STEP_DONE;
}

/* Asks all nodes that were reached; answers go to ret_facts, reasons for failures to their `why`. */
static int run_round(struct port_round *round, struct fleet *fleet, struct node_facts *ret_facts,
                     struct err *err)
{
    round->outputs = arena_array(round->arena, struct strbuf, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_init(&round->outputs[idx], OUTPUT_MAX);
    }
    int status = fleet_each(fleet, 0, step_round, round, err);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        struct err bad = {0};
        struct str text = str_dup(round->arena, strbuf_str(&round->outputs[idx]));
        strbuf_release(&round->outputs[idx]);
        if (status < 0 || !round->probes->items[idx].is_reached) {
            continue;
        }
        if (fleet->nodes[idx].err.code != ERR_NONE) {
            bad = fleet->nodes[idx].err;
        }
        if (bad.code != ERR_NONE || facts_parse(round->arena, text, &ret_facts[idx], &bad) < 0) {
            struct node_fact why = {STR_LIT("failed"), STR_EMPTY,
                                    str_printf(round->arena, "%s", bad.msg)};
            ret_facts[idx] = (struct node_facts){0};
            if (facts_add(round->arena, &ret_facts[idx], why, err) < 0) {
                return -1;
            }
        }
    }
    return status < 0 ? -1 : 0;
}

static void name_peers(struct port_round *round, const struct node_probes *probes, size_t at)
{
    size_t n = 0;
    struct str *fields = arena_array(round->arena, struct str, 2 * probes->n + 1);
    fields[n++] = round->port;
    for (size_t idx = 0; idx < probes->n; idx++) {
        const struct node_probe *peer = &probes->items[idx];
        if (checks_tries_port(probes->n, at, idx) && peer->is_reached) {
            fields[n++] = peer->spec->name;
            fields[n++] = inventory_fast_address(peer->spec);
        }
    }
    round->fields[at] = fields;
    round->n_fields[at] = n;
}

/* Which nodes reach each other, for those that answered doctor_examine. */
static int doctor_try_ports(struct arena *arena, struct fleet *fleet, int64_t port,
                            struct node_probes *probes, struct err *err)
{
    struct port_round round = {.arena = arena,
                               .probes = probes,
                               .port = str_printf(arena, "%lld", (long long)port),
                               .op = NODE_LISTEN,
                               .fields = arena_array(arena, struct str *, probes->n + 1),
                               .n_fields = arena_array(arena, size_t, probes->n + 1)};
    struct node_facts *heard = arena_array(arena, struct node_facts, probes->n + 1);
    struct node_facts *peers = arena_array(arena, struct node_facts, probes->n + 1);
    if (probes->n < 2) {
        return 0;
    }
    for (size_t idx = 0; idx < probes->n; idx++) {
        round.fields[idx] = arena_array(arena, struct str, 2);
        round.fields[idx][0] = round.port;
        round.fields[idx][1] = inventory_fast_address(probes->items[idx].spec);
        round.n_fields[idx] = 2;
    }
    if (run_round(&round, fleet, heard, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < probes->n; idx++) {
        struct node_probe *probe = &probes->items[idx];
        if (probe->is_reached && !facts_value(&heard[idx], "listen").ptr) {
            probe->listen_error = facts_find(&heard[idx], "listen")
                                      ? facts_why(&heard[idx], "listen")
                                      : facts_why(&heard[idx], "failed");
        }
        name_peers(&round, probes, idx);
    }
    round.op = NODE_CONNECT;
    if (run_round(&round, fleet, peers, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < probes->n; idx++) {
        probes->items[idx].peers = peers[idx];
    }
    return 0;
}

/* ---- what the cases that were asked for need of the nodes, disk included ---- */

/* The room that all of it needs on a node, each thing counted once. */
struct room {
    int64_t bytes;
    struct str *names; /* counted already; room for two of each case */
    size_t n;
    struct strbuf unknown; /* whose size is not stated */
};

static bool is_new(struct room *room, struct str name)
{
    if (str_is_in(name, room->names, room->n)) {
        return false;
    }
    room->names[room->n++] = name;
    return true;
}

static void add_bytes(struct room *room, const char *kind, struct str name, int64_t bytes)
{
    if (bytes < 0) {
        strbuf_printf(&room->unknown, "%s%s %.*s", room->unknown.len ? ", " : "", kind,
                      STR_ARG(name));
    } else {
        room->bytes += bytes;
    }
}

/* Its archives, and its tree. */
static int add_dataset(struct arena *arena, const char *root, struct str id, struct room *room,
                       struct err *err)
{
    struct dataset_here here;
    bool is_whole = true;
    size_t n = 0;
    if (!id.ptr || !is_new(room, id)) {
        return 0;
    }
    if (dataset_load(arena, &(struct dataset_which){root, NULL, str_z(arena, id), false}, &here,
                     err) < 0) {
        return -1;
    }
    if (here.dataset.is_synthetic) {
        return 0;
    }
    const struct dataset_file *files = dataset_files_of(&here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        int64_t tree = dataset_unpacked_bytes(&files[idx]);
        room->bytes += files[idx].size_bytes > 0 ? files[idx].size_bytes : 0;
        room->bytes += tree > 0 ? tree : 0;
        is_whole = is_whole && files[idx].size_bytes >= 0 && tree >= 0;
    }
    if (n == 0 || !is_whole) {
        add_bytes(room, "dataset", id, -1);
    }
    return 0;
}

/* The image that a plan takes, by the driver that the inventory states, and the CUDA that it brings. */
static int add_image(struct arena *arena, const struct doctor_opts *opts,
                     const struct report_case *c, struct wants *wants, struct room *room,
                     struct err *err)
{
    struct image_spec spec;
    struct str name = c->stack->image;
    struct str cuda = STR_EMPTY;
    if (!name.ptr) {
        return 0;
    }
    if (image_spec_for_driver(arena, opts->root, str_z(arena, name),
                              inventory_driver(opts->inventory), &spec, err) < 0) {
        return -1;
    }
    if (is_new(room, str_of(spec.name))) {
        add_bytes(room, "image", str_of(spec.name), spec.bytes);
    }
    struct want want = {
        .kind = WANT_CUDA, .text = spec.cuda, .image = str_of(spec.name), .of = c->id};
    bool is_stated = case_condition(c, "cuda", &cuda) && cuda.ptr;
    return is_stated || !spec.cuda.ptr || c->gpus == 0 ? 0 : wants_add(wants, want, err);
}

/* The smoke profile runs cases of the bundled workload, on the CPU, on synthetic data. */
static int add_case(struct arena *arena, const struct doctor_opts *opts,
                    const struct report_case *c, struct wants *wants, struct room *room,
                    struct err *err)
{
    if (opts->profile == PROFILE_SMOKE) {
        struct want nodes = {.kind = WANT_NODES, .number = c->nodes, .of = c->id};
        return wants_add(wants, nodes, err);
    }
    return wants_of_case(arena, opts->inventory, wants, c, err) < 0 ||
                   add_dataset(arena, opts->root, c->stack->dataset, room, err) < 0 ||
                   add_image(arena, opts, c, wants, room, err) < 0
               ? -1
               : 0;
}

/* Fills wants, and result's cases. ERR_USAGE where a glob selects nothing. */
static int doctor_wants(struct arena *arena, const struct doctor_opts *opts, struct wants *wants,
                        struct doctor_result *result, struct err *err)
{
    struct room *room = arena_new(arena, struct room);
    struct str *globs = arena_array(arena, struct str, opts->n_globs + 1);
    for (size_t idx = 0; idx < opts->n_globs; idx++) {
        globs[idx] = str_of(opts->globs[idx]);
    }
    result->cases = arena_array(arena, struct str, opts->report->n_cases + 1);
    room->names = arena_array(arena, struct str, 2 * opts->report->n_cases + 1);
    strbuf_init(&room->unknown, 1u << 16);
    for (size_t idx = 0; idx < opts->report->n_cases; idx++) {
        const struct report_case *c = &opts->report->cases[idx];
        if (!plan_selects(globs, opts->n_globs, c->id)) {
            continue;
        }
        if (add_case(arena, opts, c, wants, room, err) < 0) {
            strbuf_release(&room->unknown);
            return -1;
        }
        result->cases[result->n_cases++] = c->id;
    }
    struct str missing = str_dup(arena, strbuf_str(&room->unknown));
    strbuf_release(&room->unknown);
    struct str idle = plan_idle_glob(globs, opts->n_globs, result->cases, result->n_cases);
    if (result->n_cases == 0 || idle.ptr) {
        return err_set(err, ERR_USAGE, "%.*s: no case matches%s%.*s", STR_ARG(opts->report->id),
                       idle.ptr ? " " : "", STR_ARG(idle));
    }
    if (room->bytes == 0 && missing.len == 0) {
        return 0;
    }
    struct want disk = {
        .kind = WANT_DISK, .number = room->bytes, .of = STR_LIT("images and data of the report")};
    if (missing.len) {
        disk.text = str_printf(arena, "room for what states no size: %.*s", STR_ARG(missing));
    }
    return wants_add(wants, disk, err);
}

/* ---- all ---- */

static void add_nodes_check(struct checks *checks, const struct inventory *inventory,
                            const struct wants *wants)
{
    for (size_t idx = 0; idx < wants->n; idx++) {
        const struct want *want = &wants->items[idx];
        if (want->kind == WANT_NODES) {
            bool holds = (int64_t)inventory->n_nodes >= want->number;
            checks_add(
                checks,
                (struct check){
                    .id = "nodes",
                    .verdict = holds ? CHECK_HOLDS : CHECK_FAILS,
                    .expected = str_printf(checks->arena, "%lld nodes", (long long)want->number),
                    .found = str_printf(checks->arena, "%zu in the inventory", inventory->n_nodes),
                    .of = want->of});
        }
    }
}

static int examine_all(struct arena *arena, const struct doctor_opts *opts,
                       struct node_probes *ret_probes, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(fleet) struct fleet fleet = {0};
    struct fleet_opts fleet_opts = {
        .work_folder = opts->work_folder, .clock = opts->clock, .outage_ns = OUTAGE_NS};
    loop_init(&loop, opts->clock);
    if (fleet_open(&fleet, &loop, opts->inventory, &fleet_opts, err) < 0) {
        return -1;
    }
    return doctor_examine(arena, &fleet, opts->clock, "", ret_probes, err) < 0
               ? -1
               : doctor_try_ports(arena, &fleet, opts->port, ret_probes, err);
}

int doctor_run(struct arena *arena, const struct doctor_opts *opts,
               struct doctor_result *ret_result, struct err *err)
{
    struct doctor_result result = {.checks = {.arena = arena}};
    struct wants *wants = arena_new(arena, struct wants);
    if (opts->report && doctor_wants(arena, opts, wants, &result, err) < 0) {
        return -1;
    }
    if (examine_all(arena, opts, &result.probes, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < result.probes.n; idx++) {
        const struct node_probe *probe = &result.probes.items[idx];
        checks_of_probe(&result.checks, opts->inventory, probe);
        checks_of_wants(&result.checks, opts->inventory, probe, wants);
        if (!probe->is_reached && result.cause == ERR_NONE) {
            result.cause = probe->cause;
        }
    }
    add_nodes_check(&result.checks, opts->inventory, wants);
    checks_of_network(&result.checks, &result.probes);
    checks_of_differences(&result.checks, &result.probes, &result.differences);
    *ret_result = result;
    return 0;
}

int doctor_exit_status(const struct doctor_result *result, bool allow_unknown)
{
    if (result->cause == ERR_INTEGRITY || result->cause == ERR_AUTH) {
        return err_exit_status(result->cause);
    }
    for (size_t idx = 0; idx < result->checks.n; idx++) {
        const struct check *check = &result->checks.items[idx];
        if (check->level == CHECK_REQUIRED &&
            (check->verdict == CHECK_FAILS ||
             (check->verdict == CHECK_UNKNOWN && !allow_unknown))) {
            return err_exit_status(ERR_NODE);
        }
    }
    return 0;
}
