/* SPDX-License-Identifier: Apache-2.0 */
/* Text being built, with a cap given at the start. Exceeding the cap is not fatal: it sets `is_full` and leaves the
   text as it was before the append that did not fit. ptr is NUL-terminated and never NULL. */
#pragma once

#include "base/str.h"

struct strbuf {
    char *ptr; /* owned once cap_bytes > 0 */
    size_t len;
    size_t size_bytes;
    size_t cap_bytes;
    bool is_full;
};

extern char STRBUF_NONE[]; /* the empty text */
#define STRBUF(cap) ((struct strbuf){.ptr = STRBUF_NONE, .cap_bytes = (cap)})
void strbuf_init(struct strbuf *buf, size_t cap_bytes);
void strbuf_release(struct strbuf *buf);
CLEANUP_BY(strbuf, struct strbuf, strbuf_release);
void strbuf_clear(struct strbuf *buf);

void strbuf_add(struct strbuf *buf, const void *ptr, size_t len);
void strbuf_add_z(struct strbuf *buf, const char *z);
void strbuf_add_str(struct strbuf *buf, struct str s);
/* Text from outside, so that it cannot steer a terminal (text_plain_line). */
void strbuf_add_plain(struct strbuf *buf, struct str s);
void strbuf_add_char(struct strbuf *buf, char c);
void strbuf_add_le32(struct strbuf *buf, uint32_t value); /* four bytes, the lowest first */
void strbuf_add_i64(struct strbuf *buf, int64_t value);
void strbuf_printf(struct strbuf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The shortest decimal text that reads back as the same double; "null" is never written: value must be finite. */
void strbuf_add_f64(struct strbuf *buf, double value);

/* One shell word for /bin/sh, quoted where it has a sign that a shell might read. */
void shq_append(struct strbuf *buf, struct str word);

static inline struct str strbuf_str(const struct strbuf *buf)
{
    return (struct str){buf->ptr, buf->len};
}
