/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and formats, and which cells they are for: their text is made from the document. */
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

/* ---- rules ---- */

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

/* ---- formats ---- */

/* What a manifest says of one series or fact. */
struct part {
    struct str name, unit, scope, quantity, literal, pattern, says, why;
};
struct parts {
    struct part *items;
    size_t n;
};
struct format_says {
    const char *path;
    struct str id, title, framework, source;
    struct parts series, stated; /* as its manifest has them */
    struct parts facts,
        absent; /* of those that it states: what says why it is not in the logs is absent */
    struct str *rules;
    size_t n_rules;
};

#define PART struct part
#define SAYS struct format_says
static const struct json_field SERIES_ROWS[] = {
    ROW("name", PART, name, 0),       ROW("unit", PART, unit, 0),
    ROW("scope", PART, scope, 0),     ROW("quantity", PART, quantity, 0),
    ROW("literal", PART, literal, 0), ROW("pattern", PART, pattern, 0),
};
static const struct json_field STATED_ROWS[] = {
    ROW("name", PART, name, 0),
    ROW("says", PART, says, 0),
    ROW("literal", PART, literal, 0),
    ROW("pattern", PART, pattern, 0),
};
static const struct json_field ABSENT_ROWS[] = {
    ROW("name", PART, name, 0),
    ROW("why", PART, why, 0),
};
static const struct json_field SAYS_ROWS[] = {
    ROW_SAYS("kind", "format"),
    ROW("format", SAYS, id, 0),
    ROW("title", SAYS, title, 0),
    ROW("framework", SAYS, framework, 0),
    ROW("path", SAYS, path, 0),
    ROW("source", SAYS, source, 0),
    ROW_LIST("series", SAYS, series.items, series.n, SERIES_ROWS, 0),
    ROW_LIST("facts", SAYS, facts.items, facts.n, STATED_ROWS, 0),
    ROW_LIST("absent", SAYS, absent.items, absent.n, ABSENT_ROWS, 0),
    ROW_STRS("rules", SAYS, rules, n_rules, 0),
};

static const struct json_field PART_ROWS[] = {
    ROW("name", PART, name, JSON_NULLABLE),
    ROW("unit", PART, unit, JSON_NULLABLE),
    ROW("scope", PART, scope, JSON_NULLABLE),
    ROW("quantity", PART, quantity, JSON_NULLABLE),
    ROW("literal", PART, literal, JSON_NULLABLE),
    ROW("pattern", PART, pattern, JSON_NULLABLE),
    ROW("says", PART, says, JSON_NULLABLE),
    ROW("why", PART, why, JSON_NULLABLE),
    ROW_OTHERS,
};
static const struct json_field MANIFEST_ROWS[] = {
    ROW_LIST("series", SAYS, series.items, series.n, PART_ROWS, 0),
    ROW_LIST("facts", SAYS, stated.items, stated.n, PART_ROWS, 0, .max = FORMAT_FACTS_MAX),
    ROW("source", SAYS, source, JSON_NULLABLE),
    ROW_OTHERS,
};

static int read_format(struct arena *arena, const struct explain_format *of,
                       struct format_says *ret, struct err *err)
{
    const struct rule *rules = of->format->rules;
    *ret = (struct format_says){.path = of->path,
                                .id = of->format->id,
                                .title = of->format->title,
                                .framework = of->format->framework,
                                .n_rules = of->format->n_rules};
    ret->rules = arena_array(arena, struct str, ret->n_rules + 1);
    for (size_t idx = 0; idx < ret->n_rules; idx++) {
        ret->rules[idx] = rules[idx].id;
    }
    if (json_decode(of->root, arena, MANIFEST_ROWS, ARRAY_LEN(MANIFEST_ROWS), ret, err) < 0) {
        return -1;
    }
    ret->facts.items = arena_array(arena, struct part, ret->stated.n + 1);
    ret->absent.items = arena_array(arena, struct part, ret->stated.n + 1);
    for (size_t idx = 0; idx < ret->stated.n; idx++) {
        struct parts *into = ret->stated.items[idx].why.len ? &ret->absent : &ret->facts;
        into->items[into->n++] = ret->stated.items[idx];
    }
    return 0;
}

int explain_put_format(struct arena *arena, const struct explain_format *of, struct json_out *out,
                       struct err *err)
{
    struct format_says says;
    if (read_format(arena, of, &says, err) < 0) {
        return -1;
    }
    jw_object(out, NULL);
    json_encode(out, SAYS_ROWS, ARRAY_LEN(SAYS_ROWS), &says);
    json_encode(out, USERS_ROWS, ARRAY_LEN(USERS_ROWS), &of->users);
    jw_end_object(out);
    return 0;
}
