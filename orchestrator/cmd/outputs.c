/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/outputs.h"

#include "base/fs.h"
#include "base/log.h"
#include "cmd/cmd.h"

#define TEXT_BYTES_MAX (1u << 30)

int outputs_check(const struct outputs *outputs, const char *command, struct err *err)
{
    const char *const files[] = {outputs->html,
                                 outputs->svg,
                                 outputs->csv,
                                 outputs->markdown,
                                 outputs->want_json ? "-" : NULL,
                                 outputs->want_sarif ? "-" : NULL,
                                 outputs->want_junit ? "-" : NULL};
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
           !outputs->want_json && !outputs->want_sarif && !outputs->want_junit;
}

int outputs_put(const struct outputs *outputs, outputs_write write, const void *of, bool is_painted,
                struct err *err)
{
    const char *const places[] = {
        [OUTPUT_HTML] = outputs->html,
        [OUTPUT_SVG] = outputs->svg,
        [OUTPUT_CSV] = outputs->csv,
        [OUTPUT_MARKDOWN] = outputs->markdown,
        [OUTPUT_JSON] = outputs->want_json ? "-" : NULL,
        [OUTPUT_SARIF] = outputs->want_sarif ? "-" : NULL,
        [OUTPUT_JUNIT] = outputs->want_junit ? "-" : NULL,
        [OUTPUT_TEXT] = outputs_want_text(outputs) ? "-" : NULL,
    };
    for (size_t form = 0; form < ARRAY_LEN(places); form++) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_BYTES_MAX);
        if (!places[form]) {
            continue;
        }
        if (write(of, (enum output_form)form, &text, err) < 0) {
            return -1;
        }
        if (text.is_full) {
            return err_set(err, ERR_INTERNAL, "more than %zu bytes of text", text.cap_bytes);
        }
        int rc = strcmp(places[form], "-") != 0
                     ? fs_write_atomic(places[form], strbuf_str(&text), err)
                 : form != OUTPUT_TEXT ? cmd_print_document(strbuf_str(&text), err)
                 : is_painted          ? cmd_print_painted(strbuf_str(&text), err)
                                       : cmd_print(strbuf_str(&text), err);
        if (rc < 0) {
            return -1;
        }
        if (strcmp(places[form], "-") != 0) {
            log_line(LOG_INFO, "%s: written", places[form]);
        }
    }
    return 0;
}
