/* SPDX-License-Identifier: Apache-2.0 */
/* Where a path of a JSON document is in its text. Pure. */
#ifndef CODEC_JSON_REGION_H
#define CODEC_JSON_REGION_H

#include "base/str.h"

/* Lines and columns from 1, columns in code points; end_column is the one after the last. */
struct json_region {
    int64_t line, column, end_line, end_column;
};

/* The value that "$.stacks[2].commands[0].printed" names; for an object or array, its opening line. For a path that leads nowhere, the
   last part of it that exists. Keys are compared as written. Any text may be given; in text that is not JSON it finds some region. */
struct json_region json_region_of(struct str text, struct str place);

#endif
