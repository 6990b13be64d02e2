/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/log_lines.h"

#include "base/fs.h"
#include "load/log_reader.h"

struct wanted {
    struct arena *arena;
    const int64_t *lines;
    size_t n, next; /* the first that is not found yet */
    int64_t line;   /* that is being read */
    char text[LOG_LINE_SHOWN_MAX];
    size_t len;
    struct str *texts;
};

static void end_line(struct wanted *w)
{
    struct str text = STR_EMPTY;
    for (; w->next < w->n && w->lines[w->next] <= w->line; w->next++) {
        if (!text.ptr) {
            text = str_dup(w->arena, (struct str){w->text, w->len});
        }
        w->texts[w->next] = w->lines[w->next] == w->line ? text : STR_EMPTY;
    }
    w->line++;
    w->len = 0;
}

static void feed(struct wanted *w, const char *ptr, size_t len)
{
    while (len > 0 && w->next < w->n) {
        const char *lf = memchr(ptr, '\n', len);
        size_t part = lf ? (size_t)(lf - ptr) : len;
        size_t room = sizeof(w->text) - w->len;
        if (w->lines[w->next] == w->line) {
            memcpy(w->text + w->len, ptr, part < room ? part : room);
            w->len += part < room ? part : room;
        }
        if (lf) {
            end_line(w);
            part++;
        }
        ptr += part;
        len -= part;
    }
}

int log_lines_read(struct arena *arena, const char *path, const int64_t *lines, size_t n,
                   struct str *ret_texts, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    struct wanted w = {.arena = arena, .lines = lines, .n = n, .line = 1, .texts = ret_texts};
    if (log_open(path, &fd, err) < 0) {
        return -1;
    }
    memset(ret_texts, 0, n * sizeof(ret_texts[0]));
    while (w.next < n) {
        size_t len;
        if (log_read_window(fd, path, window, &len, err) < 0) {
            return -1;
        }
        if (len == 0) {
            end_line(&w);
            return 0;
        }
        feed(&w, window, len);
    }
    return 0;
}
