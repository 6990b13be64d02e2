/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/derive.h"

#include <math.h>

#include "base/fs.h"
#include "evidence/contents.h"
#include "log/derivation.h"

#define DERIVED_MAX (1u << 30)
#define FORMER_KIND "manifest/nodes-bench.json" /* of programs before November 2026 */

struct comparison {
    const char *folder;
    size_t n_equal;
};

static int compare(void *ctx, const char *name, struct str text, struct err *err)
{
    struct comparison *comparison = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str kept;
    size_t at = 0;
    if (fs_read(&arena, fs_join(&arena, comparison->folder, name), DERIVED_MAX, &kept, err) < 0) {
        return -1;
    }
    if (str_eq(kept, text)) {
        comparison->n_equal++;
        return 0;
    }
    while (at < kept.len && at < text.len && kept.ptr[at] == text.ptr[at]) {
        at++;
    }
    return err_set(err, ERR_INTEGRITY,
                   "%s: differs from what follows from the raw logs, at byte %zu (kept %zu bytes, "
                   "derived %zu)",
                   name, at, kept.len, text.len);
}

static int derive(struct arena *arena, const char *folder, struct derived *derived, struct err *err)
{
    struct comparison comparison = {.folder = folder};
    struct contents_found found;
    if (contents_regular(arena, folder, &found, err) < 0 ||
        frozen_load(arena, folder, &derived->frozen, err) < 0 ||
        frozen_check(arena, &derived->frozen, err) < 0 ||
        result_derive(arena, &derived->frozen, (struct derived_to){compare, &comparison},
                      &derived->result, err) < 0 ||
        contents_check(arena, &found, &derived->frozen, &derived->result, err) < 0) {
        return -1;
    }
    derived->n_logs = comparison.n_equal - 1;
    return 0;
}

int derive_folder(struct arena *arena, const char *folder, struct derived *ret_derived,
                  struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (fs_exists(fs_join(arena, folder, FORMER_KIND))) {
        return err_set(err, ERR_USAGE,
                       "evidence of kind %s, which is no run and is no longer derived; "
                       "verify --bytes-only checks its bytes",
                       FORMER_KIND);
    }
    if (derive(arena, folder, &derived, err) < 0) {
        if (err->code == ERR_NOT_FOUND || err->code == ERR_MANIFEST) {
            /* A part of the evidence is missing, or is not what a run writes. */
            err->code = ERR_INTEGRITY;
        }
        return -1;
    }
    *ret_derived = derived;
    derived = (struct derived){0};
    return 0;
}

static int discard(void *ctx UNUSED, const char *name UNUSED, struct str text UNUSED,
                   struct err *err UNUSED)
{
    return 0;
}

static const char *shown(struct arena *arena, const struct cell_result *cell)
{
    const char *verdict = run_verdict_name(cell->verdict);
    return isnan(cell->value)
               ? verdict
               : arena_printf(arena, "%s %.6g %.*s", verdict, cell->value, STR_ARG(cell->unit));
}

static bool is_same(const struct cell_result *a, const struct cell_result *b)
{
    return a->verdict == b->verdict &&
           (a->value == b->value || (isnan(a->value) && isnan(b->value)));
}

/* NULL if verdicts and numbers are the same, else the first that differs. An archive keeps the verdict of its own
   derivation; the reader is told. */
static const char *derive_today(struct arena *arena, const struct derived *derived)
{
    struct frozen frozen = derived->frozen;
    struct run_result today = {0};
    struct err err = {0};
    frozen.derivation = DERIVATION_NOW;
    if (result_derive(arena, &frozen, (struct derived_to){discard, NULL}, &today, &err) < 0) {
        return arena_printf(arena, "%s", err.msg);
    }
    ASSERT(today.n_cells == derived->result.n_cells); /* of one plan */
    for (size_t idx = 0; idx < today.n_cells; idx++) {
        const struct cell_result *then = &derived->result.cells[idx];
        if (!is_same(then, &today.cells[idx])) {
            return arena_printf(arena, "%.*s: %s, and was %s", STR_ARG(then->of_case->id),
                                shown(arena, &today.cells[idx]), shown(arena, then));
        }
    }
    return NULL;
}

int derive_check(struct arena *arena, const char *folder, struct derived_from *ret_from,
                 struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    struct derived_from from = {0};
    if (derive_folder(arena, folder, &derived, err) < 0) {
        return -1;
    }
    from.n = derived.n_logs;
    from.derivation = derived.frozen.derivation;
    from.today = from.derivation < DERIVATION_NOW ? derive_today(arena, &derived) : NULL;
    *ret_from = from;
    return 0;
}

void derived_release(struct derived *derived)
{
    frozen_release(&derived->frozen);
}
