/* SPDX-License-Identifier: Apache-2.0 */
/* A table as JSON Schema 2020-12. Objects are written over several lines, values on one. */
#include "base/base.h"

#include "codec/json_table.h"

#define DIALECT "https://json-schema.org/draft/2020-12/schema"

struct schema {
    struct json_out out;
    const struct json_vocabulary *vocabulary;
};

static void put_object(struct schema *to, const struct json_field *rows, size_t n_rows,
                       const char *rules);

/* Items that are data: words, or rules. */
static void put_list(struct schema *to, const char *key, const char *list, bool may_be_null)
{
    jw_array(&to->out, key);
    to->vocabulary->put(&to->out, list, to->vocabulary->context);
    if (may_be_null) {
        jw_null(&to->out, NULL);
    }
    jw_end_array(&to->out);
}

/* Members of an object as JSON, without its braces. */
static void put_members(struct schema *to, const char *members)
{
    if (members) {
        jw_raw(&to->out, NULL, str_of(members));
    }
}

static void put_type(struct schema *to, const struct json_field *row, const char *type)
{
    if (row->flags & JSON_NULLABLE) {
        jw_array(&to->out, "type");
        jw_z(&to->out, NULL, type);
        jw_z(&to->out, NULL, "null");
        jw_end_array(&to->out);
    } else {
        jw_z(&to->out, "type", type);
    }
}

static void put_form(struct schema *to, const struct json_form *form)
{
    if (form && form->pattern) {
        jw_z(&to->out, "pattern", form->pattern);
    }
    if (form && form->is_filled) {
        jw_i64(&to->out, "minLength", 1);
    }
    if (form && form->max) {
        jw_i64(&to->out, "maxLength", (int64_t)form->max);
    }
}

static void put_words(struct schema *to, const struct json_field *row)
{
    jw_array(&to->out, "enum");
    for (size_t idx = 0; idx < row->n_names; idx++) {
        if (row->names[idx]) {
            jw_z(&to->out, NULL, row->names[idx]);
        }
    }
    if (row->flags & JSON_NULLABLE) {
        jw_null(&to->out, NULL);
    }
    jw_end_array(&to->out);
}

static void put_limits(struct schema *to, const struct json_field *row, const char *least,
                       const char *most)
{
    if (row->min || least[0] == 'm') {
        jw_i64(&to->out, least, row->min);
    }
    if (row->max > row->min) {
        jw_i64(&to->out, most, row->max);
    }
}

static void put_value(struct schema *to, const struct json_field *row);

static void put_items(struct schema *to, const struct json_field *row)
{
    put_type(to, row, "array");
    if (json_items_min(row)) {
        jw_i64(&to->out, "minItems", json_items_min(row));
    }
    if (row->max) {
        jw_i64(&to->out, "maxItems", row->max);
    }
    if (row->flags & JSON_UNIQUE) {
        jw_bool(&to->out, "uniqueItems", true);
    }
    jw_object(&to->out, "items");
    if (row->kind == JSON_LIST) {
        jw_z(&to->out, "type", "object");
        put_object(to, row->rows, row->n_rows, row->rules);
        if (row->vocabulary) {
            put_list(to, "allOf", row->vocabulary, false);
        }
    } else {
        jw_z(&to->out, "type", "string");
        put_form(to, row->form);
    }
    jw_end_object(&to->out);
}

static void put_pairs(struct schema *to, const struct json_field *row)
{
    struct json_field value = {.flags = row->flags & JSON_NULLABLE};
    jw_z(&to->out, "type", "object");
    if (row->max) {
        jw_i64(&to->out, "maxProperties", row->max);
    }
    jw_object(&to->out, "additionalProperties");
    put_type(to, &value, "string");
    put_form(to, row->form);
    jw_end_object(&to->out);
    if (row->vocabulary) {
        jw_object(&to->out, "propertyNames");
        put_list(to, "enum", row->vocabulary, false);
        jw_end_object(&to->out);
    }
}

