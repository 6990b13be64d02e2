/* SPDX-License-Identifier: Apache-2.0 */
/* Node sets: many names in one short text, both ways. All memory is the arena's.
   Source of the syntax: ClusterShell's documentation, "Node sets", without its operators, groups, wildcards and steps, and
   Slurm's scontrol(1), "hostnames".
     gpu[01-04,7],login   gpu01 gpu02 gpu03 gpu04 gpu7 login: digits keep their padding
     n[09-100]            n09 n10 ... n100
     rack[1-2]n[1-4]      the right one counts fastest */
#pragma once

#include "base/str.h"

#define HOSTLIST_NAMES_MAX    4096 /* in one set */
#define HOSTLIST_TEXT_MAX     65536
#define HOSTLIST_NAME_MAX     253 /* bytes of a name; Source: RFC 1035 section 2.3.4 */
#define HOSTLIST_BRACKETS_MAX 16  /* in one name */
#define HOSTLIST_DIGITS_MAX   15  /* of a number in brackets; a longer one is text */

struct hostlist {
    /* Each once, in the order in which the text first names them; NUL-terminated. */
    struct str *names;
    size_t n;
};

/* ERR_USAGE says which byte is wrong, what was expected and what was found. A set has at least one name. */
MUST_CHECK int hostlist_expand(struct arena *arena, struct str text, struct hostlist *ret_list,
                               struct err *err);

/* Those names in natural order, folded by their last numbers: "gpu[1-3],login". Two sets of the same names give the same text. */
struct str hostlist_fold(struct arena *arena, const struct str *names, size_t n_names);

/* A host name or an address that is safe in a command or a path: letters, digits, and in the middle also . : - _ */
bool hostlist_is_name(struct str text);
