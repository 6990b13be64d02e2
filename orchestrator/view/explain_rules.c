/* SPDX-License-Identifier: Apache-2.0 */
/* Rules, and which cells they are for: their text is made from the document. */
#include "base/base.h"

#include "codec/json_document.h"
#include "codec/json_table.h"
#include "view/explain_out.h"

static const struct json_field USER_ROWS[] = {
    ROW_VIA("report", struct explain_user, report, id, 0),
    ROW_VIA("cell", struct explain_user, cell, id, 0),
};
static const struct json_field USERS_ROWS[] = {
    ROW_LIST("cells", struct explain_users, items, n, USER_ROWS, 0)};

static void put_step(struct json_out *out, const char *key, const void *of)
{
    const struct window *w = of;
    jw_i64_if(out, key, w->has_steps, strcmp(key, "step_from") == 0 ? w->step_from : w->step_to);
}

static void put_words(struct json_out *out, const char *key, const void *of)
{
    CLEANUP(strbuf) struct strbuf words = STRBUF(4096);
    rule_describe(of, &words);
    jw_str(out, key, strbuf_str(&words));
}

#define RULE struct rule
static const struct json_field WINDOW_ROWS[] = {
    ROW_OUT("step_from", JSON_I64, put_step, 0),         ROW_OUT("step_to", JSON_I64, put_step, 0),
    ROW("skips_warmup", struct window, skips_warmup, 0), ROW("skip", struct window, skip, 0),
    ROW("drop_last", struct window, drop_last, 0),       ROW("last", struct window, last, 0),
};
static const struct json_field RULE_ROWS[] = {
    ROW_SAYS("kind", "rule"),
    ROW("rule", RULE, id, 0),
    ROW_OUT("words", JSON_STR, put_words, 0),
    ROW("series", RULE, series, 0),
    ROW_WORD("run", RULE, run, RUN_CHOICE_NAMES, 0),
    ROW("match_gpus", RULE, match_gpus, 0),
    ROW_OBJECT("window", RULE, window, WINDOW_ROWS, 0),
    ROW_WORD("statistic", RULE, statistic, STATISTIC_NAMES, 0),
    ROW("trim_count", RULE, trim_count, 0),
    ROW("trim_share", RULE, trim_share, 0),
    ROW_WORD("scale", RULE, scale, SCALE_NAMES, 0),
    ROW("fact", RULE, fact, 0),
    ROW_WORD("rounding", RULE, rounding, ROUNDING_NAMES, 0),
    ROW_WORD("repeats", RULE, repeats, REPEATS_NAMES, 0),
    ROW("origin", RULE, origin, 0),
    ROW("source", RULE, source, 0),
};

void explain_put_rule(const struct rule *rule, const struct explain_users *users,
                      struct json_out *out)
{
    jw_object(out, NULL);
    json_encode(out, RULE_ROWS, ARRAY_LEN(RULE_ROWS), rule);
    json_encode(out, USERS_ROWS, ARRAY_LEN(USERS_ROWS), users);
    jw_end_object(out);
}
