/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/outputs.h"

#include "base/fs.h"
#include "cmd/cmd.h"

int outputs_check(const struct outputs *outputs, const char *command, struct err *err)
{
    const char *const files[] = {outputs->html, outputs->svg, outputs->csv, outputs->markdown,
                                 outputs->want_json ? "-" : NULL};
    for (size_t idx = 0; idx < ARRAY_LEN(files); idx++) {
        for (size_t at = 0; files[idx] && at < idx; at++) {
            if (files[at] && strcmp(files[at], files[idx]) == 0) {
                return err_set(err, ERR_USAGE, "%s: two forms for %.200s%s", command,
                               strcmp(files[idx], "-") == 0 ? "standard output" : files[idx],
                               outputs->want_json ? " (--json is for standard output)" : "");
            }
        }
    }
    return 0;
}

bool outputs_want_text(const struct outputs *outputs)
{
    return !outputs->html && !outputs->svg && !outputs->csv && !outputs->markdown &&
           !outputs->want_json;
}

int outputs_put(const char *file, const struct strbuf *text, struct err *err)
{
    if (text->is_full) {
        return err_set(err, ERR_INTERNAL, "more than %zu bytes of text", text->cap_bytes);
    }
    return strcmp(file, "-") != 0 ? fs_write_atomic(file, strbuf_str(text), err)
                                  : cmd_print_document(strbuf_str(text), err);
}
