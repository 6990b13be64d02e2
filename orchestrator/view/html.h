/* SPDX-License-Identifier: Apache-2.0 */
/* HTML and SVG text. Every text from outside goes through html_text: markup characters are escaped, control characters and
   bad UTF-8 become U+FFFD, so that the result is valid in HTML and in XML. Pure; writes into the caller's buffer. */
#pragma once

#include "base/strbuf.h"

#define HTML_BYTES_MAX (256u << 20)

void html_text(struct strbuf *out, struct str text);
/* A style sheet, in one line. */
void html_style(struct strbuf *out, struct str css);

/* `markup` is ours; each {} in it takes the next argument, escaped. As many {} as arguments. */
void html_fill(struct strbuf *out, const char *markup, const struct str *args, size_t n_args);
#define HTML(out, markup, ...)                                                                     \
    html_fill(out, markup, (const struct str[]){__VA_ARGS__},                                      \
              sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))
