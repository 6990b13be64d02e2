/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/nodes.h"

#include "base/fs.h"
#include "base/table.h"
#include "codec/json_document.h"

static void show(void *ctx, uint64_t bytes_done, uint64_t bytes_total)
{
    struct stage_out *out = ctx;
    out->progress.total = bytes_total;
    progress_set(&out->progress, bytes_done < bytes_total ? bytes_done : bytes_total);
}

void stage_out_init(struct stage_out *out, const struct cmd_ctx *ctx, bool must_copy)
{
    *out = (struct stage_out){.ctx = ctx};
    out->opts = (struct stage_opts){
        .clock = ctx->clock, .must_copy = must_copy, .on_progress = show, .progress_ctx = out};
}

int stage_out_run(struct arena *arena, struct stage_out *out, struct fleet *fleet,
                  struct stage_list list, struct stage_report *ret_report, struct err *err)
{
    out->opts.cache_path = fs_join(arena, out->ctx->state, "cache/digests");
    progress_start(&out->progress, out->ctx->clock, "stage", "bytes", 0);
    int result = stage_items(arena, fleet, &out->opts, list, ret_report, err);
    progress_end(&out->progress);
    return result;
}

static void add_node_json(struct json_out *json, const struct fleet_node *node,
                          const struct stage_node *staged, size_t n_items)
{
    bool has_failed = node->err.code != ERR_NONE;
    jw_object(json, NULL);
    jw_str(json, "node", node->spec->name);
    jw_z(json, "way", has_failed ? NULL : STAGE_WAY_NAMES[staged->way]);
    jw_z(json, "why", staged->why);
    jw_i64(json, "bytes_sent", (int64_t)staged->bytes_sent);
    jw_i64(json, "bytes_there", (int64_t)staged->bytes_there);
    jw_words(json, "paths", staged->paths, has_failed ? 0 : n_items);
    jw_err(json, "error", &node->err);
    jw_end_object(json);
}

void stage_out_json(struct json_out *json, const struct fleet *fleet,
                    const struct stage_item *items, size_t n_items,
                    const struct stage_report *report)
{
    jw_array(json, "items");
    for (size_t idx = 0; idx < n_items; idx++) {
        jw_object(json, NULL);
        jw_z(json, "source", items[idx].source);
        jw_z(json, "kind", items[idx].kind == STAGE_FILE ? "file" : "folder");
        jw_end_object(json);
    }
    jw_end_array(json);
    jw_i64(json, "total_bytes", (int64_t)report->total_bytes);
    jw_i64(json, "head_bytes", (int64_t)report->head_bytes);
    jw_array(json, "nodes");
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        add_node_json(json, &fleet->nodes[idx], &report->nodes[idx], n_items);
    }
    jw_end_array(json);
}

static const char *words_of(const struct fleet_node *node, const struct stage_node *staged)
{
    static const char *const WORDS[STAGE_WAY_COUNT] = {[STAGE_NOTHING] = "was there",
                                                       [STAGE_SHARED] = "shared, not copied",
                                                       [STAGE_CHAIN] = "passed on",
                                                       [STAGE_SSH] = "copied by SSH"};
    return node->err.code != ERR_NONE ? "failed" : WORDS[staged->way];
}

void stage_out_row(struct table *table, const struct fleet_node *node,
                   const struct stage_node *staged, size_t idx)
{
    TABLE_ADD(table, str_of(words_of(node, staged)),
              str_of(node->err.code != ERR_NONE ? node->err.msg : staged->paths[idx]));
}

void stage_out_text(struct strbuf *text, const struct fleet *fleet,
                    const struct stage_report *report)
{
    CLEANUP(table) struct table table = table_of("node|result|>sent MB|>was there MB");
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        const struct fleet_node *node = &fleet->nodes[idx];
        const struct stage_node *staged = &report->nodes[idx];
        TABLE_ADD(&table, node->spec->name, str_of(words_of(node, staged)),
                  table_text(&table, "%.3f", (double)staged->bytes_sent / 1e6),
                  table_text(&table, "%.3f", (double)staged->bytes_there / 1e6));
    }
    table_render(&table, text);
    strbuf_printf(text, "%.3f MB a node; this machine sent %.3f MB\n",
                  (double)report->total_bytes / 1e6, (double)report->head_bytes / 1e6);
}
