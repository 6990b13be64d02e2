/* SPDX-License-Identifier: Apache-2.0 */
/* Compares printed launches with their cases: how many nodes, processes and GPUs, and which ones. A variable that is set counts
   as the option of its name. */
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

static void lint_nodes(const struct lint_command *c, struct str spelled, int64_t n)
{
    struct str text = lint_part(c->lint, "(?<!\\w)NUM_NODES=(\\d+)(?!\\w)", c->command->printed);
    int64_t stated = 0;
    if (to_count(text, INT32_MAX, &stated) && stated != n) {
        lint_add(c->lint, "nodes-differ", c->at, "%.*s is %" PRId64 " and NUM_NODES is %" PRId64,
                 STR_ARG(spelled), n, stated);
    } else {
        lint_size(c, FITS_NODES, spelled, n);
    }
}

/* "a:8,b:8" is two nodes. */
static void lint_hosts(const struct lint_command *c, const struct option_found *o)
{
    struct str rest = o->value, part;
    int64_t n = 0;
    while (str_next(&rest, ',', &part)) {
        n += part.len > 0;
    }
    if (n > 1 || !is_unknown(o->value)) {
        lint_size(c, FITS_NODES, o->spelled, n);
    }
}

/* ---- devices ---- */

/* A list of GPUs, "0,1,2", which may begin anywhere: then they are hard-coded. */
static void lint_devices(const struct lint_command *c, const struct option_found *o, unsigned fits)
{
    static const char BARE[] = "^(?:[\"'\\[]|device=|cuda:|gpu:)*(\\d+(?:,\\d+)*)[\"'\\]]*\\z";
    struct str list = lint_part(c->lint, BARE, o->value), part;
    int64_t n = 0, device;
    bool is_plain = true;
    while (list.ptr && str_next(&list, ',', &part)) {
        is_plain = is_plain && to_count(part, GPUS_NAME_MAX, &device) && device == n;
        n++;
    }
    if (!is_plain) {
        lint_add(c->lint, "device-hard-coded", c->at, "%.*s=%.*s", STR_ARG(o->spelled),
                 STR_ARG(o->value));
    }
    if (n && fits && c->command->gpus) {
        lint_size(c, fits, o->spelled, n);
    }
}

/* ---- what differs from node to node ---- */

/* The name is an option's or a variable's, and `raw` the word as it is written that has its value: a number, an address, or
   $NODE1 beside a NODE2. */
static void lint_node_value(const struct lint_command *c, const struct option_found *o,
                            struct str raw)
{
    static const char FIRST[] = "^(?:[^=]*=)?[\"{}]*\\$[\"{}]*([A-Za-z_]\\w*)1[\"}]*\\z";
    struct lint *lint = c->lint;
    struct str stem = lint_part(lint, FIRST, raw);
    struct str written = lint_part(lint, "^(?:[^=]*=)?(.*)", raw);
    struct str second = str_printf(lint->arena, "%.*s2=", STR_ARG(stem));
    if (c->command->nodes < 2 || !str_eq_z(c->command->per, "node") ||
        lint_has(lint, "(?i)master|head|server|coordinator|rdzv|main|scheduler", o->spelled)) {
        return;
    }
    if (stem.ptr && str_find(c->command->printed, second) >= 0) {
        lint_add(lint, "node-hard-coded", c->at, "%.*s=%.*s on every node", STR_ARG(o->spelled),
                 STR_ARG(written));
    } else if ((o->means == MEANS_NODE_RANK || o->means == MEANS_NODE_ADDRESS) &&
               !is_unknown(raw) && lint_has(lint, "^(?:\\d*\\.){0,3}\\d+\\z", o->value)) {
        lint_add(lint, "node-hard-coded", c->at, "%.*s=%.*s on every node", STR_ARG(o->spelled),
                 STR_ARG(o->value));
    }
}

/* ---- the whole ---- */

static void lint_option(const struct lint_command *c, const struct option_found *o, bool is_set,
                        bool has_launcher)
{
    unsigned more = is_set ? FITS_MORE : 0;
    int64_t n = 0;
    bool is_number = to_count(o->value, GPUS_NAME_MAX, &n);
    if (o->means == MEANS_DEVICES || o->means == MEANS_DEVICE ||
        (o->means == MEANS_GPUS && !is_number)) {
        lint_devices(c, o, o->means == MEANS_DEVICE ? more : FITS_NODE | more);
    } else if (o->means == MEANS_HOSTS) {
        lint_hosts(c, o);
    } else if (is_number && o->means == MEANS_RANKS) {
        lint_size(c, FITS_JOB | (has_launcher || is_set ? FITS_NODES : 0), o->spelled, n);
    } else if (is_number && o->means == MEANS_RANKS_PER_NODE) {
        lint_size(c, FITS_NODE | (has_launcher ? FITS_ONE : 0), o->spelled, n);
    } else if (is_number && o->means == MEANS_NODES) {
        lint_nodes(c, o->spelled, n);
    } else if (n && o->means == MEANS_GPUS) { /* a count, or a list of one */
        lint_size(c, FITS_NODE | FITS_JOB | more, o->spelled, n);
    }
}

/* NAME=VALUE before a program, or after docker's -e. */
static void lint_set(const struct lint_command *c, const struct shell_word *word)
{
    struct option_found o;
    if (option_of_set(word->text, &o)) {
        lint_option(c, &o, true, false);
        lint_node_value(c, &o, word->raw);
    }
}

/* Of docker, or of mmsegmentation's and mmdetection's script. */
static void lint_gpus(const struct lint_command *c)
{
    bool is_engine = shell_engine_verb(c->run) < c->run->n;
    bool is_script = shell_is(c->run, "dist_train.sh dist_test.sh");
    const char *pattern = is_engine ? " --gpus[ =]" WORD " " : " (\\d+) \\z";
    struct option_found o = {MEANS_GPUS, is_engine ? STR_LIT("--gpus") : shell_program(c->run),
                             lint_part(c->lint, pattern, c->line)};
    if ((is_engine || is_script) && o.value.ptr) {
        lint_option(c, &o, is_engine, false);
    }
    for (size_t at = 1; is_engine && at < c->run->n_own; at++) {
        lint_set(c, &c->run->words[at]);
    }
}

void lint_launches(const struct lint_command *c)
{
    static const struct lint_row DEVICE[] = {
        {"device-hard-coded", NULL, "cuda:([1-9]\\d*)(?![\\d.])", "cuda:$1"}};
    const struct shell_run *run = c->run;
    bool is_last = run + 1 == c->script->runs + c->script->n;
    bool has_launcher = !is_last && run[1].is_inner && option_is_launcher(run + 1);
    struct option_found o;
    for (size_t word = 0; option_next(c->lint->arena, run, &word, &o);) {
        lint_option(c, &o, false, has_launcher);
        for (size_t at = 1; at < run->n && at <= word; at++) {
            if (run->words[at].text.ptr + run->words[at].text.len == o.value.ptr + o.value.len) {
                lint_node_value(c, &o, run->words[at].raw);
            }
        }
    }
    lint_by_rows(c, DEVICE, ARRAY_LEN(DEVICE));
    lint_gpus(c);
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
