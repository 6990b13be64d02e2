/* SPDX-License-Identifier: Apache-2.0 */
/* A draft as the text of a report's manifest, and what audit says about it. */
#include "base/base.h"

#include "draft/draft.h"

#include "base/map.h"

struct writer {
    struct arena *arena;
    const struct draft *draft;
    const struct draft_source *source;
    struct json_out json;
};

static bool has_row(const struct draft_number *n)
{
    return n->state != DRAFT_UNPLACED && !n->is_repeated;
}

static void put_source(struct writer *w, const char *key, struct str path, bool is_logs)
{
    jw_object(&w->json, key);
    jw_str(&w->json, "repository", w->source->repository);
    jw_str(&w->json, "commit", w->source->commit);
    jw_str(&w->json, "path", path);
    jw_str(&w->json, "date", w->source->date);
    if (is_logs && w->source->series_sha256.len) {
        jw_str(&w->json, "series_sha256", w->source->series_sha256);
    }
    jw_end_object(&w->json);
}

static void put_environments(struct writer *w)
{
    CLEANUP(map) struct map seen = {0};
    jw_array(&w->json, "environments");
    for (size_t idx = 0; idx < w->draft->n; idx++) {
        const struct draft_number *n = &w->draft->items[idx];
        if (!has_row(n) || !map_add(&seen, n->grid, w)) {
            continue;
        }
        jw_object(&w->json, NULL);
        jw_str(&w->json, "id", n->grid);
        jw_str(&w->json, "title", n->grid);
        jw_i64(&w->json, "nodes", n->attrs.nodes);
        jw_i64(&w->json, "gpus_per_node", n->attrs.nodes ? n->attrs.gpus / n->attrs.nodes : 0);
        jw_object(&w->json, "conditions");
        jw_end_object(&w->json);
        put_source(w, "source", n->document, false);
        jw_end_object(&w->json);
    }
    jw_end_array(&w->json);
}

static void put_stacks(struct writer *w)
{
    static const char *const NULLS[] = {"image", "image_tag", "image_digest", "dataset"};
    static const char *const LISTS[] = {"sources", "commands"};
    static const char *const OBJECTS[] = {"conditions", "env"};
    CLEANUP(map) struct map seen = {0};
    jw_array(&w->json, "stacks");
    for (size_t idx = 0; idx < w->draft->n; idx++) {
        const struct draft_number *n = &w->draft->items[idx];
        if (!has_row(n) || !map_add(&seen, n->attrs.framework, w)) {
            continue;
        }
        jw_object(&w->json, NULL);
        jw_str(&w->json, "id", n->attrs.framework);
        jw_str(&w->json, "framework", n->attrs.framework);
        jw_str(&w->json, "label", n->attrs.framework);
        for (size_t k = 0; k < ARRAY_LEN(NULLS); k++) {
            jw_null(&w->json, NULLS[k]);
        }
        for (size_t k = 0; k < ARRAY_LEN(LISTS); k++) {
            jw_array(&w->json, LISTS[k]);
            jw_end_array(&w->json);
            jw_object(&w->json, OBJECTS[k]);
            jw_end_object(&w->json);
        }
        jw_end_object(&w->json);
    }
    jw_end_array(&w->json);
}

static void put_case(struct writer *w, const struct draft_number *n)
{
    const char *table = arena_printf(w->arena, "line-%" PRId64, n->line);
    struct json_out *out = &w->json;
    jw_object(out, NULL);
    jw_str(out, "id", n->id);
    jw_str(out, "stack", n->attrs.framework);
    jw_str(out, "environment", n->grid);
    jw_z(out, "group", arena_printf(w->arena, "%s-%.*s", table, STR_ARG(n->attrs.framework)));
    jw_str(out, "format", n->log ? n->log->id : STR_EMPTY);
    jw_str(out, "rule", n->log ? n->rule->id : STR_EMPTY);
    jw_null(out, "baseline");
    jw_array(out, "logs");
    if (n->log) {
        jw_str(out, NULL, n->log->path);
    }
    jw_end_array(out);
    jw_object(out, "conditions");
    if (n->attrs.machine.ptr) {
        jw_str(out, "machine", n->attrs.machine);
    }
    jw_end_object(out);
    jw_array(out, "cells");
    jw_object(out, NULL);
    jw_z(out, "cell", arena_printf(w->arena, "%.*s#%.*s", STR_ARG(n->id), STR_ARG(n->metric)));
    jw_str(out, "metric", n->metric);
    jw_str(out, "printed", n->printed);
    jw_str(out, "unit", n->unit);
    jw_z(out, "table", table);
    jw_null(out, "derive");
    /* A case's own rule is the one for its throughput. */
    jw_str(out, "rule", n->log && !str_eq_z(n->metric, "throughput") ? n->rule->id : STR_EMPTY);
    jw_null(out, "format");
    jw_array(out, "also_printed");
    jw_end_array(out);
    jw_end_object(out);
    jw_end_array(out);
    jw_end_object(out);
}

void draft_write(struct arena *arena, const struct draft *draft, const struct draft_source *source,
                 struct strbuf *out)
{
    struct writer w = {arena, draft, source, {0}};
    jw_begin(&w.json, out, false);
    jw_object(&w.json, NULL);
    jw_i64(&w.json, "schema_version", 1);
    jw_str(&w.json, "id", source->id);
    jw_z(&w.json, "title", arena_printf(arena, "draft from %.*s", STR_ARG(source->repository)));
    jw_bool(&w.json, "rules_inferred", true);
    put_source(&w, "source", source->document, false);
    put_source(&w, "logs", source->id, true);
    put_environments(&w);
    put_stacks(&w);
    jw_array(&w.json, "cases");
    for (size_t idx = 0; idx < draft->n; idx++) {
        if (has_row(&draft->items[idx])) {
            put_case(&w, &draft->items[idx]);
        }
    }
    jw_end_array(&w.json);
    jw_end_object(&w.json);
    strbuf_add_z(out, "\n");
}

bool draft_has_rows(const struct draft *draft)
{
    for (size_t idx = 0; idx < draft->n; idx++) {
        if (has_row(&draft->items[idx])) {
            return true;
        }
    }
    return false;
}

void draft_take_audit(struct arena *arena, const struct report_audit *audit, struct draft *draft)
{
    size_t at = 0;
    for (size_t idx = 0; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        const struct cell_audit *a;
        if (!has_row(n)) {
            continue;
        }
        ASSERT(at < audit->n_cells);
        a = &audit->cells[at++];
        ASSERT(str_eq(a->of_case->id, n->id));
        n->state = a->verdict == AUDIT_NO_LOG    ? DRAFT_NO_LOG
                   : a->verdict == AUDIT_DIFFERS ? DRAFT_DIFFERS
                                                 : DRAFT_FITS;
        n->is_of_another = a->proof == PROOF_CONTRADICTED;
        n->is_proposed = a->is_proposed;
        n->log_state = a->log_state;
        n->found = a->verdict == AUDIT_NO_LOG ? STR_LIT("nothing") : cell_number_words(arena, a);
    }
}
