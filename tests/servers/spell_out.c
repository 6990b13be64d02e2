/* SPDX-License-Identifier: Apache-2.0 */
/* spell_out ROOT FILE: a report's manifest as form 1 with all its members, whatever form it is written in. */
#include "base/base.h"

#include "load/load.h"

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text = {0};
    struct report report;
    struct err err = {0};
    strbuf_init(&text, JSON_TEXT_MAX);
    if (argc != 3 || load_report(&arena, argv[1], argv[2], &report, &err) < 0) {
        fprintf(stderr, "spell_out: %s\n", argc == 3 ? err.msg : "expected ROOT FILE");
        return 1;
    }
    json_encode_document(&text, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, &report);
    fwrite(text.ptr, 1, text.len, stdout);
    return 0;
}
