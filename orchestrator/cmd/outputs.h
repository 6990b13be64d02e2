/* SPDX-License-Identifier: Apache-2.0 */
/* One result in several forms at once: files, and standard output for at most one of them. */
#pragma once

#include "base/opt.h"
#include "base/strbuf.h"

struct outputs {
    const char *html, *svg, *csv, *markdown; /* files; "-": standard output; NULL: not asked for */
    bool want_json, want_sarif, want_junit;  /* on standard output */
};
#define OUTPUTS_OPT_CSV(T, outputs)                                                                \
    OPT(T, outputs.csv, "csv", "write comma-separated values; - is standard output",               \
        .value = "FILE")
#define OUTPUTS_OPT_HTML(T, outputs)                                                               \
    OPT(T, outputs.html, "html", "write one self-contained page; - is standard output",            \
        .value = "FILE")
#define OUTPUTS_OPT_SVG(T, outputs)                                                                \
    OPT(T, outputs.svg, "svg", "write one picture of one report", .value = "FILE")
#define OUTPUTS_OPT_JSON(T, outputs)                                                               \
    OPT(T, outputs.want_json, "json", "one JSON document on standard output")
#define OUTPUTS_OPT_MARKDOWN(T, outputs)                                                           \
    OPT(T, outputs.markdown, "markdown", "write tables of Markdown; - is standard output",         \
        .value = "FILE")

/* ERR_USAGE where two are for standard output or for one file. */
MUST_CHECK int outputs_check(const struct outputs *outputs, const char *command, struct err *err);
/* Text for people is printed if nothing else was requested. */
bool outputs_want_text(const struct outputs *outputs);

enum output_form {
    OUTPUT_HTML,
    OUTPUT_SVG,
    OUTPUT_CSV,
    OUTPUT_MARKDOWN,
    OUTPUT_JSON,
    OUTPUT_SARIF,
    OUTPUT_JUNIT,
    OUTPUT_TEXT
};
typedef int (*outputs_write)(const void *of, enum output_form form, struct strbuf *text,
                             struct err *err);
/* Each form that was requested; a file is written whole or not at all. is_painted: the text is as cmd_print_painted expects
   it. */
MUST_CHECK int outputs_put(const struct outputs *outputs, outputs_write write, const void *of,
                           bool is_painted, struct err *err);
