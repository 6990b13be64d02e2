/* SPDX-License-Identifier: Apache-2.0 */
/* A document as tests write it, parsed. */
#pragma once

#include "unit.h"

#include "codec/json.h"

/* Its root, or NULL; it holds until the next document. `context` is what its decoder needs to know (a vocabulary), or NULL. */
static inline const struct json *document(const char *text, const void *context, struct err *err)
{
    static struct json_doc doc;
    static struct json root;
    json_doc_release(&doc);
    if (json_parse(str_of(json_text(text)), "t.json", &doc, err) < 0) {
        return NULL;
    }
    doc.root.context = context;
    root = doc.root;
    return &root;
}
