/* SPDX-License-Identifier: Apache-2.0 */
/* What other commands print, in plain language: words and numbers, and how a cell, a rule or a format comes to its number. */
#include "base/base.h"

#include "base/nearest.h"
#include "cmd/cmd.h"
#include "cmd/explain_names.h"
#include "judge/finding.h"
#include "load/load.h"
#include "run/events.h"

#define OUTPUT_MAX     (1u << 30)
#define SCHEMA_VERSION 1

struct meaning {
    const char *name;
    const char *kind;
    const char *text;
};

static const struct meaning WORDS[] = {
    {"0", "exit status", "Everything that was asked for was done, and holds."},
    {"1", "exit status",
     "A cell does not hold: audit found one that differs, lint found an error, or a run did not "
     "reproduce a number. Nothing else failed."},
    {"2", "exit status", "The command line is wrong, or names something that does not exist."},
    {"3", "exit status",
     "A manifest (report, format, inventory) is wrong; the message says where."},
    {"4", "exit status", "Something could not be fetched."},
    {"5", "exit status",
     "Integrity: a digest, signature, archive or host key is not what it must be, or a login was "
     "refused."},
    {"6", "exit status", "A node: it is unreachable, or lacks what the case needs (GPUs, nodes)."},
    {"7", "exit status", "A container: the engine or the image is missing, or did not start."},
    {"8", "exit status", "The workload itself failed, or cannot do what the case asks."},
    {"9", "exit status",
     "A log gives no number: no metric, truncated, not a number, or two runs in one. Or no cell of "
     "an audited report could be checked, for want of logs."},
    {"10", "exit status", "Disk: full, over quota, read-only, or not writable."},
    {"11", "exit status",
     "A proposal, not known to be right: measure --suggest, or what a proposed format reads."},
    {"70", "exit status", "A fault of reperf itself. Please report it."},
    {"124", "exit status", "A deadline passed; what ran was stopped."},
    {"128+n", "exit status",
     "Stopped by signal n (130: ^C, 143: TERM). A run continues with reperf resume."},
    {"exact", "audit verdict",
     "The value from the log, rounded or cut by the rule at the printed digits, is the printed "
     "one."},
    {"match", "audit verdict", "The value from the log is within 0.05 % of the printed one."},
    {"differs", "audit verdict", "The value from the log is neither exact nor within 0.05 %."},
    {"no_log", "audit verdict", "There is no log from which the cell could be computed."},
    {"reproduced", "run verdict",
     "The run's value is within 5 % of the published one: day-to-day variation of one machine is "
     "up "
     "to 4 %."},
    {"faster", "run verdict", "The run's value is more than 5 % over the published one."},
    {"slower", "run verdict", "The run's value is more than 5 % under the published one."},
    {"not_comparable", "run verdict",
     "There is a value, but it says nothing about the published one: the smoke profile, no "
     "published "
     "number, or another unit. The conditions that differ are listed."},
    {"failed", "run verdict",
     "At least one repeat does not count: it did not end with status 0, or its log gives no "
     "number."},
    {"not_run", "run verdict",
     "The case cannot be run here; its cause says why and gives the exit status. Leave it out with "
     "--case."},
    {"ok", "parse verdict", "The log is whole and gives numbers."},
    {"proposed", "parse verdict",
     "As ok, but read by a format that was made from a log's own lines and that nothing confirms. "
     "Name it with --format, or delete \"proposed\" in its file, once you have looked at its "
     "pattern."},
    {"no_metric", "parse verdict", "Nothing in the log is the metric that the format looks for."},
    {"incomplete", "parse verdict", "The log stops before the step or the end that it announces."},
    {"nan", "parse verdict", "A value of the metric is not a number, or infinite."},
    {"ambiguous", "parse verdict", "The log holds more than one run and the rule takes one."},
    {"truncated", "parse verdict", "The last line is truncated."},
};

static void add_word(struct explainer *e, const struct meaning *word)
{
    if (!e->args->want_json) {
        strbuf_printf(e->text, "%s (%s)\n    %s\n", word->name, word->kind, word->text);
        return;
    }
    jw_object(e->json, NULL);
    jw_z(e->json, "kind", word->kind);
    jw_z(e->json, "name", word->name);
    jw_z(e->json, "text", word->text);
    jw_end_object(e->json);
}

static void add_finding(struct explainer *e, const struct finding_rule *rule)
{
    if (!e->args->want_json) {
        strbuf_printf(e->text, "%s (finding, %s)\n    %s\n    %s\n", rule->id,
                      finding_level_name(rule->level), rule->title, rule->help);
        return;
    }
    jw_object(e->json, NULL);
    jw_z(e->json, "kind", "finding");
    jw_z(e->json, "name", rule->id);
    jw_z(e->json, "level", finding_level_name(rule->level));
    jw_z(e->json, "title", rule->title);
    jw_z(e->json, "text", rule->help);
    jw_end_object(e->json);
}

