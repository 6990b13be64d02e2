/* SPDX-License-Identifier: Apache-2.0 */
/* A format as tests write it. */
#pragma once

#include "document.h"
#include "judge/rule.h"
#include "report/vocabulary.h"

/* To be released. */
static inline struct format *format_of(const char *text)
{
    struct format *format = NULL;
    const struct json *root = document(text, vocabulary_builtin(ARENA), ERR);
    assert_string_equal(ERR->msg, "");
    PASSES(format_read(root, ARENA, &format, ERR));
    return format;
}
