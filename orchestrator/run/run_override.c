/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_prepare.h"

#include "base/secret.h"
#include "report/plan.h"

/* A run must not change what it is checked against, or its name. */
static bool is_published(struct str key)
{
    static const char *const KEYS[] = {"schema_version", "id",       "title", "source", "logs",
                                       "cells",          "baseline", "rule",  "format", "formats"};
    for (size_t idx = 0; idx < ARRAY_LEN(KEYS); idx++) {
        if (str_eq_z(key, KEYS[idx])) {
            return true;
        }
    }
    return false;
}

/* ret_is_text: of values whose names are free, all of which are text. */
static int check_path(struct str setting, bool *ret_is_text, struct err *err)
{
    struct json_path_part parts[JSON_PATH_PARTS_MAX];
    struct str path;
    struct str value;
    size_t n = 0;
    if (json_path_parse(setting, parts, &n, &path, &value, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (parts[idx].key.ptr && is_published(parts[idx].key)) {
            return err_set(err, ERR_USAGE,
                           "%.*s: \"%.*s\" is what was published, and cannot be overridden",
                           STR_ARG(path), STR_ARG(parts[idx].key));
        }
    }
    struct str holder = n > 1 ? parts[n - 2].key : STR_EMPTY;
    if (str_eq_z(holder, "env") && secret_is(parts[n - 1].key, value)) {
        return err_set(err, ERR_USAGE,
                       "%.*s: looks like a secret, and what is set is kept in the run's evidence "
                       "for others to read; have it in the environment of the program instead",
                       STR_ARG(path));
    }
    *ret_is_text = str_eq_z(holder, "env") || str_eq_z(holder, "conditions");
    return 0;
}

int run_override(struct arena *arena, const char *const *settings, size_t n, struct str *text,
                 struct json_override **ret_overrides, struct err *err)
{
    struct json_override *overrides = arena_array(arena, struct json_override, n + 1);
    if (n > PLAN_OVERRIDES_MAX) {
        return err_set(err, ERR_USAGE, "-C: more than %d", PLAN_OVERRIDES_MAX);
    }
    for (size_t idx = 0; idx < n; idx++) {
        struct str setting = str_of(settings[idx]);
        bool is_text = false;
        if (check_path(setting, &is_text, err) < 0 ||
            json_override(arena, *text, setting, is_text, &overrides[idx], err) < 0) {
            return err_wrap(err, "-C");
        }
        *text = overrides[idx].text;
    }
    *ret_overrides = overrides;
    return 0;
}
