/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/provision_files.h"

#include <errno.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "cmd/source_ops.h"
#include "cmd/stage_out.h"
#include "report/source.h"
#include "run/planner.h"
#include "run/run_data.h"
#include "store/source_store.h"
#include "sys/stop.h"

struct bringing {
    struct arena *arena;
    const struct provision_files *files;
    const char *folder; /* of our own: checked-out sources, until they are sent */
    struct stage_item items[STAGE_ITEMS_MAX];
    const char *names[STAGE_ITEMS_MAX]; /* as they were asked for */
    size_t n;
};

/* What the store has, without the network; every file is checked against its commit while it is written. */
static int add_source(struct bringing *b, const char *text, struct err *err)
{
    const struct provision_files *files = b->files;
    struct net_opts offline = {
        .clock = files->ctx->clock, .is_offline = true, .should_stop = stop_is_asked};
    struct artifact_job job = {.ctx = files->ctx, .locks = files->locks, .arena = b->arena};
    struct sources sources;
    struct source_tree tree;
    struct artifact artifact;
    const char *url, *pin;
    bool has_prefix = str_starts(str_of(text), STR_LIT("source:"));
    const char *name = has_prefix ? text : arena_printf(b->arena, "source:%s", text);
    const char *folder;
    if (artifact_resolve(b->arena, files->ctx->root, name, &artifact, err) < 0 ||
        source_op_find(&job, &artifact, &url, &pin, err) < 0 ||
        sources_init(&sources, b->arena, files->store, &offline, err) < 0) {
        return -1;
    }
    if (source_verify(&sources, url, pin, false, &tree, err) < 0) {
        err->code = err->code == ERR_NOT_FOUND ? ERR_FETCH : err->code;
        return err_wrap(err, "reperf data fetch %s brings it", name);
    }
    const char *place = source_folder_name(b->arena, str_of(pin));
    folder = fs_join(b->arena, b->folder, place);
    if (source_checkout(&sources, &tree, folder, err) < 0) {
        return -1;
    }
    b->names[b->n] = text;
    b->items[b->n++] = (struct stage_item){.kind = STAGE_FOLDER,
                                           .source = folder,
                                           .target = arena_printf(b->arena, "source/%s", place)};
    return 0;
}

static int add_items(struct bringing *b, struct err *err)
{
    const struct provision_files *files = b->files;
    const char *train = planner_train_path(b->arena, files->ctx->self);
    struct plan_data data;
    if (files->wants_program) {
        b->names[b->n] = "reperf-train";
        if (stage_program_item(b->arena, train, &b->items[b->n++], err) < 0) {
            return -1;
        }
    }
    if (files->data) {
        b->names[b->n] = files->data;
        if (run_data_find(b->arena, files->ctx->root, files->ctx->store, files->data, &data, err) <
                0 ||
            stage_packed_item(b->arena, data.folder.ptr, &b->items[b->n++], err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < files->sources.n; idx++) {
        if (b->n >= STAGE_ITEMS_MAX) {
            return err_set(err, ERR_USAGE, "more than %d things to bring", STAGE_ITEMS_MAX);
        }
        if (add_source(b, files->sources.items[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int bring(struct bringing *b, struct fleet *fleet, struct json_out *out, struct table *table,
                 struct err *err)
{
    struct stage_report report;
    struct stage_out stage;
    if (add_items(b, err) < 0) {
        return -1;
    }
    stage_out_init(&stage, b->files->ctx, false);
    if (stage_out_run(b->arena, &stage, fleet, (struct stage_list){b->items, b->n}, &report, err) <
        0) {
        return -1;
    }
    jw_object(out, "files");
    stage_out_json(out, fleet, b->items, b->n, &report);
    jw_end_object(out);
    for (size_t node = 0; node < fleet->n_nodes; node++) {
        for (size_t idx = 0; idx < b->n; idx++) {
            table_add(table, fleet->nodes[node].spec->name);
            table_addf(table, "%s", b->names[idx]);
            stage_out_row(table, &fleet->nodes[node], &report.nodes[node], idx);
        }
    }
    return 0;
}

int provision_files_bring(struct arena *arena, const struct provision_files *files,
                          struct fleet *fleet, struct json_out *out, struct table *table,
                          struct err *err)
{
    struct bringing b = {.arena = arena, .files = files};
    struct err unclean = {0};
    char *folder = arena_printf(arena, "%s/tmp-source.XXXXXX", files->ctx->state);
    int result;
    if (fleet->inventory->is_local && files->sources.n) {
        return err_set(err, ERR_USAGE,
                       "nodes provision: --source is for nodes; inventory local is "
                       "this machine, whose store has it");
    }
    if (!provision_files_any(files)) {
        jw_null(out, "files");
        return 0;
    }
    if (fs_mkdir_p(files->ctx->state, err) < 0) {
        return -1;
    }
    if (!mkdtemp(folder)) {
        return err_set(err, err_code_of_errno(errno), "make a folder in %s: %s", files->ctx->state,
                       err_errno_text(errno));
    }
    b.folder = folder;
    result = bring(&b, fleet, out, table, err);
    if (fs_remove_tree(folder, &unclean) < 0) {
        log_line(LOG_WARN, "%s", unclean.msg);
    }
    return result;
}
