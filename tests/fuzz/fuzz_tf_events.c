/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an event file, and as the events of one whose checksums are right: refused with a message, or lines of one JSON object
   each, whose last may be cut off. */
#include "tests/fuzz/fuzz.h"

#include "base/crc32c.h"
#include "codec/json.h"
#include "codec/tf_events.h"

#define OUT_BYTES (1u << 20)
#define EVENT_MAX 250

static void check(struct str file, bool has_right_sums)
{
    CLEANUP(strbuf) struct strbuf out = {0};
    struct err err = {0};
    struct str rest;
    struct str line;
    strbuf_init(&out, OUT_BYTES);
    if (tf_events_read(file, &out, &err) < 0) {
        ASSERT(err.code == ERR_PARSE || (!has_right_sums && err.code == ERR_INTEGRITY));
        return;
    }
    rest = strbuf_str(&out);
    while (!out.is_full && memchr(rest.ptr, '\n', rest.len)) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        (void)str_next(&rest, '\n', &line);
        ASSERT(json_parse(line, "line", &doc, &err) == 0);
    }
}

static size_t put_sum(char *out, const char *ptr, size_t len)
{
    uint32_t crc = crc32c(0, ptr, len);
    crc = (crc >> 15 | crc << 17) + 0xa282ead8u;
    memcpy(out, &crc, sizeof(crc)); /* little endian */
    return sizeof(crc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    char *file = xmalloc(size * 17 + 17);
    size_t len = 0;
    check(bytes, false);
    while (bytes.len > 0) { /* a byte says how long the next event is */
        uint64_t n = (unsigned char)bytes.ptr[0] % EVENT_MAX;
        n = n < bytes.len - 1 ? n : bytes.len - 1;
        memcpy(file + len, &n, sizeof(n));
        len += sizeof(n);
        len += put_sum(file + len, file + len - sizeof(n), sizeof(n));
        memcpy(file + len, bytes.ptr + 1, (size_t)n);
        len += (size_t)n;
        len += put_sum(file + len, file + len - n, (size_t)n);
        bytes = str_sub(bytes, 1 + (size_t)n, bytes.len);
    }
    check((struct str){file, len}, true);
    free(file);
    return 0;
}
