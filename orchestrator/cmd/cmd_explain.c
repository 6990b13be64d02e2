/* SPDX-License-Identifier: Apache-2.0 */
/* What other commands print, in plain language: words and numbers, and how a cell, a rule or a format comes to its number. */
#include "base/base.h"

#include "base/embed.h"
#include "base/nearest.h"
#include "cmd/cmd.h"
#include "cmd/explain_names.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "judge/finding.h"
#include "run/events.h"
#include "view/audit_out.h"

/* Every word that a status, a verdict or a column of a document can be, then the findings, then the events. tests/integration/test_explain.sh
   holds the first against the schemas. */

#define EACH_MAX 1024

EMBED(explain_txt, "orchestrator/cmd/explain.txt"); /* lines of kind, name and text, between tabs */

static struct explained *explain_words(struct arena *arena, size_t *ret_n)
{
    struct explained *words = arena_array(arena, struct explained, EACH_MAX);
    struct str rest = EMBEDDED(explain_txt), line, kind, name;
    size_t n = 0;
    while (str_next(&rest, '\n', &line) && line.len) {
        ASSERT(n < EACH_MAX && str_next(&line, '\t', &kind) && str_next(&line, '\t', &name));
        words[n++] = (struct explained){str_z(arena, kind), str_z(arena, name), NULL, NULL,
                                        str_z(arena, line)};
    }
    ASSERT(n + N_AUDIT_WORDS + N_FINDING_RULES + EV_COUNT <= EACH_MAX);
    for (size_t idx = 0; idx < N_AUDIT_WORDS; idx++) {
        const struct audit_word *word = &AUDIT_WORDS[idx];
        if (!Z_NAMED(words, n, name, str_of(word->word))) {
            words[n++] =
                (struct explained){"word of an audit", word->word, NULL, NULL, word->meaning};
        }
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        words[n++] = (struct explained){"finding", rule->id, FINDING_LEVEL_NAMES[rule->level],
                                        rule->title, str_z(arena, finding_help(rule))};
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        const struct event_row *row = &EVENTS[idx];
        words[n++] = (struct explained){"event", row->name, row->level, NULL, row->help};
    }
    *ret_n = n;
    return words;
}

static const struct json_field TERM_ROWS[] = {
    ROW("kind", struct explained, kind, 0),
    ROW("name", struct explained, name, 0),
    ROW("level", struct explained, level, JSON_OMIT),
    ROW("title", struct explained, title, JSON_OMIT),
    ROW("text", struct explained, text, 0),
};

static void add_term(struct explainer *e, const struct explained *term)
{
    if (e->args->want_json) {
        jw_object(e->json, NULL);
        json_encode(e->json, TERM_ROWS, ARRAY_LEN(TERM_ROWS), term);
        jw_end_object(e->json);
        return;
    }
    strbuf_printf(e->text, "%s (%s%s%s)\n", term->name, term->kind, term->level ? ", " : "",
                  term->level ? term->level : "");
    if (term->title) {
        strbuf_printf(e->text, "    %s\n", term->title);
    }
    strbuf_printf(e->text, "    %s\n", term->text);
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
    for (size_t idx = 0; idx < e->n_words; idx++) {
        const char *name = e->words[idx].name;
        if (!code || strcmp(name, code) == 0 ||
            (strcmp(name, "128+n") == 0 && is_signal_status(code))) {
            add_term(e, &e->words[idx]);
            n++;
        }
    }
    return n;
}

static const struct opt OPTS[] = {
    OPT(struct explain_args, logs_folder, "logs", "for cells: read the raw logs, as audit does",
        .value = "DIR"),
    OPT(struct explain_args, want_json, "json", "one JSON document"),
    OPT(struct explain_args, is_verbose, "verbose",
        "for cells: show every sample, and every fact in their logs", .letter = 'v'),
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
    for (size_t idx = 0; idx < e->n_words; idx++) {
        nearest_offer(&nearest, e->words[idx].name);
    }
    return err_set(err, ERR_USAGE,
                   "%.100s: no exit status, verdict, finding, event, cell, rule or format of that "
                   "name%s; reperf explain alone lists the words, reperf list rules, formats and "
                   "cases the rest",
                   items[0], nearest_text(&nearest, text));
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct explain_args *args = call->args;
    struct json_out json;
    CLEANUP(explainer)
    struct explainer e = {
        .arena = call->arena, .ctx = ctx, .args = args, .text = call->out, .json = &json};
    size_t taken = 0;
    e.words = explain_words(call->arena, &e.n_words);
    if (args->want_json) {
        jw_document(&json, call->out);
        jw_array(&json, "items");
    }
    for (size_t idx = 0; idx < call->operands.n; idx += taken) {
        if (explain(&e, call->operands.items + idx, call->operands.n - idx, &taken, err) < 0) {
            return -1;
        }
    }
    if (call->operands.n == 0) {
        (void)add_matching(&e, NULL);
    }
    if (args->want_json) {
        jw_end_array(&json);
        jw_end_object(&json);
        strbuf_add_char(call->out, '\n');
    }
    return 0;
}

const struct cmd CMD_EXPLAIN =
    CMD("explain", "[CELL | GLOB | REPORT CELL | RULE | FORMAT | CODE]...",
        "how a cell follows from its log; what a rule, a format or a term means", OPTS, run,
        CMD_ARGS(struct explain_args));
