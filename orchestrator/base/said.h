/* SPDX-License-Identifier: Apache-2.0 */
/* What another program said before it failed, for a message of ours. */
#ifndef BASE_SAID_H
#define BASE_SAID_H

#include "base/arena.h"
#include "base/str.h"

#define SAID_SHOWN_MAX 300

/* The last line that is not blank, without blanks around it; ptr NULL: there is none. */
struct str said_last(struct str text);
/* Its first SAID_SHOWN_MAX bytes, and nothing that could steer a terminal. */
char *said_shown(struct arena *arena, struct str line);

#endif
