/* SPDX-License-Identifier: Apache-2.0 */
/* A table as JSON Schema 2020-12. Objects are written over several lines, values on one. */
#include "base/base.h"

#include "codec/json_table.h"

#define DIALECT "https://json-schema.org/draft/2020-12/schema"

static void put_object(struct json_out *out, const struct json_field *rows, size_t n_rows,
                       const char *rules);

/* Members of an object as JSON, without its braces. */
static void put_members(struct json_out *out, const char *members)
{
    if (members) {
        jw_raw(out, NULL, str_of(members));
    }
}

static void put_type(struct json_out *out, const struct json_field *row, const char *type)
{
    if (row->flags & JSON_NULLABLE) {
        jw_array(out, "type");
        jw_z(out, NULL, type);
        jw_z(out, NULL, "null");
        jw_end_array(out);
    } else {
        jw_z(out, "type", type);
    }
}

static void put_form(struct json_out *out, const struct json_form *form)
{
    if (form && form->pattern) {
        jw_z(out, "pattern", form->pattern);
    }
    if (form && form->is_filled) {
        jw_i64(out, "minLength", 1);
    }
    if (form && form->max) {
        jw_i64(out, "maxLength", (int64_t)form->max);
    }
}

static void put_words(struct json_out *out, const struct json_field *row)
{
    jw_array(out, "enum");
    for (size_t idx = 0; idx < row->n_names; idx++) {
        if (row->names[idx]) {
            jw_z(out, NULL, row->names[idx]);
        }
    }
    if (row->flags & JSON_NULLABLE) {
        jw_null(out, NULL);
    }
    jw_end_array(out);
}

static void put_limits(struct json_out *out, const struct json_field *row, const char *least,
                       const char *most)
{
    if (row->min || least[0] == 'm') {
        jw_i64(out, least, row->min);
    }
    if (row->max > row->min) {
        jw_i64(out, most, row->max);
    }
}

static void put_value(struct json_out *out, const struct json_field *row);

static void put_items(struct json_out *out, const struct json_field *row)
{
    put_type(out, row, "array");
    if (json_items_min(row)) {
        jw_i64(out, "minItems", json_items_min(row));
    }
    if (row->max) {
        jw_i64(out, "maxItems", row->max);
    }
    if (row->flags & JSON_UNIQUE) {
        jw_bool(out, "uniqueItems", true);
    }
    jw_object(out, "items");
    if (row->kind == JSON_LIST) {
        jw_z(out, "type", "object");
        put_object(out, row->rows, row->n_rows, row->rules);
    } else {
        jw_z(out, "type", "string");
        put_form(out, row->form);
    }
    jw_end_object(out);
}

static void put_pairs(struct json_out *out, const struct json_field *row)
{
    struct json_field value = {.flags = row->flags & JSON_NULLABLE};
    jw_z(out, "type", "object");
    if (row->max) {
        jw_i64(out, "maxProperties", row->max);
    }
    jw_object(out, "additionalProperties");
    put_type(out, &value, "string");
    jw_end_object(out);
}

static void put_hex(struct json_out *out, const struct json_field *row)
{
    char pattern[32];
    put_type(out, row, "string");
    snprintf(pattern, sizeof(pattern), "^[0-9a-f]{%d}$", (int)(2 * row->max));
    jw_z(out, "pattern", pattern);
}

static void put_value(struct json_out *out, const struct json_field *row)
{
    switch (row->kind) {
    case JSON_STR:
    case JSON_Z:
        if (row->names) {
            put_words(out, row);
            return;
        }
        put_type(out, row, "string");
        put_form(out, row->form);
        return;
    case JSON_I64:
    case JSON_SIZE:
    case JSON_INT:
        put_type(out, row, "integer");
        put_limits(out, row, "minimum", "maximum");
        return;
    case JSON_F64:
        put_type(out, row, "number");
        return;
    case JSON_BOOL:
        put_type(out, row, "boolean");
        return;
    case JSON_WORD:
        put_words(out, row);
        return;
    case JSON_CONST:
        if (row->is) {
            jw_z(out, "const", row->is);
        } else {
            jw_i64(out, "const", row->min);
        }
        return;
    case JSON_HEX:
        put_hex(out, row);
        return;
    case JSON_OBJECT:
        put_type(out, row, "object");
        put_object(out, row->rows, row->n_rows, row->rules);
        return;
    case JSON_LIST:
    case JSON_STRS:
    case JSON_ZS:
        put_items(out, row);
        return;
    case JSON_PAIRS:
        put_pairs(out, row);
        return;
    case JSON_ANY:
    case JSON_HERE:
        return;
    }
}

static void put_required(struct json_out *out, const struct json_field *rows, size_t n_rows)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        if (rows[idx].kind == JSON_HERE) {
            put_required(out, rows[idx].rows, rows[idx].n_rows);
        } else if (rows[idx].flags & JSON_REQUIRED) {
            jw_z(out, NULL, rows[idx].key);
        }
    }
}

static bool is_simple(const struct json_field *row)
{
    return row->kind != JSON_OBJECT && row->kind != JSON_LIST;
}

static void put_properties(struct json_out *out, const struct json_field *rows, size_t n_rows)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct json_field *row = &rows[idx];
        bool was_compact = out->is_compact;
        if (row->kind == JSON_HERE) {
            put_properties(out, row->rows, row->n_rows);
            continue;
        }
        jw_object(out, row->key);
        out->is_compact = is_simple(row);
        if (row->about) {
            jw_z(out, "description", row->about);
        }
        put_value(out, row);
        put_members(out, row->schema);
        jw_end_object(out);
        out->is_compact = was_compact;
    }
}

static void put_object(struct json_out *out, const struct json_field *rows, size_t n_rows,
                       const char *rules)
{
    bool was_compact = out->is_compact;
    jw_bool(out, "additionalProperties", false);
    jw_array(out, "required");
    out->is_compact = true;
    put_required(out, rows, n_rows);
    jw_end_array(out);
    out->is_compact = was_compact;
    jw_object(out, "properties");
    put_properties(out, rows, n_rows);
    jw_end_object(out);
    put_members(out, rules);
}

void json_schema(struct strbuf *buf, const struct json_document *document)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "$schema", DIALECT);
    jw_z(&out, "title", document->title);
    if (document->about) {
        jw_z(&out, "description", document->about);
    }
    jw_z(&out, "type", "object");
    put_object(&out, document->rows, document->n_rows, document->rules);
    jw_end_object(&out);
}
