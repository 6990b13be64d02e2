/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and formats, and which cells they are for. */
#include "base/base.h"

#include "codec/json_table.h"
#include "view/explain_out.h"

static void add_users(const struct explain_users *users, struct strbuf *out)
{
    strbuf_printf(out, "  used by %zu cell%s\n", users->n, users->n == 1 ? "" : "s");
    for (size_t idx = 0; idx < users->n; idx++) {
        strbuf_printf(out, "    %.*s %.*s\n", STR_ARG(users->items[idx].report->id),
                      STR_ARG(users->items[idx].cell->id));
    }
}

static const struct json_field USER_ROWS[] = {
    ROW_VIA("report", struct explain_user, report, id, 0),
    ROW_VIA("cell", struct explain_user, cell, id, 0),
};
static const struct json_field USERS_ROWS[] = {
    ROW_LIST("cells", struct explain_users, items, n, USER_ROWS, 0)};

/* ---- rules ---- */

static void add_window(const struct window *w, struct strbuf *out)
{
    bool is_whole = !w->has_steps && !w->skips_warmup && !w->skip && !w->drop_last && !w->last;
    if (w->has_steps) {
        strbuf_printf(out, "steps %" PRId64 " to %" PRId64 "; ", w->step_from, w->step_to);
    }
    if (w->skips_warmup) {
        strbuf_add_z(out, "without the warm-up that the log states; ");
    }
    if (w->skip) {
        strbuf_printf(out, "without the first %" PRId64 "; ", w->skip);
    }
    if (w->drop_last) {
        strbuf_printf(out, "without the last %" PRId64 "; ", w->drop_last);
    }
    if (w->last) {
        strbuf_printf(out, "the last %" PRId64 " alone; ", w->last);
    }
    strbuf_add_z(out, is_whole ? "every sample" : "of each rank that prints");
}

void explain_rule_text(const struct rule *rule, const struct explain_users *users,
                       struct strbuf *out)
{
    strbuf_printf(out, "%.*s (rule)\n  ", STR_ARG(rule->id));
    rule_describe(rule, out);
    strbuf_printf(out, "\n  series      %.*s\n  run         %s%s\n  window      ",
                  STR_ARG(rule->series), RUN_CHOICE_NAMES[rule->run],
                  rule->match_gpus ? ", the samples of the row's number of GPUs" : "");
    add_window(&rule->window, out);
    strbuf_printf(out, "\n  statistic   %s", STATISTIC_NAMES[rule->statistic]);
    if (rule->trim_count || rule->trim_share > 0) {
        strbuf_printf(out, ", %" PRId64 " or %g %% dropped at each end, whichever is more",
                      rule->trim_count, 100 * rule->trim_share);
    }
    strbuf_printf(out, "\n  scale       %s%s%.*s\n  rounding    %s\n  repeats     %s\n",
                  SCALE_NAMES[rule->scale], rule->fact.len ? " " : "", STR_ARG(rule->fact),
                  ROUNDING_NAMES[rule->rounding], REPEATS_NAMES[rule->repeats]);
    if (rule->success.fact.ptr) {
        strbuf_printf(out, "  success     %.*s is %.*s\n", STR_ARG(rule->success.fact),
                      STR_ARG(rule->success.value));
    }
    strbuf_printf(out, "  origin      %.*s: %.*s\n", STR_ARG(rule->origin), STR_ARG(rule->source));
    add_users(users, out);
}

static void put_window(const struct window *w, struct json_out *out)
{
    jw_object(out, "window");
    if (w->has_steps) {
        jw_i64(out, "step_from", w->step_from);
        jw_i64(out, "step_to", w->step_to);
    } else {
        jw_null(out, "step_from");
        jw_null(out, "step_to");
    }
    jw_bool(out, "skips_warmup", w->skips_warmup);
    jw_i64(out, "skip", w->skip);
    jw_i64(out, "drop_last", w->drop_last);
    jw_i64(out, "last", w->last);
    jw_end_object(out);
}

