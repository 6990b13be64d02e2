/* SPDX-License-Identifier: Apache-2.0 */
/* "noise BEGIN NONCE\n" output "END NONCE STATUS\n": splits the one stream of a script. Pure. */
#include "base/base.h"

#include "net/ssh_impl.h"

#define HOLD_MAX     (1u << 20)
#define STATUS_CHARS 4 /* "255\n" */

void stream_init(struct ssh_stream *stream)
{
    *stream = (struct ssh_stream){.exit_status = -1};
    strbuf_init(&stream->hold, HOLD_MAX);
    strbuf_init(&stream->noise, SSH_NOISE_MAX);
}

void stream_release(struct ssh_stream *stream)
{
    strbuf_release(&stream->hold);
    strbuf_release(&stream->noise);
}

static void drop_front(struct strbuf *buf, size_t len)
{
    memmove(buf->ptr, buf->ptr + len, buf->len - len + 1);
    buf->len -= len;
}

static void give(struct ssh_stream *stream, size_t len, proc_output_fn on_output, void *ctx)
{
    if (len) {
        on_output(ctx, stream->hold.ptr, len);
        drop_front(&stream->hold, len);
    }
}

void stream_take_noise(struct ssh_stream *stream, struct str bytes)
{
    size_t left = SSH_NOISE_MAX - stream->noise.len - 1;
    strbuf_add(&stream->noise, bytes.ptr, bytes.len < left ? bytes.len : left);
}

static void add_noise(struct ssh_stream *stream, size_t len)
{
    stream_take_noise(stream, (struct str){stream->hold.ptr, len});
    drop_front(&stream->hold, len);
}

static void look_for_begin(struct ssh_stream *stream, const char *nonce)
{
    char mark[sizeof("BEGIN \n") + 2 * (size_t)SSH_NONCE_BYTES];
    int len = snprintf(mark, sizeof(mark), "BEGIN %s\n", nonce);
    int64_t at = str_find(strbuf_str(&stream->hold), (struct str){mark, (size_t)len});
    if (at >= 0) {
        add_noise(stream, (size_t)at);
        drop_front(&stream->hold, (size_t)len);
        stream->has_begun = true;
    } else if (stream->hold.len > (size_t)len) {
        add_noise(stream, stream->hold.len - (size_t)len);
    }
}

enum status { STATUS_CUT, STATUS_GOOD, STATUS_NONE };

/* "STATUS\n" after the mark; STATUS_CUT if it is incomplete, STATUS_NONE if it is not a status. */
static enum status read_status(struct str rest, int *ret_status)
{
    int64_t status;
    size_t len = 0;
    while (len < rest.len && len < STATUS_CHARS && rest.ptr[len] != '\n') {
        len++;
    }
    if (len == STATUS_CHARS) {
        return STATUS_NONE;
    }
    if (len == rest.len) {
        return STATUS_CUT;
    }
    if (str_to_i64(str_sub(rest, 0, len), 0, 255, &status, ERR_IGNORED) < 0) {
        return STATUS_NONE;
    }
    *ret_status = (int)status;
    return STATUS_GOOD;
}

/* How many bytes at the end may be the beginning of the mark: only these are held back, so that a complete line is seen at
   once. */
static size_t held_back(struct str text, struct str mark)
{
    size_t len = text.len < mark.len ? text.len : mark.len;
    while (len > 0 && memcmp(text.ptr + text.len - len, mark.ptr, len) != 0) {
        len--;
    }
    return len;
}

static void look_for_end(struct ssh_stream *stream, const char *nonce, proc_output_fn on_output,
                         void *ctx)
{
    char text[sizeof("END  ") + 2 * (size_t)SSH_NONCE_BYTES];
    int len = snprintf(text, sizeof(text), "END %s ", nonce);
    struct str mark = {text, (size_t)len};
    int64_t at;
    while ((at = str_find(strbuf_str(&stream->hold), mark)) >= 0) {
        give(stream, (size_t)at, on_output, ctx);
        enum status status =
            read_status(str_sub(strbuf_str(&stream->hold), (size_t)len, stream->hold.len),
                        &stream->exit_status);
        stream->has_ended = status == STATUS_GOOD;
        if (status != STATUS_NONE) {
            return;
        }
        /* Not our end mark; if kept, it would grow for ever. */
        give(stream, (size_t)len, on_output, ctx);
    }
    give(stream, stream->hold.len - held_back(strbuf_str(&stream->hold), mark), on_output, ctx);
}

void stream_take(struct ssh_stream *stream, const char *nonce, struct str bytes,
                 proc_output_fn on_output, void *ctx)
{
    if (stream->has_ended) {
        return; /* of a process that the script left behind */
    }
    strbuf_add_str(&stream->hold, bytes);
    ASSERT(!stream->hold.is_full);
    if (!stream->has_begun) {
        look_for_begin(stream, nonce);
    }
    if (stream->has_begun) {
        look_for_end(stream, nonce, on_output, ctx);
    }
}

void stream_finish(struct ssh_stream *stream, proc_output_fn on_output, void *ctx)
{
    if (stream->has_begun && !stream->has_ended) {
        give(stream, stream->hold.len, on_output, ctx);
    } else if (!stream->has_begun) {
        add_noise(stream, stream->hold.len);
    }
}

const char *stream_noise(const struct ssh_stream *stream, struct arena *arena)
{
    enum { SHOWN_MAX = 160 };
    struct str text = str_trim(strbuf_str(&stream->noise));
    if (!text.len) {
        return "";
    }
    char *line = arena_printf(arena, "; it printed: %.*s",
                              (int)(text.len < SHOWN_MAX ? text.len : SHOWN_MAX), text.ptr);
    for (char *c = line; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) {
            *c = ' ';
        }
    }
    return line;
}
