/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/asked.h"

#include "judge/rule.h"

static bool is_missing_also(struct arena *arena, const struct beside *beside,
                            const struct format *format, const char **ret_key, const char **ret_why)
{
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        struct str id = beside->also[idx];
        if (!format || !str_eq(rule_id_format(id), format_id(format))) {
            *ret_why = arena_printf(arena, "%.*s is no rule of %s%.*s, which reads the log",
                                    STR_ARG(id), format ? "format " : "the format",
                                    STR_ARG(format ? format_id(format) : STR_EMPTY));
        } else if (!format_rule(format, id)) {
            *ret_why = arena_printf(arena, "there is no rule %.*s", STR_ARG(id));
        } else {
            continue;
        }
        *ret_key = arena_printf(arena, "also[%zu]", idx);
        return true;
    }
    return false;
}

bool asked_is_missing(struct arena *arena, const struct asked_of_log *asked,
                      const struct format *format, const char **ret_key, const char **ret_why)
{
    struct str series = asked->beside->target.series;
    if (asked->rule.ptr && (!format || !format_rule(format, asked->rule))) {
        *ret_key = "rule";
        *ret_why = arena_printf(arena, "there is no rule %.*s", STR_ARG(asked->rule));
        return true;
    }
    if (series.ptr && format && !format_has_series(format, series)) {
        *ret_key = "target.series";
        *ret_why =
            arena_printf(arena, "its target is of series \"%.*s\", which format %.*s does not have",
                         STR_ARG(series), STR_ARG(format_id(format)));
        return true;
    }
    return is_missing_also(arena, asked->beside, format, ret_key, ret_why);
}
