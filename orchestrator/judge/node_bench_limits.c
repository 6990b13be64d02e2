/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/node_bench.h"

#include <math.h>

#include "codec/json_table.h"

static int read_limit(const struct json *at, struct arena *arena, struct bench_limits *limits,
                      bool *seen, struct err *err)
{
    struct raw {
        struct str measure;
        struct bench_limit limit;
    } raw = {.limit = {.share = (double)NAN, .bound = (double)NAN}};
    static const struct json_field FIELDS[] = {
        ROW("measure", struct raw, measure, JSON_REQUIRED),
        ROW("share", struct raw, limit.share, JSON_REQUIRED | JSON_NULLABLE),
        ROW("amount", struct raw, limit.amount, JSON_REQUIRED),
        ROW("bound", struct raw, limit.bound, JSON_REQUIRED | JSON_NULLABLE),
        ROW("origin", struct raw, limit.origin, JSON_REQUIRED),
    };
    const struct bench_measure *measure;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &raw, err) < 0) {
        return -1;
    }
    measure = bench_measure_of(raw.measure);
    if (!measure || seen[measure - BENCH_MEASURE]) {
        return json_fail(at, err, measure ? "\"%.*s\" occurs twice" : "unknown measure \"%.*s\"",
                         STR_ARG(raw.measure));
    }
    if (raw.limit.share < 0 || raw.limit.share >= 1 || !(raw.limit.amount >= 0) ||
        raw.limit.bound <= 0 || !raw.limit.origin.len) {
        return json_fail(at, err,
                         "expected a share from 0 to 1 or null, an amount, a bound over 0 or null, "
                         "and an origin");
    }
    seen[measure - BENCH_MEASURE] = true;
    limits->of[measure - BENCH_MEASURE] = raw.limit;
    return 0;
}

static int read_all(const struct json *root, struct arena *arena, struct bench_limits *limits,
                    struct err *err)
{
    struct raw {
        int64_t version;
        struct bench_limits limits;
    } *raw = arena_new(arena, struct raw);
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct raw, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("deviations", struct raw, limits.deviations, JSON_REQUIRED),
        ROW("deviations_origin", struct raw, limits.deviations_origin, JSON_REQUIRED),
        ROW("nodes_min", struct raw, limits.nodes_min, JSON_REQUIRED, .min = 3, .max = 64),
        ROW("nodes_min_origin", struct raw, limits.nodes_min_origin, JSON_REQUIRED),
        ROW_ANY("measures", JSON_REQUIRED),
    };
    bool seen[BENCH_MEASURES] = {0};
    struct json list, item;
    size_t n;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), raw, err) < 0 ||
        json_member(root, "measures", &list, err) < 0 ||
        json_expect_array(&list, BENCH_MEASURES, &n, err) < 0) {
        return -1;
    }
    if (!(raw->limits.deviations > 0)) {
        return json_fail(root, err, "deviations: expected a number over 0");
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (read_limit(&item, arena, &raw->limits, seen, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (!seen[idx]) {
            return json_fail(&list, err, "no limit for %s", BENCH_MEASURE[idx].id);
        }
    }
    *limits = raw->limits;
    return 0;
}

int bench_limits_decode(struct arena *arena, struct str text, const char *name,
                        struct bench_limits *ret_limits, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return read_all(&root, arena, ret_limits, err);
}
