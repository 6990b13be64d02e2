/* SPDX-License-Identifier: Apache-2.0 */
/* Node sets: many names in one short text, both ways. All memory is the arena's.
   Source of the syntax: ClusterShell's documentation, "Node sets"; for HOSTLIST_SLURM Slurm's scontrol(1), "hostnames".

     gpu[01-04,7]      gpu01 gpu02 gpu03 gpu04 gpu7: digits keep their padding
     n[0-10/2]         n0 n2 n4 ... n10
     rack[1-2]n[1-4]   the right one counts fastest
     a,b  a b          union          a!b  difference        a&b  intersection       a^b  in one of both alone
     @GROUP @* * gpu?  of a scope: a group's nodes, all nodes, those that match
   From left to right, none binds tighter; "a,!b" is "a!b". */
#ifndef REPORT_HOSTLIST_H
#define REPORT_HOSTLIST_H

#include "base/str.h"

#define HOSTLIST_NAMES_MAX    4096 /* in one set */
#define HOSTLIST_TEXT_MAX     65536
#define HOSTLIST_NAME_MAX     253       /* bytes of a name; Source: RFC 1035 section 2.3.4 */
#define HOSTLIST_BRACKETS_MAX 16        /* in one name */
#define HOSTLIST_DIGITS_MAX   15        /* of a number in brackets; a longer one is text */
#define HOSTLIST_WORK_MAX     (1 << 20) /* names looked at for one text */

struct hostlist {
    struct str
        *names; /* each once, in the order in which the text first names them; NUL-terminated */
    size_t n;
};

/* What groups and wildcards refer to; with a scope, a name outside it is an error. */
struct hostlist_scope {
    const struct str *names;
    size_t n_names;
    void *ctx;
    bool (*is_in_group)(void *ctx, size_t name_idx, struct str group);
};

enum hostlist_syntax {
    HOSTLIST_SET, /* as above */
    HOSTLIST_SLURM /* SLURM_JOB_NODELIST: union only; n[01-100] may grow wider than its first number */
};

/* ERR_USAGE says which byte is wrong, what was expected and what was found. An empty result is not an error here. */
MUST_CHECK int hostlist_expand(struct arena *arena, struct str text, enum hostlist_syntax syntax,
                               const struct hostlist_scope *scope, struct hostlist *ret_list,
                               struct err *err);

/* The shortest text for those names, in natural order: "gpu[1-3],login". Two sets of the same names give the same text. */
struct str hostlist_fold(struct arena *arena, const struct str *names, size_t n_names);

/* A host name or an address that is safe in a command or a path: letters, digits, and in the middle also . : - _ */
bool hostlist_is_name(struct str text);

#endif
