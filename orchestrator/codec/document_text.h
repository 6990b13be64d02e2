/* SPDX-License-Identifier: Apache-2.0 */
/* A command's document as text for people: a member a line, lists of plain objects as tables. What is null or empty is left
   out. */
#pragma once

#include "base/strbuf.h"

/* In place of the document that out holds. At most n_shown items of a list, and how many more there are. */
void document_to_text(struct strbuf *out, size_t n_shown);
