/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/said.h"

struct str said_last(struct str text)
{
    struct str line, last = STR_EMPTY;
    while (str_next(&text, '\n', &line)) {
        line = str_trim(line);
        last = line.len ? line : last;
    }
    return last;
}

char *said_shown(struct arena *arena, struct str line)
{
    struct str part = str_sub(line, 0, SAID_SHOWN_MAX);
    char *text = str_z(arena, part);
    text_plain_line(text, part.len);
    return text;
}
