/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a document's text a place is. Pure. */
#ifndef CODEC_JSON_REGION_H
#define CODEC_JSON_REGION_H

#include "base/str.h"

/* Lines and columns from 1, columns in code points; end_column is the one after the last. */
struct json_region {
    int64_t line, column, end_line, end_column;
};

/* The value that "$.stacks[2].commands[0].printed" names; of an object or array, its opening line. A place that leads nowhere: the last
   part of it that is there. Keys are compared as they are written. Any text may be given; of one that is no JSON it is some part of it. */
struct json_region json_region_of(struct str text, struct str place);

#endif
