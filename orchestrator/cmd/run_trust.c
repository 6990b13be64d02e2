/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"
#include "view/plan_out.h"

#define SHOWN_MAX (1u << 20)

int run_trust(const struct run_args *args, const struct address *address, const struct plan *plan,
              struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SHOWN_MAX);
    const struct str id = plan->report;
    bool is_bare = plan->runtime == RUNTIME_NONE;
    if (net_has_login(&args->net.opts)) {
        return err_set(err, ERR_USAGE,
                       "--netrc and --cookies: a report from elsewhere is given no login; "
                       "reperf data fetch it first");
    }
    if (args->trust && strcmp(args->trust, address->pin) == 0) {
        return 0;
    }
    strbuf_printf(&text, "report %.*s, %s, would run%s:\n", STR_ARG(id), address->pin,
                  is_bare ? " in no container, with all that you may do" : "");
    plan_out_text(plan, true, &text);
    if (text.is_full) {
        return err_set(err, ERR_USAGE,
                       "%.*s is from elsewhere, and what it would run is longer than %u bytes: "
                       "nobody can look at that",
                       STR_ARG(id), SHOWN_MAX);
    }
    text_plain(text.ptr, text.len); /* its words must not steer the terminal that shows them */
    fprintf(stderr, "%s", text.ptr);
    return args->trust
               ? err_set(err, ERR_USAGE, "--trust %.80s: the report is %s", args->trust,
                         address->pin)
               : err_set(err, ERR_USAGE,
                         "%.*s is from elsewhere: read what it would run%s, then --trust %s",
                         STR_ARG(id), is_bare ? " outside any container" : "", address->pin);
}
