/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/select.h"

int select_reports(struct arena *arena, const char *root, const struct opt_list *names, bool is_all,
                   struct report_set *ret_set, struct err *err)
{
    struct report_set set = {0};
    if (is_all == (names->n > 0)) {
        return err_set(err, ERR_USAGE, "%s",
                       is_all ? "either reports or --all" : "name a report, or --all");
    }
    if (is_all) {
        return load_all_reports(arena, root, ret_set, err);
    }
    set.items = arena_array(arena, struct report, names->n);
    for (; set.n < names->n; set.n++) {
        if (load_report(arena, root, names->items[set.n], &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    *ret_set = set;
    return 0;
}
