/* SPDX-License-Identifier: Apache-2.0 */
/* Compares printed launches with their cases: how many nodes, processes and GPUs, and which ones. */
#include "base/base.h"

#include "base/strbuf.h"
#include "lint/lint_parts.h"

#define LIST_BYTES    400
#define GPUS_NAME_MAX 4096

/* ---- sizes ---- */

enum { /* which counts of a case a number may be */
       FITS_NODES = 1,
       FITS_NODE = 2, /* the GPUs of a node */
       FITS_JOB = 4,
       FITS_ONE = 8,
       FITS_MORE = 16 /* than a node has, too */
};

static bool fits_case(const struct report_case *c, unsigned fits, int64_t n)
{
    return ((fits & FITS_NODES) && n == c->nodes) ||
           ((fits & FITS_NODE) && n == c->gpus_per_node) || ((fits & FITS_JOB) && n == c->gpus) ||
           ((fits & FITS_ONE) && n == 1) || ((fits & FITS_MORE) && n >= c->gpus_per_node);
}

static void lint_size(const struct lint_command *c, unsigned fits, struct str spelled, int64_t n)
{
    const struct report_case *like = NULL;
    for (const struct report_case *of = NULL; (of = command_next_case(c, of)); like = of) {
        if (fits_case(of, fits, n)) {
            return;
        }
    }
    /* A script that is printed as code gets its sizes from its caller. */
    if (!like || str_eq_z(c->command->purpose, "code")) {
        return;
    }
    if (fits == FITS_NODES) {
        lint_add(c->lint, "nodes-differ", c->at,
                 "%.*s is %" PRId64 " for cases of %" PRId64 " nodes", STR_ARG(spelled), n,
                 like->nodes);
    } else {
        lint_add(c->lint, "nodes-differ", c->at,
                 "%.*s is %" PRId64 " for cases of %" PRId64 " x %" PRId64 " GPUs",
                 STR_ARG(spelled), n, like->nodes, like->gpus_per_node);
    }
}

/* NAME=N in this command, a plain number. */
static bool assigned_number(const struct shell_script *script, const char *name, int64_t *ret)
{
    struct str key;
    struct str value;
    for (size_t idx = 0; idx < script->n_sets; idx++) {
        if (shell_assignment(script->sets[idx].text, &key, &value) && str_eq_z(key, name) &&
            to_count(value, INT32_MAX, ret)) {
            return true;
        }
    }
    return false;
}

static void lint_nodes(const struct lint_command *c, const struct option_found *o)
{
    int64_t n = 0;
    int64_t stated = 0;
    if (!to_count(o->value, INT32_MAX, &n)) {
        return;
    }
    if (assigned_number(c->script, "NUM_NODES", &stated) && stated != n) {
        lint_add(c->lint, "nodes-differ", c->at, "%.*s is %" PRId64 " and NUM_NODES is %" PRId64,
                 STR_ARG(o->spelled), n, stated);
    } else {
        lint_size(c, FITS_NODES, o->spelled, n);
    }
}

/* "a:8,b:8": two nodes, and 16 processes. */
static void lint_hosts(const struct lint_command *c, const struct option_found *o)
{
    struct str rest = o->value;
    struct str part;
    int64_t n = 0;
    int64_t slots = 0;
    bool has_slots = true;
    while (str_next(&rest, ',', &part)) {
        int64_t colon = str_find(part, STR_LIT(":"));
        int64_t here = 0;
        n += part.len > 0;
        has_slots = has_slots && colon > 0 &&
                    to_count(str_sub(part, (size_t)colon + 1, SIZE_MAX), GPUS_NAME_MAX, &here);
        slots += here;
    }
    if (n == 1 && is_unknown(o->value)) {
        return;
    }
    lint_size(c, FITS_NODES, o->spelled, n);
    if (has_slots) {
        lint_size(c, FITS_JOB, o->spelled, slots);
    }
}

/* ---- devices ---- */

/* The length of a list of GPUs, "0,1,2"; 0: not a list of numbers. *ret_is_plain: it counts from 0 upwards. */
static int64_t read_devices(struct lint *lint, struct str list, bool *ret_is_plain)
{
    static const char BARE[] =
        "^(?:[\"'\\[]|device=|localhost:|127\\.0\\.0\\.1:|cuda:|gpu:)*(.*?)[\"'\\]]*\\z";
    struct str part, g[2] = {STR_EMPTY, STR_EMPTY};
    int64_t n = 0;
    (void)patterns_find(&lint->patterns, BARE, list, g, 2);
    *ret_is_plain = true;
    while (str_next(&g[1], ',', &part)) {
        int64_t device = 0;
        part = str_trim(part);
        if (str_starts(part, STR_LIT("cuda:"))) {
            part = str_sub(part, 5, SIZE_MAX);
        }
        if (!to_count(part, GPUS_NAME_MAX, &device)) {
            return 0;
        }
        *ret_is_plain = *ret_is_plain && device == n;
        n++;
    }
    return n;
}

