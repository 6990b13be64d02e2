/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/select.h"

#include "base/nearest.h"

int shown_level(const struct shown_args *args, enum text_level *ret_level, struct err *err)
{
    if (args->is_quiet && args->is_verbose) {
        return err_set(err, ERR_USAGE, "either --quiet or --verbose");
    }
    *ret_level = args->is_quiet ? TEXT_QUIET : args->is_verbose ? TEXT_VERBOSE : TEXT_PLAIN;
    return 0;
}

int shown_select(struct arena *arena, const struct shown_args *args, struct report_audit *audits,
                 size_t n, struct err *err)
{
    const size_t n_globs = args->cases.n;
    struct str *globs = arena_array(arena, struct str, n_globs + 1);
    struct nearest nearest = nearest_to(n_globs ? args->cases.items[0] : "");
    char text[NEAREST_TEXT_MAX];
    size_t n_cells = 0;
    for (size_t idx = 0; idx < n_globs; idx++) {
        globs[idx] = str_of(args->cases.items[idx]);
    }
    for (size_t idx = 0; idx < n; idx++) {
        audit_select(arena, &audits[idx], globs, n_globs);
        n_cells += audits[idx].n_cells;
    }
    if (n_globs == 0 || n_cells > 0) {
        return 0;
    }
    for (size_t idx = 0; idx < n; idx++) {
        for (size_t c = 0; c < audits[idx].report->n_cases; c++) {
            nearest_offer(&nearest, audits[idx].report->cases[c].id.ptr);
        }
    }
    return err_set(err, ERR_USAGE, "no published cell is selected by --case %.200s%s",
                   args->cases.items[0], nearest_text(&nearest, text));
}
