/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a document's text a place is. Pure. */
#ifndef CODEC_JSON_LINE_H
#define CODEC_JSON_LINE_H

#include "base/str.h"

/* The line, from 1, of what "$.stacks[2].commands[0].printed" names; where it leads nowhere, of the last part that is there. Keys are
   compared as they are written. Any text may be given; of one that is no JSON the line is some line of it. */
int64_t json_line_of(struct str text, struct str place);

#endif
