/* SPDX-License-Identifier: Apache-2.0 */
/* The words and numbers that other commands print, in plain language. */
#include "base/base.h"

#include "base/nearest.h"
#include "cmd/cmd.h"
#include "judge/finding.h"
#include "run/events.h"

#define OUTPUT_MAX (1u << 20)

struct word {
    const char *name;
    const char *kind;
    const char *text;
};

static const struct word WORDS[] = {
    {"0", "exit status", "All that was asked was done, and holds."},
    {"1", "exit status",
     "A cell does not hold: audit found one that differs, lint found an error, or a run did not "
     "reproduce a number. Nothing else failed."},
    {"2", "exit status", "The command line is wrong, or names something that is not there."},
    {"3", "exit status",
     "A manifest (report, format, inventory) is wrong; the message says where."},
    {"4", "exit status", "Something could not be fetched."},
    {"5", "exit status",
     "Integrity: a digest, signature, archive or host key is not what it must be, or a login was "
     "refused."},
    {"6", "exit status",
     "A node: it cannot be reached, or lacks what the case needs (GPUs, nodes)."},
    {"7", "exit status", "A container: the engine or the image is not there, or did not start."},
    {"8", "exit status", "The workload itself failed, or cannot do what the case asks."},
    {"9", "exit status",
     "A log gives no number: no metric, cut short, not a number, or two runs in one."},
    {"10", "exit status", "Disk: full, over quota, read-only, or not to be written."},
    {"70", "exit status", "A fault of reperf itself. Please report it."},
    {"124", "exit status", "A deadline passed; what ran was stopped."},
    {"128+n", "exit status",
     "Stopped by signal n (130: ^C, 143: TERM). A run can be taken up by reperf resume."},
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
     "There is a value, but it says nothing of the published one: the smoke profile, no published "
     "number, or another unit. The conditions that differ are listed."},
    {"failed", "run verdict",
     "At least one repeat does not count: it did not end with status 0, or its log gives no "
     "number."},
    {"not_run", "run verdict",
     "The case cannot be run here; its cause says why and gives the exit status. Leave it out with "
     "--case."},
    {"ok", "parse verdict", "The log is whole and gives numbers."},
    {"no_metric", "parse verdict", "Nothing in the log is the metric that the format looks for."},
    {"incomplete", "parse verdict", "The log stops before the step or the end that it announces."},
    {"nan", "parse verdict", "A value of the metric is not a number, or infinite."},
    {"ambiguous", "parse verdict", "The log holds more than one run and the rule takes one."},
    {"truncated", "parse verdict", "The last line is cut."},
};

static void add_word(struct strbuf *buf, const struct word *word)
{
    strbuf_printf(buf, "%s (%s)\n    %s\n", word->name, word->kind, word->text);
}

static void add_finding(struct strbuf *buf, const struct finding_rule *rule)
{
    strbuf_printf(buf, "%s (finding, %s)\n    %s\n    %s\n", rule->id,
                  finding_level_name(rule->level), rule->title, rule->help);
}

static void add_event(struct strbuf *buf, const struct event_row *row)
{
    strbuf_printf(buf, "%s (event, %s)\n    %s\n", row->name, row->level, row->help);
}

/* 129 to 192 are 128+n. */
static bool is_signal_status(const char *code)
{
    struct err ignored = {0};
    int64_t status = 0;
    return str_to_i64(str_of(code), 129, 192, &status, &ignored) == 0;
}

/* code NULL: all. */
static size_t add_matching(struct strbuf *buf, const char *code)
{
    size_t n = 0;
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        bool is_hit = !code || strcmp(WORDS[idx].name, code) == 0 ||
                      (strcmp(WORDS[idx].name, "128+n") == 0 && is_signal_status(code));
        if (is_hit) {
            add_word(buf, &WORDS[idx]);
            n++;
        }
    }
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (!code || strcmp(FINDING_RULES[idx].id, code) == 0) {
            add_finding(buf, &FINDING_RULES[idx]);
            n++;
        }
    }
    for (size_t idx = 0; idx < EV_COUNT; idx++) {
        if (!code || strcmp(EVENTS[idx].name, code) == 0) {
            add_event(buf, &EVENTS[idx]);
            n++;
        }
    }
    return n;
}

static void offer_all(struct nearest *nearest)
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

static const struct opt OPTS[] = {OPT_END};

static int run(const struct cmd_ctx *ctx UNUSED, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(strbuf) struct strbuf buf;
    char none = 0;
    strbuf_init(&buf, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &none, &operands, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < operands.n; idx++) {
        if (add_matching(&buf, operands.items[idx]) == 0) {
            struct nearest nearest = nearest_to(operands.items[idx]);
            char text[NEAREST_TEXT_MAX];
            offer_all(&nearest);
            return err_set(err, ERR_USAGE,
                           "%.100s: no exit status, verdict, finding or event of that name%s; "
                           "reperf explain alone lists all",
                           operands.items[idx], nearest_text(&nearest, text));
        }
    }
    if (operands.n == 0) {
        (void)add_matching(&buf, NULL);
    }
    return cmd_print(strbuf_str(&buf), err);
}

const struct cmd CMD_EXPLAIN = {
    .name = "explain",
    .operands = "[CODE...]",
    .summary = "what an exit status, a verdict, a finding or an event means",
    .opts = OPTS,
    .run = run,
};
