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
    for (size_t idx = 0; idx < N_MEANINGS; idx++) {
        bool is_hit = !code || strcmp(MEANINGS[idx].name, code) == 0 ||
                      (strcmp(MEANINGS[idx].name, "128+n") == 0 && is_signal_status(code));
        if (is_hit) {
            add_word(e, &MEANINGS[idx]);
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
    for (size_t idx = 0; idx < N_MEANINGS; idx++) {
        nearest_offer(nearest, MEANINGS[idx].name);
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        nearest_offer(nearest, FINDING_RULES[idx].id);
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        nearest_offer(nearest, EVENTS[idx].name);
    }
}

static const struct opt OPTS[] = {
    OPT(struct explain_args, logs_folder, "logs", "of cells: read the raw logs, as audit does",
        .value = "DIR"),
    OPT(struct explain_args, want_json, "json", "one JSON document"),
    OPT(struct explain_args, is_verbose, "verbose",
        "of cells: every sample, and every fact that their logs state", .letter = 'v'),
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
