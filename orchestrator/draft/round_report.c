/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/round_report.h"

#include "base/map.h"
#include "codec/json.h"

#define SLUG_BYTES 56 /* leaves room for "-NNN" */
#define LINE_BYTES 512

struct round_writer {
    struct arena *arena;
    const struct round_report *report;
    struct json_out *out;
    struct map environments; /* of a description's path: id */
    struct map stacks;       /* of a framework as printed: id */
    struct map used;         /* every id that is given */
};

/* Small letters and digits joined by dashes and dots; "" becomes "unnamed". */
static struct str slug_of(struct arena *arena, struct str text)
{
    char *slug = arena_array(arena, char, SLUG_BYTES + 1);
    size_t len = 0;
    bool wants_joint = false;
    char joint = '-';
    for (size_t idx = 0; idx < text.len && len + 1 < SLUG_BYTES; idx++) {
        char c = text.ptr[idx];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            if (wants_joint && len > 0) {
                slug[len++] = joint;
            }
            slug[len++] = c;
            wants_joint = false;
            joint = '.';
        } else {
            joint = c == '.' && !wants_joint ? '.' : '-';
            wants_joint = true;
        }
    }
    return len ? (struct str){slug, len} : STR_LIT("unnamed");
}

/* The slug, or with -2, -3, ... where it is taken. */
static struct str unique(struct round_writer *w, const char *kind, struct str slug)
{
    struct str id = slug;
    for (int n = 2;; n++) {
        char *key = arena_printf(w->arena, "%s %.*s", kind, STR_ARG(id));
        if (map_add(&w->used, str_of(key), key)) {
            return id;
        }
        id = str_of(arena_printf(w->arena, "%.*s-%d", STR_ARG(slug), n));
    }
}

static void put_source(struct round_writer *w, const char *key, struct str path)
{
    const struct source_ref *source = &w->report->source;
    jw_object(w->out, key);
    jw_str(w->out, "repository", source->repository);
    jw_str(w->out, "commit", source->commit);
    jw_str(w->out, "path", path);
    jw_str(w->out, "date", source->date);
    jw_end_object(w->out);
}

