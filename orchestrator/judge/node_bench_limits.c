/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/node_bench.h"

#include <math.h>

#include "codec/json.h"

static int read_limit(const struct json *at, struct arena *arena, struct bench_limits *limits,
                      bool *seen, struct err *err)
{
    struct raw {
        struct str measure;
        struct bench_limit limit;
    } raw = {.limit = {.share = (double)NAN, .bound = (double)NAN}};
    static const struct json_field FIELDS[] = {
        {"measure", JSON_STR, JSON_REQUIRED, offsetof(struct raw, measure), 0, 0},
        {"share", JSON_F64, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct raw, limit.share), 0, 0},
        {"amount", JSON_F64, JSON_REQUIRED, offsetof(struct raw, limit.amount), 0, 0},
        {"bound", JSON_F64, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct raw, limit.bound), 0, 0},
        {"origin", JSON_STR, JSON_REQUIRED, offsetof(struct raw, limit.origin), 0, 0},
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
        {"schema_version", JSON_I64, JSON_REQUIRED, offsetof(struct raw, version), 1, 1},
        {"deviations", JSON_F64, JSON_REQUIRED, offsetof(struct raw, limits.deviations), 0, 0},
        {"deviations_origin", JSON_STR, JSON_REQUIRED,
         offsetof(struct raw, limits.deviations_origin), 0, 0},
        {"nodes_min", JSON_I64, JSON_REQUIRED, offsetof(struct raw, limits.nodes_min), 3, 64},
        {"nodes_min_origin", JSON_STR, JSON_REQUIRED, offsetof(struct raw, limits.nodes_min_origin),
         0, 0},
        {"measures", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
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