static void lint_devices(const struct lint_command *c, struct str spelled, struct str list,
                         unsigned fits)
{
    bool is_plain;
    int64_t n = read_devices(c->lint, list, &is_plain);
    if (n && !is_plain) {
        lint_add(c->lint, "device-hard-coded", c->at, "%.*s=%.*s", STR_ARG(spelled), STR_ARG(list));
    }
    if (n && fits && c->command->gpus) {
        lint_size(c, fits, spelled, n);
    }
}

/* --gpus 8 is a count, --gpus 0,1 a list; one number may be either. */
static void lint_gpus(const struct lint_command *c, const struct option_found *o)
{
    int64_t n = 0;
    if (!to_count(o->value, GPUS_NAME_MAX, &n)) {
        lint_devices(c, o->spelled, o->value, FITS_NODE);
    } else if (n > 0) {
        lint_size(c, FITS_NODE | FITS_JOB, o->spelled, n);
    }
}

/* cuda:3 anywhere, in a word or in a program's text. */
static void lint_cuda_words(const struct lint_command *c, const struct shell_run *run)
{
    static const char NUMBER[] = "^(?:(?!cuda:).)*cuda:([1-9]\\d*)(?![\\d.])";
    struct str g[2];
    for (size_t idx = 1; idx < run->n_own; idx++) {
        if (patterns_find(&c->lint->patterns, NUMBER, run->words[idx].text, g, 2)) {
            lint_add(c->lint, "device-hard-coded", c->at, "cuda:%.*s", STR_ARG(g[1]));
        }
    }
}

static bool is_device_variable(struct str name)
{
    static const char NAMES[] =
        "CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES "
        "NV_GPU GPU_ID GPU_IDS CUDA_DEVICE FLAGS_selected_gpus";
    return is_word_of(name, NAMES);
}

/* ---- what differs from node to node ---- */

static bool is_node_variable(struct str name)
{
    static const char NAMES[] =
        "NODE_RANK RANK MACHINE_RANK GROUP_RANK PADDLE_TRAINER_ID NODEID NODE_ID POD_IP "
        "CURRENT_NODE NODE_IP HOST_IP LOCAL_IP CURRENT_NODE_IP SLURM_NODEID";
    return is_word_of(name, NAMES);
}

static bool is_of_head(struct str name)
{
    return holds_text(name, "master head server coordinator rdzv main scheduler");
}

static size_t count_family(const struct shell_script *script, struct str stem)
{
    struct str name;
    struct str value;
    size_t n = 0;
    for (size_t idx = 0; idx < script->n_sets; idx++) {
        n += shell_assignment(script->sets[idx].text, &name, &value) && name.len == stem.len + 1 &&
             str_starts(name, stem) && is_digit(name.ptr[stem.len]);
    }
    return n;
}

/* $NODE1 if NODE1, NODE2, ... are set; raw: a word, or the part after its = */
static bool is_first_of_family(const struct lint_command *c, struct str raw)
{
    static const char FIRST[] =
        "^(?:[^=]*=)?+(?=.*\\$)[\"${}]*([A-Za-z_][A-Za-z0-9_]*)1[\"${}]*\\z";
    struct str g[2];
    return patterns_find(&c->lint->patterns, FIRST, raw, g, 2) && count_family(c->script, g[1]) > 1;
}

static void lint_node_value(const struct lint_command *c, struct str name, struct str raw,
                            struct str value)
{
    int64_t rank = 0;
    if (c->command->nodes < 2 || !str_eq_z(c->command->per, "node") || is_of_head(name)) {
        return;
    }
    if (is_first_of_family(c, raw)) {
        int64_t equals = str_find(raw, STR_LIT("="));
        lint_add(c->lint, "node-hard-coded", c->at, "%.*s=%.*s on every node", STR_ARG(name),
                 STR_ARG(str_sub(raw, (size_t)(equals + 1), SIZE_MAX)));
    } else if (!is_unknown(raw) && (to_count(value, GPUS_NAME_MAX, &rank) ||
                                    lint_has(c->lint, "^(?:\\d*\\.){3}\\d*\\z", value))) {
        lint_add(c->lint, "node-hard-coded", c->at, "%.*s=%.*s on every node", STR_ARG(name),
                 STR_ARG(value));
    }
}

/* ---- what is set ---- */

static void lint_set(const struct lint_command *c, const struct shell_word *set)
{
    static const struct {
        const char *name;
        unsigned fits;
    } SIZES[] = {{"NUM_GPUS", FITS_NODE | FITS_JOB},
                 {"NGPUS", FITS_NODE | FITS_JOB},
                 {"NUM_GPU", FITS_NODE | FITS_JOB},
                 {"GPU_NUM", FITS_NODE | FITS_JOB},
                 {"GPUS_PER_NODE", FITS_NODE},
                 {"NPROC_PER_NODE", FITS_NODE},
                 {"WORLD_SIZE", FITS_JOB | FITS_NODES},
                 {"NNODES", FITS_NODES},
                 {"NUM_NODES", FITS_NODES}};
    struct str name;
    struct str value;
    int64_t n = 0;
    if (!shell_assignment(set->text, &name, &value)) {
        return;
    }
    if (is_device_variable(name)) {
        lint_devices(c, name, value, FITS_MORE);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(SIZES); idx++) {
        if (str_eq_z(name, SIZES[idx].name) && to_count(value, INT32_MAX, &n)) {
            lint_size(c, SIZES[idx].fits, name, n);
        }
    }
    if (is_node_variable(name) || is_first_of_family(c, set->raw)) {
        lint_node_value(c, name, set->raw, value);
    }
}

