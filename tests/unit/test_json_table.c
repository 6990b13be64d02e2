/* SPDX-License-Identifier: Apache-2.0 */
/* One table: what it writes it reads back, what it refuses, and the schema that it gives. */
#include "unit.h"

#include <math.h>

#include "codec/json_table.h"
#include "document.h"

enum colour { COLOUR_NONE, COLOUR_RED, COLOUR_BLUE };
static const char *const COLOURS[] = {NULL, "red", "blue"};

struct part {
    struct str name;
    int64_t size_bytes;
};

struct place {
    struct str town;
};

struct thing {
    struct str name, why;
    int64_t count, size_bytes;
    double rate;
    bool is_on, has_digest;
    enum colour colour;
    uint8_t digest[4];
    struct place place;
    struct place home;
    struct part *parts;
    size_t n_parts;
    struct str *tags;
    size_t n_tags;
    struct str (*env)[2];
    size_t n_env;
    const struct part *best; /* only written */
};

static int check_tag(const struct json *at, const char *key, struct str value, struct err *err)
{
    return value.len ? 0 : json_fail(at, err, "%s: an empty tag", key);
}

static int check_part(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct part *part = out;
    return str_eq_z(part->name, "bad") ? json_fail(at, err, "a bad part") : 0;
}

static void put_double(struct json_out *out, const char *key, const void *of)
{
    const struct thing *thing = of;
    jw_i64(out, key, 2 * thing->count);
}

static const struct json_form TAG = {.pattern = "^.+$", .max = 9, .check = check_tag};
static const struct json_field PART_ROWS[] = {
    ROW("name", struct part, name, JSON_REQUIRED),
    ROW("bytes", struct part, size_bytes, JSON_REQUIRED | JSON_NULLABLE | JSON_MINUS),
};
static const struct json_field PLACE_ROWS[] = {ROW("town", struct place, town, JSON_REQUIRED)};
static const struct json_field MORE_ROWS[] = {
    ROW("rate", struct thing, rate, JSON_NULLABLE),
    ROW("on", struct thing, is_on, JSON_OMIT, .about = "a switch"),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("name", struct thing, name, JSON_REQUIRED),
    ROW("why", struct thing, why, JSON_NULLABLE | JSON_BLANK),
    ROW("count", struct thing, count, JSON_REQUIRED, .min = 1, .max = 9),
    ROW("bytes", struct thing, size_bytes, JSON_OMIT | JSON_MINUS),
    ROW_HERE(struct thing, name, MORE_ROWS),
    ROW_WORD("colour", struct thing, colour, COLOURS, JSON_REQUIRED | JSON_NULLABLE),
    ROW_HEX("digest", struct thing, digest, has_digest, JSON_OMIT),
    ROW_OBJECT("place", struct thing, place, PLACE_ROWS, JSON_REQUIRED | JSON_NULLABLE),
    ROW_OBJECT("home", struct thing, home, PLACE_ROWS, JSON_OMIT),
    ROW_LIST("parts", struct thing, parts, n_parts, PART_ROWS, JSON_REQUIRED, .max = 2,
             .check = check_part),
    ROW_STRS("tags", struct thing, tags, n_tags, JSON_OMIT, .form = &TAG),
    ROW_PAIRS("env", struct thing, env, n_env, JSON_REQUIRED),
    ROW_VIA("best", struct thing, best, name, JSON_OMIT | JSON_UNREAD),
    ROW_OUT("double", JSON_I64, put_double, JSON_REQUIRED),
};
static const struct json_document DOCUMENT = {
    .file = "thing.json", .title = "a thing", .rows = ROWS, .n_rows = ARRAY_LEN(ROWS)};

static int decode(struct arena *arena, const char *text, struct thing *ret, struct err *err)
{
    const struct json *root = document(text, NULL, err);
    *ret = (struct thing){.rate = (double)NAN};
    return root ? json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), ret, err) : -1;
}

#define FULL                                                                                       \
    "{\n  'schema_version': 1,\n  'name': 'a',\n  'why': null,\n  'count': 3,\n  'bytes': 0,\n  "  \
    "'rate': 0.5,\n  'on': true,\n  'colour': 'blue',\n  'digest': '00ff10a0',\n  'place': {\n   " \
    " 'town': 'Ulm'\n  },\n  'parts': [\n    {\n      'name': 'x',\n      'bytes': null\n    "     \
    "},\n    {\n      'name': 'y',\n      'bytes': 7\n    }\n  ],\n  'tags': [\n    't'\n  ],\n  " \
    "'env': {\n    'A': '1',\n    'B': ''\n  },\n  'double': 6\n}\n"