void explain_put_rule(const struct rule *rule, const struct explain_users *users,
                      struct json_out *out)
{
    CLEANUP(strbuf) struct strbuf words = STRBUF(4096);
    rule_describe(rule, &words);
    jw_object(out, NULL);
    jw_z(out, "kind", "rule");
    jw_str(out, "rule", rule->id);
    jw_str(out, "words", strbuf_str(&words));
    jw_str(out, "series", rule->series);
    jw_z(out, "run", RUN_CHOICE_NAMES[rule->run]);
    jw_bool(out, "match_gpus", rule->match_gpus);
    put_window(&rule->window, out);
    jw_z(out, "statistic", STATISTIC_NAMES[rule->statistic]);
    jw_i64(out, "trim_count", rule->trim_count);
    jw_f64(out, "trim_share", rule->trim_share);
    jw_z(out, "scale", SCALE_NAMES[rule->scale]);
    jw_str(out, "fact", rule->fact);
    jw_z(out, "rounding", ROUNDING_NAMES[rule->rounding]);
    jw_z(out, "repeats", REPEATS_NAMES[rule->repeats]);
    jw_str(out, "origin", rule->origin);
    jw_str(out, "source", rule->source);
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
    struct parts series, facts, absent;
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

/* A member that is text; empty where it is null or absent. */
static int text_of(const struct json *at, struct arena *arena, const char *key, struct str *ret,
                   struct err *err)
{
    struct json member;
    *ret = STR_EMPTY;
    return json_find(at, key, &member) && json_is_str(&member) ? json_str(&member, arena, ret, err)
                                                               : 0;
}

static int part_of(const struct json *at, struct arena *arena, struct part *ret, struct err *err)
{
    const struct {
        const char *key;
        struct str *ret;
    } texts[] = {{"name", &ret->name},       {"unit", &ret->unit},
                 {"scope", &ret->scope},     {"quantity", &ret->quantity},
                 {"literal", &ret->literal}, {"pattern", &ret->pattern},
                 {"says", &ret->says},       {"why", &ret->why}};
    for (size_t idx = 0; idx < ARRAY_LEN(texts); idx++) {
        if (text_of(at, arena, texts[idx].key, texts[idx].ret, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What says why it is not in the logs is absent. */
static int parts_of(const struct explain_format *of, struct arena *arena, const char *key,
                    struct parts *there, struct parts *absent, struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (!json_find(of->root, key, &list)) {
        return 0;
    }
    if (json_expect_array(&list, FORMAT_FACTS_MAX, &n, err) < 0) {
        return -1;
    }
    there->items = arena_array(arena, struct part, n + 1);
    absent->items = arena_array(arena, struct part, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct part part;
        if (part_of(&item, arena, &part, err) < 0) {
            return -1;
        }
        struct parts *into = part.why.len ? absent : there;
        into->items[into->n++] = part;
    }
    return 0;
}

static int read_format(struct arena *arena, const struct explain_format *of,
                       struct format_says *ret, struct err *err)
{
    const struct rule *rules;
    struct parts none = {0};
    *ret = (struct format_says){.path = of->path,
                                .id = format_id(of->format),
                                .title = format_title(of->format),
                                .framework = format_framework(of->format),
                                .n_rules = format_rules(of->format, &rules)};
    ret->rules = arena_array(arena, struct str, ret->n_rules + 1);
    for (size_t idx = 0; idx < ret->n_rules; idx++) {
        ret->rules[idx] = rules[idx].id;
    }
    return parts_of(of, arena, "series", &ret->series, &none, err) < 0 ||
                   parts_of(of, arena, "facts", &ret->facts, &ret->absent, err) < 0
               ? -1
               : text_of(of->root, arena, "source", &ret->source, err);
}

static bool is_first_report(const struct explain_users *users, size_t idx)
{
    return idx == 0 || users->items[idx].report != users->items[idx - 1].report;
}

int explain_format_text(struct arena *arena, const struct explain_format *of, struct strbuf *out,
                        struct err *err)
{
    struct format_says says;
    const struct rule *rules;
    format_rules(of->format, &rules);
    if (read_format(arena, of, &says, err) < 0) {
        return -1;
    }
    strbuf_printf(out, "%.*s (format)\n  %.*s; framework %.*s\n  %s\n  source: %.*s\n",
                  STR_ARG(says.id), STR_ARG(says.title), STR_ARG(says.framework), of->path,
                  STR_ARG(says.source));
    for (size_t idx = 0; idx < says.series.n; idx++) {
        const struct part *s = &says.series.items[idx];
        strbuf_printf(out, "  series %.*s: %.*s of the %.*s%s%.*s\n    %.*s\n", STR_ARG(s->name),
                      STR_ARG(s->quantity), STR_ARG(s->scope), s->unit.len ? ", in " : "",
                      STR_ARG(s->unit), STR_ARG(s->pattern));
    }
    for (size_t idx = 0; idx < says.facts.n; idx++) {
        const struct part *f = &says.facts.items[idx];
        strbuf_printf(out, "  fact %.*s%s%.*s\n    %.*s\n", STR_ARG(f->name),
                      f->says.len ? ", which is then " : "", STR_ARG(f->says), STR_ARG(f->pattern));
    }
    for (size_t idx = 0; idx < says.absent.n; idx++) {
        strbuf_printf(out, "  absent %.*s: %.*s\n", STR_ARG(says.absent.items[idx].name),
                      STR_ARG(says.absent.items[idx].why));
    }
    for (size_t idx = 0; idx < says.n_rules; idx++) {
        strbuf_printf(out, "  rule %.*s: ", STR_ARG(rules[idx].id));
        rule_describe(&rules[idx], out);
        strbuf_add_char(out, '\n');
    }
    for (size_t idx = 0, n = 0; idx < of->users.n; idx++) {
        n = is_first_report(&of->users, idx) ? 1 : n + 1;
        if (idx + 1 == of->users.n || is_first_report(&of->users, idx + 1)) {
            strbuf_printf(out, "  report %.*s: %zu cell%s\n",
                          STR_ARG(of->users.items[idx].report->id), n, n == 1 ? "" : "s");
        }
    }
    if (of->users.n == 0) {
        strbuf_add_z(out, "  no report has a log of it\n");
    }
    return 0;
}

int explain_format_json(struct arena *arena, const struct explain_format *of, struct json_out *out,
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