static void lint_option(const struct lint_command *c, const struct shell_run *run,
                        const struct option_found *o, bool has_launcher)
{
    bool is_per_node = o->means == MEANS_RANKS_PER_NODE;
    int64_t n = 0;
    if (o->means == MEANS_RANKS || is_per_node) {
        unsigned fits = is_per_node ? FITS_NODE | (has_launcher ? FITS_ONE : 0)
                                    : FITS_JOB | (has_launcher ? FITS_NODES : 0);
        if (to_count(o->value, INT32_MAX, &n)) {
            lint_size(c, fits, o->spelled, n);
        }
    } else if (o->means == MEANS_NODES) {
        lint_nodes(c, o);
    } else if (o->means == MEANS_HOSTS) {
        lint_hosts(c, o);
    } else if (o->means == MEANS_DEVICES || o->means == MEANS_DEVICE) {
        lint_devices(c, o->spelled, o->value, o->means == MEANS_DEVICES ? FITS_NODE : 0);
    } else if (o->means == MEANS_GPUS) {
        lint_gpus(c, o);
    }
    /* What else there is, lint_settings.c handles. */
    for (size_t idx = 1;
         (o->means == MEANS_NODE_RANK || o->means == MEANS_NODE_ADDRESS) && idx < run->n; idx++) {
        struct str word = run->words[idx].text;
        if (word.ptr + word.len == o->value.ptr + o->value.len) {
            lint_node_value(c, o->spelled, run->words[idx].raw, o->value);
        }
    }
}

/* docker --gpus, and NAME=VALUE after -e. */
static void lint_container_devices(const struct lint_command *c, const struct shell_run *run)
{
    struct shell_word value;
    int64_t n = 0;
    for (size_t at = 1; shell_run_option(run, "--gpus", &at, &value);) {
        if (to_count(value.text, GPUS_NAME_MAX, &n)) {
            lint_size(c, FITS_MORE, STR_LIT("--gpus"), n);
        } else {
            lint_devices(c, STR_LIT("--gpus"), value.text, FITS_MORE);
        }
    }
    for (size_t at = 1; at < run->n_own; at++) {
        struct shell_word word = run->words[at];
        word.text =
            str_starts(word.text, STR_LIT("--env=")) ? str_sub(word.text, 6, SIZE_MAX) : word.text;
        lint_set(c, &word);
    }
}

void lint_launches(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    bool is_last = run + 1 == c->script->runs + c->script->n;
    bool has_launcher = !is_last && run[1].is_inner && option_is_launcher(run + 1);
    struct option_found o;
    int64_t n = 0;
    for (size_t word = 0; option_next(c->lint->arena, run, &word, &o);) {
        lint_option(c, run, &o, has_launcher);
    }
    if (shell_engine_verb(run) < run->n) {
        lint_container_devices(c, run);
    }
    if (shell_is_any(run, "dist_train.sh dist_test.sh") && run->n > 2 &&
        to_count(run->words[run->n - 1].text, GPUS_NAME_MAX, &n)) {
        lint_size(c, FITS_NODE | FITS_JOB, shell_program(run), n);
    }
    lint_cuda_words(c, run);
    for (size_t idx = 0; idx < run->n_sets; idx++) {
        lint_set(c, &run->sets[idx]);
    }
    if (is_last && str_eq_z(c->command->purpose, "run") && c->command->nodes > 1 &&
        str_eq_z(c->command->per, "node")) {
        lint_add(c->lint, "command-typed-on-nodes", c->at,
                 "the command for %" PRId64 " nodes is typed on each of them", c->command->nodes);
    }
}

/* ---- cases without a launch ---- */

static bool is_printed_for(const struct stack *s, const struct report_case *c)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct command *command = &s->commands[idx];
        if (command->printed.ptr && str_eq_z(command->purpose, "run") &&
            command_is_for(command, c)) {
            return true;
        }
    }
    return false;
}

void lint_not_printed(struct lint *lint, const struct stack *s)
{
    CLEANUP(strbuf) struct strbuf list = STRBUF(LIST_BYTES);
    size_t n = 0;
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        if (!is_printed_for(s, c)) {
            strbuf_printf(&list, "%s%s", n ? ", " : "", c->id.ptr);
            n++;
        }
    }
    if (n) {
        lint_add(lint, "command-not-printed", in_stack(s, ".commands"),
                 "no launch is printed for %zu cases: %s%s", n, list.ptr,
                 list.is_full ? ", ..." : "");
    }
}