#define BARE                                                                                       \
    "{\n  'schema_version': 1,\n  'name': 'a',\n  'why': null,\n  'count': 9,\n  'rate': null,\n " \
    " 'colour': null,\n  'place': null,\n  'parts': [],\n  'env': {},\n  'double': 18\n}\n"

TEST(what_is_written_is_read_back)
{
    static const char *const TEXTS[] = {FULL, BARE};
    for (EACH(row, TEXTS)) {
        CLEANUP(strbuf) struct strbuf again = STRBUF(1 << 16);
        bool is_bare = row > TEXTS;
        struct thing thing;
        PASSES(decode(ARENA, *row, &thing, ERR));
        json_encode_document(&again, ROWS, ARRAY_LEN(ROWS), &thing);
        assert_string_equal(again.ptr, json_text(*row));
        assert_true(thing.size_bytes == (is_bare ? -1 : 0));
        assert_true(thing.n_parts == (is_bare ? 0 : 2) && !thing.home.town.ptr);
    }
}

TEST(a_pointer_is_followed_when_writing)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    const struct part best = {.name = STR_LIT("w")};
    const struct thing thing = {.name = STR_LIT("a"), .count = 1, .best = &best};
    json_encode_document(&text, ROWS, ARRAY_LEN(ROWS), &thing);
    assert_non_null(strstr(text.ptr, json_text("'best': 'w'")));
}

TEST(what_a_row_forbids_is_refused_with_its_place)
{
#define WITH(more)                                                                                 \
    "{'schema_version':1,'name':'a','count':3,'colour':null,'place':null,'double':0,'env':{}"      \
    "," more "}"
    static const char *const WRONG[][2] = {
        {WITH("'parts':[],'x':1"), "$"},
        {WITH("'parts':null"), "$.parts"},
        {WITH("'parts':[{'name':'bad','bytes':1}]"), "$.parts[0]"},
        {WITH("'parts':[{'name':'x'}]"), "$.parts[0]"},
        {WITH("'parts':[1,2,3]"), "$.parts"},
        {WITH("'parts':[],'digest':'0'"), "digest"},
        {WITH("'parts':[],'tags':['']"), "tags"},
        {WITH("'parts':[],'home':{'town':1}"), "$.home.town"},
        {WITH("'parts':[],'on':2"), "$.on"},
        {"{'schema_version':2}", "$.schema_version"},
        {"{'schema_version':1}"},
        {"{'schema_version':1,'name':'a','count':10}", "$.count"},
        {"{'schema_version':1,'name':'a','count':1,'colour':'green'}", "$.colour"},
        {"[]"},
    };
    for (EACH(row, WRONG)) {
        struct thing thing;
        FAILS_WITH(decode(ARENA, (*row)[0], &thing, ERR), ERR_MANIFEST, (*row)[1] ? (*row)[1] : "");
    }
}

TEST(the_schema_says_the_same)
{
    static const char *const SAID[] = {
        "'title': 'a thing'",
        "'additionalProperties': false",
        "'required': ['schema_version','name','count','colour','place','parts','env','double']",
        "'schema_version': {'const':1}",
        "'name': {'type':'string'}",
        "'why': {'type':['string','null']}",
        "'count': {'type':'integer','minimum':1,'maximum':9}",
        "'rate': {'type':['number','null']}",
        "'on': {'description':'a switch','type':'boolean'}",
        "'colour': {'enum':['red','blue',null]}",
        "'digest': {'type':'string','pattern':'^[0-9a-f]{8}$'}",
        "'tags': "
        "{'type':'array','minItems':1,'items':{'type':'string','pattern':'^.+$','maxLength':9}}",
        "'env': {'type':'object','additionalProperties':{'type':'string'}}",
        "'maxItems': 2",
        "'double': {'type':'integer','minimum':0}",
    };
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    CLEANUP(json_doc) struct json_doc doc = {0};
    json_schema(&text, &DOCUMENT, NULL);
    PASSES(json_parse(strbuf_str(&text), "thing.json", &doc, ERR));
    for (EACH(said, SAID)) {
        assert_non_null(strstr(text.ptr, json_text(*said)));
    }
}
