/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a node set. An accepted set keeps its limits, and its folded text has the same names again, and folds to itself. */
#include "tests/fuzz/fuzz.h"

#include "base/map.h"
#include "report/hostlist.h"

static void check_fold(struct arena *arena, const struct hostlist *list)
{
    struct hostlist again;
    struct err err = {0};
    struct str text = hostlist_fold(arena, list->names, list->n);
    CLEANUP(map) struct map names = {0};
    if (text.len > HOSTLIST_TEXT_MAX) {
        return;
    }
    ASSERT(hostlist_expand(arena, text, &again, &err) == 0);
    ASSERT(again.n == list->n);
    for (size_t idx = 0; idx < again.n; idx++) {
        ASSERT(map_add(&names, again.names[idx], &names));
    }
    for (size_t idx = 0; idx < list->n; idx++) {
        ASSERT(map_get(&names, list->names[idx]));
    }
    ASSERT(str_eq(hostlist_fold(arena, again.names, again.n), text));
}

FUZZ(arena, text)
{
    struct hostlist list;
    struct err err = {0};
    if (hostlist_expand(arena, text, &list, &err) < 0) {
        ASSERT(err.code == ERR_USAGE && err.msg[0]);
        return;
    }
    ASSERT(list.n > 0 && list.n <= HOSTLIST_NAMES_MAX);
    for (size_t idx = 0; idx < list.n; idx++) {
        ASSERT(hostlist_is_name(list.names[idx]));
    }
    check_fold(arena, &list);
}