/* Left out where nothing is said; one line. */
static void put_condition(struct round_writer *w, const char *name, struct str value)
{
    char *line = arena_strndup(w->arena, value.ptr ? value.ptr : "",
                               value.len < LINE_BYTES ? value.len : LINE_BYTES);
    for (char *c = line; *c; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    if (*line) {
        jw_z(w->out, name, line);
    }
}

/* ---- environments: one a system ---- */

static struct str system_key(struct round_writer *w, const struct round_row *row,
                             const struct round_match *match)
{
    const struct machine *s = match->submission ? match->submission->machine : NULL;
    return s && s->path.ptr
               ? s->path
               : str_of(arena_printf(w->arena, "%.*s/%.*s/%" PRId64, STR_ARG(row->submitter),
                                     STR_ARG(row->machine), row->accelerators));
}

/* On undescribed nodes only the number of accelerators is known. */
static int64_t nodes_of(const struct round_row *row, const struct round_match *match)
{
    const struct machine *s = match->submission ? match->submission->machine : NULL;
    return s && s->nodes > 0 && s->nodes * s->per_node == row->accelerators ? s->nodes : 1;
}

static void put_environment(struct round_writer *w, const struct round_row *row,
                            const struct round_match *match)
{
    static const struct machine NONE = {.nodes = -1, .per_node = -1};
    const struct machine *s = match->submission ? match->submission->machine : &NONE;
    struct str key = system_key(w, row, match);
    struct str *id = arena_new(w->arena, struct str);
    if (map_get(&w->environments, key)) {
        return;
    }
    *id =
        unique(w, "environment",
               slug_of(w->arena, str_of(arena_printf(w->arena, "%.*s-%.*s", STR_ARG(row->submitter),
                                                     STR_ARG(row->machine)))));
    (void)map_add(&w->environments, key, id);
    jw_object(w->out, NULL);
    jw_str(w->out, "id", *id);
    jw_str(w->out, "title",
           str_of(arena_printf(w->arena, "%.*s: %.*s", STR_ARG(row->submitter),
                               STR_ARG(row->machine))));
    jw_i64(w->out, "nodes", nodes_of(row, match));
    jw_i64(w->out, "gpus_per_node", row->accelerators / nodes_of(row, match));
    jw_object(w->out, "conditions");
    put_condition(w, "cpu", s->cpu);
    put_condition(w, "cuda", s->cuda);
    put_condition(w, "cudnn", s->cudnn);
    put_condition(w, "driver", s->driver);
    put_condition(w, "gpu", row->accelerator);
    put_condition(w, "interconnect", s->interconnect);
    put_condition(w, "nccl", s->nccl);
    put_condition(w, "os", s->os);
    jw_end_object(w->out);
    put_source(w, "source", s->path.ptr ? s->path : w->report->page);
    jw_end_object(w->out);
}

/* ---- stacks: one a framework ---- */

static void put_stack(struct round_writer *w, const struct round_row *row)
{
    struct str *id = arena_new(w->arena, struct str);
    if (map_get(&w->stacks, row->framework)) {
        return;
    }
    *id = unique(w, "stack", slug_of(w->arena, row->framework));
    (void)map_add(&w->stacks, row->framework, id);
    jw_object(w->out, NULL);
    jw_str(w->out, "id", *id);
    jw_str(w->out, "framework", *id);
    jw_str(w->out, "label", row->framework.len ? row->framework : STR_LIT("not stated"));
    jw_null(w->out, "image");
    jw_null(w->out, "image_tag");
    jw_null(w->out, "image_digest");
    jw_null(w->out, "dataset");
    jw_array(w->out, "sources");
    jw_end_array(w->out);
    jw_object(w->out, "conditions");
    put_condition(w, "framework_version", row->framework);
    jw_end_object(w->out);
    jw_object(w->out, "env");
    jw_end_object(w->out);
    jw_array(w->out, "commands");
    jw_end_array(w->out);
    jw_end_object(w->out);
}

/* ---- cases: one a row ---- */

static void put_factor(struct round_writer *w, const struct factor *factor)
{
    if (factor->value > 0) {
        jw_object(w->out, "factor");
        jw_f64(w->out, "value", factor->value);
        jw_str(w->out, "path", factor->path);
        jw_str(w->out, "sha256", factor->sha256);
        jw_end_object(w->out);
    }
}

/* A folder with missing logs cannot be judged. */
static const struct submission *judged(const struct round_match *match)
{
    return match->submission && match->submission->n_absent == 0 ? match->submission : NULL;
}

static void put_logs(struct round_writer *w, const struct submission *s)
{
    jw_array(w->out, "logs");
    for (size_t idx = 0; s && idx < s->n_logs; idx++) {
        jw_str(w->out, NULL, s->logs[idx].path);
    }
    jw_end_array(w->out);
}

static void put_cell(struct round_writer *w, const struct round_row *row, struct str case_id)
{
    jw_array(w->out, "cells");
    jw_object(w->out, NULL);
    jw_str(w->out, "cell", str_of(arena_printf(w->arena, "%.*s#time_to_train", STR_ARG(case_id))));
    jw_z(w->out, "metric", "time_to_train");
    jw_str(w->out, "printed", row->minutes);
    jw_z(w->out, "unit", "min");
    jw_str(w->out, "table",
           str_of(arena_printf(w->arena, "%.*s, %.*s", STR_ARG(row->division),
                               STR_ARG(row->availability))));
    jw_null(w->out, "derive");
    jw_z(w->out, "rule", ROUND_RULE);
    jw_null(w->out, "format");
    jw_array(w->out, "also_printed");
    jw_end_array(w->out);
    jw_end_object(w->out);
    jw_end_array(w->out);
}

static void put_case(struct round_writer *w, const struct round_row *row,
                     const struct round_match *match)
{
    const struct submission *s = judged(match);
    const struct str *environment = map_get(&w->environments, system_key(w, row, match));
    const struct str *stack = map_get(&w->stacks, row->framework);
    int64_t nodes = nodes_of(row, match);
    struct str variant =
        slug_of(w->arena, str_of(arena_printf(w->arena, "%.*s-%.*s", STR_ARG(row->submitter),
                                              STR_ARG(row->machine))));
    struct str head = str_of(
        arena_printf(w->arena, "%.*s/%.*s/unstated/n%" PRId64 "g%" PRId64 "/bs0",
                     STR_ARG(row->benchmark), STR_ARG(*stack), nodes, row->accelerators / nodes));
    struct str id = unique(
        w, "case", str_of(arena_printf(w->arena, "%.*s/%.*s", STR_ARG(head), STR_ARG(variant))));
    jw_object(w->out, NULL);
    jw_str(w->out, "id", id);
    jw_str(w->out, "stack", *stack);
    jw_str(w->out, "environment", *environment);
    jw_str(w->out, "group", row->benchmark);
    jw_z(w->out, "format", ROUND_FORMAT);
    jw_z(w->out, "rule", ROUND_RULE);
    jw_null(w->out, "baseline");
    put_logs(w, s);
    jw_object(w->out, "conditions");
    jw_end_object(w->out);
    put_cell(w, row, id);
    if (match->submission) {
        put_factor(w, &match->submission->factor);
    }
    jw_str(w->out, "matched", match->how);
    jw_end_object(w->out);
}

static void put_head(struct round_writer *w)
{
    const struct round_report *r = w->report;
    jw_i64(w->out, "schema_version", 1);
    jw_str(w->out, "id", r->id);
    jw_str(w->out, "title",
           str_of(arena_printf(w->arena,
                               "MLPerf Training %.*s: %zu results of the table with sha256 %.*s",
                               STR_ARG(r->round), r->n, STR_ARG(r->table_sha256))));
    put_source(w, "source", r->page);
    jw_object(w->out, "logs");
    jw_str(w->out, "repository", r->source.repository);
    jw_str(w->out, "commit", r->source.commit);
    jw_str(w->out, "path", r->source.path);
    jw_str(w->out, "date", r->source.date);
    jw_bool(w->out, "bundled", true);
    if (r->series_sha256.ptr) {
        jw_str(w->out, "series_sha256", r->series_sha256);
    }
    jw_end_object(w->out);
}

static void writer_cleanup(struct round_writer *w)
{
    map_release(&w->environments);
    map_release(&w->stacks);
    map_release(&w->used);
}

void round_report_write(struct arena *arena, const struct round_report *report, struct strbuf *text)
{
    struct json_out out;
    CLEANUP(writer) struct round_writer w = {.arena = arena, .report = report, .out = &out};
    jw_begin(&out, text, false);
    jw_object(&out, NULL);
    put_head(&w);
    jw_array(&out, "environments");
    for (size_t idx = 0; idx < report->n; idx++) {
        put_environment(&w, &report->rows[idx], &report->matches[idx]);
    }
    jw_end_array(&out);
    jw_array(&out, "stacks");
    for (size_t idx = 0; idx < report->n; idx++) {
        put_stack(&w, &report->rows[idx]);
    }
    jw_end_array(&out);
    jw_array(&out, "cases");
    for (size_t idx = 0; idx < report->n; idx++) {
        put_case(&w, &report->rows[idx], &report->matches[idx]);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(text, '\n');
}