static void add_event(struct explainer *e, const struct event_row *row)
{
    if (!e->args->want_json) {
        strbuf_printf(e->text, "%s (event, %s)\n    %s\n", row->name, row->level, row->help);
        return;
    }
    jw_object(e->json, NULL);
    jw_z(e->json, "kind", "event");
    jw_z(e->json, "name", row->name);
    jw_z(e->json, "level", row->level);
    jw_z(e->json, "text", row->help);
    jw_end_object(e->json);
}

/* 129 to 192 are 128+n. */
static bool is_signal_status(const char *code)
{
    struct err ignored = {0};
    int64_t status = 0;
    return str_to_i64(str_of(code), 129, 192, &status, &ignored) == 0;
}

/* code NULL: all. */
static size_t add_matching(struct explainer *e, const char *code)
{
    size_t n = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        bool is_hit = !code || strcmp(WORDS[idx].name, code) == 0 ||
                      (strcmp(WORDS[idx].name, "128+n") == 0 && is_signal_status(code));
        if (is_hit) {
            add_word(e, &WORDS[idx]);
            n++;
        }
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (!code || strcmp(FINDING_RULES[idx].id, code) == 0) {
            add_finding(e, &FINDING_RULES[idx]);
            n++;
        }
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        if (!code || strcmp(EVENTS[idx].name, code) == 0) {
            add_event(e, &EVENTS[idx]);
            n++;
        }
    }
    return n;
}

static void offer_words(struct nearest *nearest)
{
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        nearest_offer(nearest, WORDS[idx].name);
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        nearest_offer(nearest, FINDING_RULES[idx].id);
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        nearest_offer(nearest, EVENTS[idx].name);
    }
}

static const struct opt OPTS[] = {
    {.name = "logs",
     .kind = OPT_TEXT,
     .value = "DIR",
     .help = "of cells: read the raw logs, as audit does",
     .offset = offsetof(struct explain_args, logs_folder)},
    {.name = "json",
     .kind = OPT_FLAG,
     .help = "one JSON document",
     .offset = offsetof(struct explain_args, want_json)},
    {.name = "verbose",
     .letter = 'v',
     .kind = OPT_FLAG,
     .help = "of cells: every sample, and every fact that their logs state",
     .offset = offsetof(struct explain_args, is_verbose)},
    OPT_END,
};

/* Words first: they are short, and need no manifest. *ret_n says how many operands it took. */
static int explain(struct explainer *e, const char *const *items, size_t n, size_t *ret_n,
                   struct err *err)
{
    struct nearest nearest = nearest_to(items[0]);
    char text[NEAREST_TEXT_MAX];
    *ret_n = 1;
    if (add_matching(e, items[0]) > 0) {
        return 0;
    }
    if (explain_names(e, items, n, &nearest, ret_n, err) < 0) {
        return -1;
    }
    if (*ret_n > 0) {
        return 0;
    }
    offer_words(&nearest);
    return err_set(err, ERR_USAGE,
                   "%.100s: no exit status, verdict, finding, event, cell, rule or format of that "
                   "name%s; reperf explain alone lists the words, reperf list rules, formats and "
                   "cases the rest",
                   items[0], nearest_text(&nearest, text));
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(strbuf) struct strbuf buf = {0};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct explain_args args = {0};
    struct json_out json;
    CLEANUP(explainer)
    struct explainer e = {.arena = &arena, .ctx = ctx, .args = &args, .text = &buf, .json = &json};
    size_t taken = 0;
    strbuf_init(&buf, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    jw_begin(&json, &buf, false);
    if (args.want_json) {
        jw_object(&json, NULL);
        jw_i64(&json, "schema_version", SCHEMA_VERSION);
        jw_array(&json, "items");
    }
    for (size_t idx = 0; idx < operands.n; idx += taken) {
        if (explain(&e, operands.items + idx, operands.n - idx, &taken, err) < 0) {
            return -1;
        }
    }
    if (operands.n == 0) {
        (void)add_matching(&e, NULL);
    }
    if (args.want_json) {
        jw_end_array(&json);
        jw_end_object(&json);
        strbuf_add_char(&buf, '\n');
    }
    return cmd_print(strbuf_str(&buf), err);
}

const struct cmd CMD_EXPLAIN = {
    .name = "explain",
    .operands = "[CELL | REPORT CELL | RULE | FORMAT | CODE]...",
    .summary = "how a cell follows from its log; what a rule, a format or a term means",
    .opts = OPTS,
    .run = run,
};
