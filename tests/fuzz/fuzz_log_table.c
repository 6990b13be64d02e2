/* SPDX-License-Identifier: Apache-2.0 */
/* A table of any program, CSV or JSON lines: a record is one line of name=value, whatever the cells contain, and the same each time. */
#include "tests/fuzz/fuzz.h"

#include "log/records.h"

#define LINE_BYTES_MAX 65536

/* A blank precedes each name but the first, and is nowhere else. */
static void check_line(struct str line)
{
    bool has_name = true;
    for (size_t idx = 0; idx < line.len; idx++) {
        char c = line.ptr[idx];
        ASSERT(c < '\0' || c >= ' ');
        ASSERT(c != ' ' || has_name);
        has_name = c == '=' || (c != ' ' && has_name);
    }
    ASSERT(has_name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct arena arena;
    static const struct vocabulary *vocabulary;
    CLEANUP(strbuf) struct strbuf line;
    CLEANUP(strbuf) struct strbuf again;
    strbuf_init(&line, LINE_BYTES_MAX);
    strbuf_init(&again, LINE_BYTES_MAX);
    if (!vocabulary) {
        vocabulary = vocabulary_builtin(&arena);
    }
    for (enum record_kind kind = RECORD_CSV; kind <= RECORD_JSONL; kind++) {
        struct records *one = records_new(kind, vocabulary);
        struct records *other = records_new(kind, vocabulary);
        struct str rest = {(const char *)data, size};
        struct str text;
        while (str_next(&rest, '\n', &text)) {
            bool is_record = records_line(one, text, &line);
            ASSERT(records_line(other, text, &again) == is_record);
            ASSERT(str_eq(strbuf_str(&line), strbuf_str(&again)));
            if (is_record) {
                check_line(strbuf_str(&line));
            }
        }
        records_free(one);
        records_free(other);
    }
    return 0;
}