static void put_hex(struct schema *to, const struct json_field *row)
{
    char pattern[32];
    put_type(to, row, "string");
    snprintf(pattern, sizeof(pattern), "^[0-9a-f]{%d}$", (int)(2 * row->max));
    jw_z(&to->out, "pattern", pattern);
}

static void put_value(struct schema *to, const struct json_field *row)
{
    switch (row->kind) {
    case JSON_STR:
    case JSON_Z:
        if (row->names) {
            put_words(to, row);
            return;
        }
        if (row->vocabulary) {
            put_list(to, "enum", row->vocabulary, row->flags & JSON_NULLABLE);
            return;
        }
        put_type(to, row, "string");
        put_form(to, row->form);
        return;
    case JSON_I64:
    case JSON_SIZE:
    case JSON_INT:
        put_type(to, row, "integer");
        put_limits(to, row, "minimum", "maximum");
        return;
    case JSON_F64:
        put_type(to, row, "number");
        return;
    case JSON_BOOL:
        put_type(to, row, "boolean");
        return;
    case JSON_WORD:
        put_words(to, row);
        return;
    case JSON_CONST:
        if (row->is) {
            jw_z(&to->out, "const", row->is);
        } else {
            jw_i64(&to->out, "const", row->min);
        }
        return;
    case JSON_HEX:
        put_hex(to, row);
        return;
    case JSON_OBJECT:
        put_type(to, row, "object");
        put_object(to, row->rows, row->n_rows, row->rules);
        return;
    case JSON_LIST:
    case JSON_STRS:
    case JSON_ZS:
        put_items(to, row);
        return;
    case JSON_PAIRS:
        put_pairs(to, row);
        return;
    case JSON_ANY:
    case JSON_HERE:
        return;
    }
}

static void put_required(struct schema *to, const struct json_field *rows, size_t n_rows)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        if (rows[idx].kind == JSON_HERE) {
            put_required(to, rows[idx].rows, rows[idx].n_rows);
        } else if (rows[idx].flags & JSON_REQUIRED) {
            jw_z(&to->out, NULL, rows[idx].key);
        }
    }
}

static bool is_simple(const struct json_field *row)
{
    return row->kind != JSON_OBJECT && row->kind != JSON_LIST;
}

static void put_properties(struct schema *to, const struct json_field *rows, size_t n_rows)
{
    for (size_t idx = 0; idx < n_rows; idx++) {
        const struct json_field *row = &rows[idx];
        bool was_compact = to->out.is_compact;
        if (row->kind == JSON_HERE) {
            put_properties(to, row->rows, row->n_rows);
            continue;
        }
        jw_object(&to->out, row->key);
        to->out.is_compact = is_simple(row);
        if (row->about) {
            jw_z(&to->out, "description", row->about);
        }
        put_value(to, row);
        put_members(to, row->schema);
        jw_end_object(&to->out);
        to->out.is_compact = was_compact;
    }
}

static void put_object(struct schema *to, const struct json_field *rows, size_t n_rows,
                       const char *rules)
{
    bool was_compact = to->out.is_compact;
    jw_bool(&to->out, "additionalProperties", false);
    jw_array(&to->out, "required");
    to->out.is_compact = true;
    put_required(to, rows, n_rows);
    jw_end_array(&to->out);
    to->out.is_compact = was_compact;
    jw_object(&to->out, "properties");
    put_properties(to, rows, n_rows);
    jw_end_object(&to->out);
    put_members(to, rules);
}

void json_schema(struct strbuf *buf, const struct json_document *document,
                 const struct json_vocabulary *vocabulary)
{
    struct schema to = {.vocabulary = vocabulary};
    jw_begin(&to.out, buf, false);
    jw_object(&to.out, NULL);
    jw_z(&to.out, "$schema", DIALECT);
    jw_z(&to.out, "title", document->title);
    if (document->about) {
        jw_z(&to.out, "description", document->about);
    }
    jw_z(&to.out, "type", "object");
    put_object(&to, document->rows, document->n_rows, document->rules);
    jw_end_object(&to.out);
}
