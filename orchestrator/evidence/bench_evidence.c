/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/bench_evidence.h"

#include "base/fs.h"
#include "codec/ustar.h"
#include "evidence/contents.h"
#include "evidence/evidence.h"
#include "evidence/rundir.h"
#include "judge/bench_doc.h"

#define DOC_NAME   "manifest/nodes-bench.json"
#define RESULT_MAX (64u << 20)

bool bench_evidence_is(struct arena *arena, const char *folder)
{
    return fs_exists(fs_join(arena, folder, DOC_NAME));
}

static void put_cell(struct json_out *out, struct str name, const char *verdict)
{
    jw_object(out, NULL);
    jw_str(out, "cell", name);
    jw_z(out, "verdict", verdict);
    jw_end_object(out);
}

/* In the words that evidence_facts reads. */
static void put_result(struct strbuf *text, const struct bench_doc *doc)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct json_out out;
    jw_begin(&out, text, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_z(&out, "run_id",
         arena_printf(&arena, "%.*s of %.*s", STR_ARG(doc->time), STR_ARG(doc->inventory)));
    jw_z(&out, "report", "nodes bench");
    jw_array(&out, "cells");
    for (size_t idx = 0; idx < doc->n_nodes; idx++) {
        const struct bench_doc_node *node = &doc->nodes[idx];
        bool is_measured = node->n_measured && !(node->against.ptr && !node->is_outlier);
        put_cell(&out, node->name,
                 node->is_outlier ? "failed"
                 : !is_measured   ? "not_run"
                 : node->is_alone ? "not_comparable"
                                  : "reproduced");
    }
    for (size_t idx = 0; idx < doc->n_slow_links; idx++) {
        put_cell(&out, doc->slow_links[idx].name, "failed");
    }
    jw_end_array(&out);
    jw_end_object(&out);
}

/* result.json of the document at that path. */
static int derive(struct arena *arena, const char *path, struct str *ret_doc,
                  struct str *ret_result, size_t *ret_n_figures, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct bench_doc doc;
    strbuf_init(&text, RESULT_MAX);
    if (fs_read(arena, path, BENCH_DOC_BYTES_MAX, ret_doc, err) < 0 ||
        bench_doc_read(arena, *ret_doc, path, &doc, err) < 0) {
        return -1;
    }
    put_result(&text, &doc);
    if (text.is_full) {
        return err_set(err, ERR_INTEGRITY, "%s: more nodes and links than a result may name", path);
    }
    *ret_result = str_dup(arena, strbuf_str(&text));
    *ret_n_figures = doc.n_figures;
    return 0;
}

int bench_evidence_put(struct arena *arena, const char *doc_path, const char *folder,
                       struct err *err)
{
    struct str doc, result;
    size_t n_figures;
    return derive(arena, doc_path, &doc, &result, &n_figures, err) < 0 ||
                   rundir_write(arena, folder, DOC_NAME, doc, err) < 0 ||
                   rundir_write(arena, folder, EVIDENCE_RESULT, result, err) < 0
               ? -1
               : 0;
}

static int check_files(struct arena *arena, const char *folder, struct err *err)
{
    struct contents_found found;
    if (contents_regular(arena, folder, &found, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < found.files.n; idx++) {
        struct str name = str_of(found.files.items[idx]);
        if (!str_eq_z(name, DOC_NAME) && !str_eq_z(name, EVIDENCE_RESULT) &&
            !str_eq_z(name, EVIDENCE_CRATE) && ustar_closing_rank(name) == 0) {
            return err_set(err, ERR_INTEGRITY, "%s: no file of nodes bench",
                           found.files.items[idx]);
        }
    }
    return 0;
}

static int check(struct arena *arena, const char *folder, size_t *ret_n_figures, struct err *err)
{
    struct str doc, result, kept;
    return check_files(arena, folder, err) < 0 ||
                   derive(arena, fs_join(arena, folder, DOC_NAME), &doc, &result, ret_n_figures,
                          err) < 0 ||
                   fs_read(arena, fs_join(arena, folder, EVIDENCE_RESULT), RESULT_MAX, &kept, err) <
                       0
               ? -1
               : evidence_same_text(kept, result, EVIDENCE_RESULT, err);
}

int bench_evidence_check(struct arena *arena, const char *folder, size_t *ret_n_figures,
                         struct err *err)
{
    if (check(arena, folder, ret_n_figures, err) < 0) {
        err->code =
            err->code == ERR_NOT_FOUND || err->code == ERR_MANIFEST ? ERR_INTEGRITY : err->code;
        return -1;
    }
    return 0;
}
