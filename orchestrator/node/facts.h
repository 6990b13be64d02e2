/* SPDX-License-Identifier: Apache-2.0 */
/* What this node reports about itself, as lines of report/node_facts.h: "= KEY VALUE", or "? KEY WHY" if it is not known. */
#pragma once

#include "base/fs.h"
#include "base/strbuf.h"

#define FACTS_TEXT 4096 /* the most of a small file, a path, a value */

struct facts {
    struct arena arena;
    struct strbuf *out;
    const char *engines; /* names with blanks between; "": all */
};

void facts_put(struct facts *facts, const char *key, const char *value);
void facts_printf(struct facts *facts, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
void facts_unknown(struct facts *facts, const char *key, const char *why);
/* False, and "", if it cannot be read. */
bool facts_line(const char *path, char ret_text[FACTS_TEXT]);
/* Names in a folder with that prefix; none if there is no such folder. */
struct fs_names facts_names(struct facts *facts, const char *folder, const char *prefix);
