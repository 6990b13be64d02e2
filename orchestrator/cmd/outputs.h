/* SPDX-License-Identifier: Apache-2.0 */
/* One result in several forms at once: files, and standard output for at most one of them. */
#ifndef CMD_OUTPUTS_H
#define CMD_OUTPUTS_H

#include "base/opt.h"
#include "base/strbuf.h"

struct outputs {
    const char *html, *svg, *csv, *markdown; /* files; "-": standard output; NULL: not asked for */
    bool want_json;                          /* on standard output */
};
#define OUTPUTS_OPT_CSV(base)                                                                      \
    {                                                                                              \
        .name = "csv", .kind = OPT_TEXT, .value = "FILE",                                          \
        .help = "write comma-separated values; - is standard output",                              \
        .offset = (base) + offsetof(struct outputs, csv)                                           \
    }
#define OUTPUTS_OPT_JSON(base)                                                                     \
    {                                                                                              \
        .name = "json", .kind = OPT_FLAG, .help = "one JSON document on standard output",          \
        .offset = (base) + offsetof(struct outputs, want_json)                                     \
    }
#define OUTPUTS_OPT_MARKDOWN(base)                                                                 \
    {                                                                                              \
        .name = "markdown", .kind = OPT_TEXT, .value = "FILE",                                     \
        .help = "write tables of Markdown; - is standard output",                                  \
        .offset = (base) + offsetof(struct outputs, markdown)                                      \
    }

/* ERR_USAGE where two are for standard output or for one file. */
MUST_CHECK int outputs_check(const struct outputs *outputs, const char *command, struct err *err);
/* Text for people is printed if nothing else was requested. */
bool outputs_want_text(const struct outputs *outputs);
/* A file is written whole or not at all. */
MUST_CHECK int outputs_put(const char *file, const struct strbuf *text, struct err *err);

#endif
