/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes copy`: copy files and folders to all nodes, passed on from node to node, each checked against its digest there. */
#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

#include "cmd/nodes.h"
#include "codec/json_document.h"

#define OUTAGE_NS (5 * NS_PER_S) /* a user at the terminal wants to know soon */

struct args {
    const char *nodes, *to;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT(struct args, nodes, "nodes", "only these nodes of the inventory", .letter = 'w',
        .value = "SET"),
    OPT(struct args, to, "to", "folder there: absolute, or below the node's work folder (files)",
        .value = "DIR"),
    OPT_END,
};

/* DIR/NAME there. */
static int make_item(struct arena *arena, const char *path, const char *to,
                     struct stage_item *ret_item, struct err *err)
{
    struct str rest = str_of(path);
    struct stat info;
    if (stat(path, &info) < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    rest = str_rtrim(rest, 1, "/");
    struct str name = rest;
    for (size_t idx = 0; idx < rest.len; idx++) {
        if (rest.ptr[idx] == '/') {
            name = str_sub(rest, idx + 1, rest.len);
        }
    }
    if (name.len == 0 || str_eq_z(name, ".") || str_eq_z(name, "..")) {
        return err_set(err, ERR_USAGE, "nodes copy: %s has no name of its own", path);
    }
    *ret_item = (struct stage_item){.kind = S_ISDIR(info.st_mode) ? STAGE_FOLDER : STAGE_FILE,
                                    .source = path,
                                    .target = arena_printf(arena, "%s/%.*s", to, STR_ARG(name)),
                                    .is_executable = (info.st_mode & S_IXUSR) != 0};
    return 0;
}

static int print_report(const struct cmd_call *call, struct nodes_fleet *nodes,
                        const struct stage_item *items, size_t n_items,
                        const struct stage_report *report)
{
    const struct args *args = call->args;
    struct json_out json;
    int status = nodes_log_failed(nodes);
    if (args->want_json) {
        jw_document(&json, call->out);
        jw_str(&json, "inventory", nodes->inventory.id);
        jw_i64(&json, "exit_status", status);
        stage_out_json(&json, &nodes->fleet, items, n_items, report);
        jw_end_object(&json);
        strbuf_add_char(call->out, '\n');
    } else {
        stage_out_text(call->out, &nodes->fleet, report);
    }
    return status;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    const struct args *args = call->args;
    const struct opt_list *operands = &call->operands;
    if (operands->n < 2 || operands->n > STAGE_ITEMS_MAX) {
        return err_set(err, ERR_USAGE,
                       "nodes copy: expected an inventory and at most %d files or folders",
                       STAGE_ITEMS_MAX - 1);
    }
    size_t n_items = operands->n - 1;
    struct stage_item *items = arena_array(call->arena, struct stage_item, n_items);
    struct nodes_fleet_opts opts = {operands->items[0], args->nodes, 0, OUTAGE_NS};
    struct stage_report report;
    struct stage_out out;
    for (size_t idx = 0; idx < n_items; idx++) {
        if (make_item(call->arena, operands->items[1 + idx], args->to ? args->to : "files",
                      &items[idx], err) < 0) {
            return -1;
        }
    }
    if (nodes_open(call->arena, ctx, &opts, &nodes, err) < 0) {
        return -1;
    }
    if (nodes.inventory.is_local) {
        return err_set(err, ERR_USAGE, "nodes copy: inventory local is this machine");
    }
    stage_out_init(&out, ctx, true);
    if (stage_out_run(call->arena, &out, &nodes.fleet, (struct stage_list){items, n_items}, &report,
                      err) < 0) {
        return -1;
    }
    return print_report(call, &nodes, items, n_items, &report);
}

const struct cmd NODES_COPY =
    CMD("copy", "INVENTORY PATH...", "copy files and folders to all nodes", OPTS, run,
        CMD_ARGS(struct args));
