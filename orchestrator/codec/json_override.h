/* SPDX-License-Identifier: Apache-2.0 */
/* PATH=VALUE on a JSON document: one value is replaced in the text, all other bytes stay as they are. A path is as in our error
   messages, keys and places in arrays, or the "id" of a member instead of its place: stacks[reperf].commands[0].works,
   $.cases[3].batch_per_gpu. All of it except the last key must exist; whether that key is allowed is for the decoder to say.
   VALUE is JSON, else text; if the old value is text, a number or a word is text too. */
#pragma once

#include "base/str.h"

#define JSON_PATH_PARTS_MAX 32

struct json_override {
    struct str path;  /* as given, without "$." */
    struct str was;   /* JSON; ptr NULL: there was none */
    struct str value; /* JSON */
    struct str text;  /* the document with it */
};

struct json_path_part {
    struct str key; /* of an object; ptr NULL: an array's member */
    struct str id;  /* of the member; ptr NULL: by idx */
    int64_t idx;
};

/* Where a value is in a document's text. */
struct json_span {
    size_t from, to;
    bool is_absent; /* if so, from: the end of the object that lacks the key */
    bool is_empty;  /* that object */
};
/* From a value to a part of it; false where it has none. Keys are compared as written. Any text may be given. */
bool json_place_step(struct str text, const struct json_path_part *part, struct json_span *place);

/* ERR_USAGE if it is not a setting. ret_rest: what follows the "=". */
MUST_CHECK int json_path_parse(struct str setting, struct json_path_part *parts, size_t *ret_n,
                               struct str *ret_path, struct str *ret_rest, struct err *err);

/* is_text: if there is no value yet, a number or a word is text. text: a document that json_parse accepts. ERR_USAGE if
   the path leads nowhere. */
MUST_CHECK int json_override(struct arena *arena, struct str text, struct str setting, bool is_text,
                             struct json_override *ret_override, struct err *err);

/* ---- where a path is in the text ---- */

/* Lines and columns from 1, columns in code points; end_column is the one after the last. */
struct json_region {
    int64_t line, column, end_line, end_column;
};

/* The value that "$.stacks[2].commands[0].printed" names; for an object or array, its opening line. For a path that leads
   nowhere, the last part of it that exists. Keys are compared as written. Any text may be given; in text that is not JSON it
   finds some region. */
struct json_region json_region_of(struct str text, struct str place);
