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
#define OUTPUTS_OPT_CSV(T, outputs)                                                                \
    OPT(T, outputs.csv, "csv", "write comma-separated values; - is standard output",               \
        .value = "FILE")
#define OUTPUTS_OPT_JSON(T, outputs)                                                               \
    OPT(T, outputs.want_json, "json", "one JSON document on standard output")
#define OUTPUTS_OPT_MARKDOWN(T, outputs)                                                           \
    OPT(T, outputs.markdown, "markdown", "write tables of Markdown; - is standard output",         \
        .value = "FILE")

/* ERR_USAGE where two are for standard output or for one file. */
MUST_CHECK int outputs_check(const struct outputs *outputs, const char *command, struct err *err);
/* Text for people is printed if nothing else was requested. */
bool outputs_want_text(const struct outputs *outputs);
/* A file is written whole or not at all. */
MUST_CHECK int outputs_put(const char *file, const struct strbuf *text, struct err *err);

#endif
