/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf compare`: two runs side by side: values, verdicts, and differences of machines and conditions, the likeliest to
   matter first. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/outputs.h"
#include "codec/json_document.h"
#include "view/compare.h"

struct args {
    struct outputs outputs;
    struct compare_opts opts; /* its tolerance is negative where no gate was asked for */
    const char *limits;
};

static const struct opt OPTS[] = {
    OPT(struct args, opts.tolerance, "fail-slower",
        "status 1 unless no cell of the second run is slower by more than this (\"5%\")",
        .value = "SHARE"),
    OPT(struct args, opts.allows_undecided, "allow-undecided",
        "with --fail-slower: where the repeats are too few to tell, the means decide"),
    OPT(struct args, limits, "limits",
        "when a node is an outlier, instead of manifests/node-health.json", .value = "FILE"),
    OPT(struct args, opts.format, "format",
        "of logs, by name or file (default: whichever reads them)", .letter = 'f',
        .value = "FORMAT"),
    OPT(struct args, opts.is_verbose, "verbose",
        "in text also the differences that can hardly matter", .letter = 'v'),
    OUTPUTS_OPT_JSON(struct args, outputs),
    OUTPUTS_OPT_MARKDOWN(struct args, outputs),
    OPT_END,
};

static int write_form(const void *of, enum output_form form, struct strbuf *out,
                      struct err *err UNUSED)
{
    if (form == OUTPUT_JSON) {
        compare_json(of, out);
    } else {
        compare_text(of, form == OUTPUT_MARKDOWN, out);
    }
    return 0;
}

/* One run alone: its nodes beside each other. The status is 1 with an outlier. */
static int show_nodes(const struct compare *c, const struct args *args, struct strbuf *out,
                      struct err *err)
{
    const struct health *health = c->a.view.health;
    struct json_out json;
    if (!health || args->opts.has_gate || args->outputs.markdown) {
        return err_set(err, ERR_USAGE,
                       "compare: expected two runs, or one with --each-node for text or --json");
    }
    if (args->outputs.want_json) {
        jw_document(&json, out);
        jw_str(&json, "run_id", c->a.view.frozen.run_id);
        run_health_encode(health, "health", &json);
        jw_end_object(&json);
        strbuf_add_char(out, '\n');
    } else {
        run_health_text(health, out);
    }
    return run_health_status(health);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    const struct opt_list *names = &call->operands;
    args->opts.has_gate = args->opts.tolerance >= 0;
    CLEANUP(compare) struct compare compare = {.arena = call->arena, .opts = args->opts};
    struct compare_side *const sides[] = {&compare.a, &compare.b};
    if (outputs_check(&args->outputs, "compare", err) < 0) {
        return -1;
    }
    if (args->opts.allows_undecided && !args->opts.has_gate) {
        return err_set(err, ERR_USAGE, "--allow-undecided needs --fail-slower");
    }
    for (size_t idx = 0; idx < names->n; idx++) {
        if (compare_open(&compare, ctx, names->items[idx], sides[idx], err) < 0 ||
            run_health_of(call->arena, ctx->root, args->limits, &sides[idx]->view, err) < 0) {
            return -1;
        }
    }
    if (names->n == 1) {
        return show_nodes(&compare, args, call->out, err);
    }
    if (compare_sides(&compare, err) < 0 ||
        outputs_put(&args->outputs, write_form, &compare, false, err) < 0) {
        return -1;
    }
    return args->opts.has_gate ? compare_gate(&compare) : 0;
}

const struct cmd CMD_COMPARE =
    CMD("compare", "RUN|LOG [RUN|LOG]",
        "two runs or logs side by side: values, what differs; or the nodes of one run", OPTS, run,
        CMD_ARGS(struct args), .defaults = &(const struct args){.opts.tolerance = -1},
        CMD_OPERANDS(1, 2, "compare: expected two runs, archives or logs"));
