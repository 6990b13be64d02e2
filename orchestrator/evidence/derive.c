/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/derive.h"

#include "base/fs.h"
#include "evidence/contents.h"

#define DERIVED_MAX (1u << 30)
#define FORMER_KIND "manifest/nodes-bench.json" /* of programs before November 2026 */

struct comparison {
    struct arena *arena;
    const char *folder;
    struct discrepancies *discrepancies;
    size_t n;
};

static int compare(void *ctx, const char *name, struct str text, struct err *err)
{
    struct comparison *comparison = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str kept;
    comparison->n++;
    return fs_read(&arena, fs_join(&arena, comparison->folder, name), DERIVED_MAX, &kept, err) < 0
               ? -1
               : discrepancies_find(comparison->arena, name, kept, text, comparison->discrepancies,
                                    err);
}

static int derive(struct arena *arena, const char *folder, struct derived *derived, struct err *err)
{
    struct comparison comparison = {arena, folder, &derived->discrepancies, 0};
    struct contents_found found;
    if (contents_regular(arena, folder, &found, err) < 0 ||
        frozen_load(arena, folder, &derived->frozen, err) < 0 ||
        frozen_check(arena, &derived->frozen, &derived->discrepancies, err) < 0 ||
        result_derive(arena, &derived->frozen, (struct derived_to){compare, &comparison},
                      &derived->result, err) < 0 ||
        contents_check(arena, &found, &derived->frozen, &derived->result, err) < 0) {
        return -1;
    }
    derived->n_logs = comparison.n - 1;
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

void derived_release(struct derived *derived)
{
    frozen_release(&derived->frozen);
}
