/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#define SHOWN_MAX (1u << 20)

static void show_step(struct strbuf *out, const struct plan *plan, const struct plan_step *step)
{
    strbuf_add_z(out, "    runs   ");
    for (size_t word = 0; word < step->n_argv; word++) {
        strbuf_add_char(out, ' ');
        shq_append(out, step->argv[word]);
    }
    if (plan->runtime == RUNTIME_NONE) {
        strbuf_add_z(out, "\n    in      no container: with all that you may do\n");
    } else {
        strbuf_printf(out, "\n    in      %.*s@%.*s\n", STR_ARG(step->image_name),
                      STR_ARG(step->image_digest));
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        strbuf_printf(out, "    sees    %s %.*s\n", RECIPE_MOUNT_KIND_NAMES[step->mounts[idx].kind],
                      STR_ARG(step->mounts[idx].name));
    }
}

/* Each command once, with its image and what it sees. */
static void show(struct strbuf *out, const struct address *address, const struct report *report,
                 const struct plan *plan)
{
    strbuf_printf(out, "report %.*s, %s, would run:\n", STR_ARG(report->id), address->pin);
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        CLEANUP(strbuf) struct strbuf one = STRBUF(SHOWN_MAX);
        const struct plan_step *step = &plan->steps[idx];
        show_step(&one, plan, step);
        if (step->n_argv && str_find(strbuf_str(out), strbuf_str(&one)) < 0) {
            strbuf_printf(out, "  %.*s\n%.*s", STR_ARG(step->case_id), STR_ARG(strbuf_str(&one)));
        }
        out->is_full |= one.is_full;
    }
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        for (size_t at = 0; at < report->stacks[idx].n_sources; at++) {
            strbuf_printf(out, "  fetches %.*s\n",
                          STR_ARG(report->stacks[idx].sources[at].repository));
        }
    }
}

int run_trust(const struct run_args *args, const struct address *address,
              const struct report *report, const struct plan *plan, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SHOWN_MAX);
    if (net_has_login(&args->net.opts)) {
        return err_set(err, ERR_USAGE,
                       "--netrc and --cookies: a report from elsewhere is given no login; "
                       "reperf data fetch it first");
    }
    if (args->trust && strcmp(args->trust, address->pin) == 0) {
        return 0;
    }
    show(&text, address, report, plan);
    if (text.is_full) {
        return err_set(err, ERR_USAGE,
                       "%.*s is from elsewhere, and what it would run is longer than %u bytes: "
                       "nobody can look at that",
                       STR_ARG(report->id), SHOWN_MAX);
    }
    text_plain(text.ptr, text.len); /* its words must not steer the terminal that shows them */
    fprintf(stderr, "%s", text.ptr);
    if (args->trust) {
        return err_set(err, ERR_USAGE, "--trust %.80s: the report is %s", args->trust,
                       address->pin);
    }
    return err_set(err, ERR_USAGE,
                   "%.*s is from elsewhere: read what it would run%s, then --trust %s",
                   STR_ARG(report->id),
                   plan->runtime == RUNTIME_NONE ? " outside any container" : "", address->pin);
}
