/* SPDX-License-Identifier: Apache-2.0 */
/* PATH=VALUE on a JSON document: one value is replaced in the text, every other byte stays. A path is as in our error messages,
   keys and places in arrays, or the "id" of a member instead of its place: stacks[reperf].commands[0].works, $.cases[3].batch_per_gpu.
   All of it but the last key must be there; whether that key may be there is for the decoder to say. VALUE is JSON, or else text; where
   text stands, a number or a word is text too. */
#ifndef CODEC_JSON_OVERRIDE_H
#define CODEC_JSON_OVERRIDE_H

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

/* ERR_USAGE for a setting that is none. ret_rest: what follows the "=". */
MUST_CHECK int json_path_parse(struct str setting, struct json_path_part *parts, size_t *ret_n,
                               struct str *ret_path, struct str *ret_rest, struct err *err);

/* is_text: where nothing stands yet, a number or a word is text.
   text: a document that json_parse takes. ERR_USAGE where the path leads nowhere. */
MUST_CHECK int json_override(struct arena *arena, struct str text, struct str setting, bool is_text,
                             struct json_override *ret_override, struct err *err);

#endif
