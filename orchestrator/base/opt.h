/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options from one table: parsing, help, man-page lines and shell completion all read the same rows. Read are
   --name VALUE, --name=VALUE and -x VALUE; a share is "5%" or "5", from 0 to under 100 %, and stored as 0.05; -- ends options;
   flags may come before, between and after operands. */
#pragma once

#include "base/err.h"
#include "base/vec.h"

enum opt_kind { OPT_FLAG, OPT_TEXT, OPT_I64, OPT_F64, OPT_SHARE, OPT_LIST };

struct opt_list {
    const char **items;
    size_t n;
    size_t n_max;
};
CLEANUP_BY(opt_list, struct opt_list, VEC_RELEASE);

struct opt {
    const char *name; /* without the dashes */
    char letter;      /* or 0 */
    enum opt_kind kind;
    const char *value; /* what to call the value in help: "DIR" */
    const char *help;  /* one line */
    /* The place of a bool, const char *, int64_t, double or struct opt_list in the command's argument struct. */
    size_t offset;
    int64_t min, max; /* OPT_I64 */
};

/* A row, whose kind follows from the member's C type (OPT_F64 has none: a double is a share): OPT(STRUCT, MEMBER, "name",
   "help"[, .letter = 'n'][, .value = "N"][, .min = ...]) */
/* clang-format off */
#define OPT_KIND(expr)                                                                             \
    _Generic((expr), bool: OPT_FLAG, const char *: OPT_TEXT, int64_t: OPT_I64, double: OPT_SHARE,  \
             struct opt_list: OPT_LIST)
#define OPT(T, member, of_name, ...)                                                               \
    {.name = (of_name), .kind = OPT_KIND(((T *)NULL)->member), .offset = offsetof(T, member),      \
     .help = __VA_ARGS__}
/* clang-format on */
#define OPT_END                                                                                    \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Fills the members of *args that the table names and puts the operands into ret_operands (its items
   are borrowed from argv; VEC_RELEASE it). */
MUST_CHECK int opt_parse(const struct opt *opts, int argc, char **argv, void *args,
                         struct opt_list *ret_operands, struct err *err);

/* Its lists. */
void opt_release(const struct opt *opts, void *args);

/* "  --name VALUE   help" lines. */
void opt_print_help(FILE *out, const struct opt *opts);
