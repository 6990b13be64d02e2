/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` found in a log (load/measured.h): a row of its table, lines below it, members of its document. */
#pragma once

#include "base/table.h"
#include "load/measured.h"

#define MEASURED_COLUMNS "file|format|>records|>steps|scope|>value|unit|>used|verdict"
void measured_add_row(struct table *table, const struct measured *f);
/* How the number was made, what is unknown about the log, and what it states. */
void measured_text(const struct measured *f, struct strbuf *out);
/* It seems whole, but may still be only a part; the sentence that says so, or NULL. */
const char *measured_lacks_end(const struct measured *f);
/* Into an object that is open. */
void measured_encode(const struct measured *f, struct json_out *out);
