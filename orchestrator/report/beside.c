/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/beside.h"

#include "report/report_decode.h"

/* ---- rule ids ---- */

struct str rule_id_format(struct str id)
{
    struct str format = STR_EMPTY;
    return str_next(&id, '/', &format) && id.ptr ? format : STR_EMPTY;
}

struct str rule_id_name(struct str id)
{
    struct str format = STR_EMPTY;
    return str_next(&id, '/', &format) ? id : STR_EMPTY;
}

/* ---- decode ---- */

static int decode_target(const struct json *at, struct arena *arena, struct loss_target *ret_target,
                         struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"series", JSON_STR, JSON_REQUIRED, offsetof(struct loss_target, series), 0, 0},
        {"at_most", JSON_F64, JSON_REQUIRED, offsetof(struct loss_target, at_most), 0, 0},
        {"mean_of", JSON_I64, JSON_REQUIRED, offsetof(struct loss_target, mean_of), 1,
         TARGET_MEAN_MAX},
    };
    struct json member;
    return json_find(at, "target", &member)
               ? json_decode(&member, arena, FIELDS, ARRAY_LEN(FIELDS), ret_target, err)
               : 0;
}

static int decode_also(const struct json *at, struct arena *arena, struct beside *beside,
                       struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (!json_find(at, "also", &list)) {
        return 0;
    }
    if (json_expect_array(&list, ALSO_RULES_MAX, &n, err) < 0) {
        return -1;
    }
    beside->also = arena_array(arena, struct str, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct str id;
        if (json_str(&item, arena, &id, err) < 0 || check_line(&item, "rule", id, err) < 0) {
            return -1;
        }
        if (!rule_id_format(id).len || !rule_id_name(id).len) {
            return json_fail(&item, err, "expected FORMAT/NAME, found \"%.160s\"", id.ptr);
        }
        if (str_is_in(id, beside->also, beside->n_also)) {
            return json_fail(&item, err, "\"%.160s\" is there twice", id.ptr);
        }
        beside->also[beside->n_also++] = id;
    }
    return 0;
}

static int decode_why_not(const struct json *at, struct arena *arena, struct beside *beside,
                          struct err *err)
{
    struct json member;
    return !json_find(at, "also_why_not", &member) ? 0
           : json_str(&member, arena, &beside->why_not, err) < 0
               ? -1
               : check_line(&member, "also_why_not", beside->why_not, err);
}

int beside_decode(const struct json *at, struct arena *arena, struct beside *ret_beside,
                  struct err *err)
{
    struct beside beside = {0};
    if (decode_target(at, arena, &beside.target, err) < 0 ||
        decode_also(at, arena, &beside, err) < 0 || decode_why_not(at, arena, &beside, err) < 0) {
        return -1;
    }
    *ret_beside = beside;
    return 0;
}

/* ---- encode ---- */

void beside_encode(struct json_out *out, const struct beside *beside)
{
    const struct loss_target *target = &beside->target;
    if (target->series.ptr) {
        jw_object(out, "target");
        jw_str(out, "series", target->series);
        jw_f64(out, "at_most", target->at_most);
        jw_i64(out, "mean_of", target->mean_of);
        jw_end_object(out);
    }
    if (beside->n_also) {
        jw_array(out, "also");
        for (size_t idx = 0; idx < beside->n_also; idx++) {
            jw_str(out, NULL, beside->also[idx]);
        }
        jw_end_array(out);
    }
    if (beside->why_not.ptr) {
        jw_str(out, "also_why_not", beside->why_not);
    }
}

/* ---- compare ---- */

static bool is_same_target(const struct loss_target *a, const struct loss_target *b)
{
    return str_eq(a->series, b->series) && !a->series.ptr == !b->series.ptr &&
           !(a->at_most < b->at_most) && !(a->at_most > b->at_most) && a->mean_of == b->mean_of;
}

bool beside_is_same(const struct beside *a, const struct beside *b)
{
    bool is_same = is_same_target(&a->target, &b->target) && a->n_also == b->n_also &&
                   str_eq(a->why_not, b->why_not) && !a->why_not.ptr == !b->why_not.ptr;
    for (size_t idx = 0; is_same && idx < a->n_also; idx++) {
        is_same = str_eq(a->also[idx], b->also[idx]);
    }
    return is_same;
}
