/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold lines in another form: compressed, TensorBoard's events, one JSON document, a CSV whose fields hold line breaks, lines behind a logger's prefix.
   Each becomes a file of lines that is gone when its descriptor is closed; all that reads logs sees lines. */
#include "base/base.h"

#include "cmd/measure_parts.h"

#include "base/fs.h"
#include "base/temp.h"
#include "codec/json.h"
#include "codec/tf_events.h"
#include "load/log_reader.h"

#define TEXT_MAX     (64u << 20)
#define EVENTS_MAX   (1u << 30)
#define PATH_BYTES   512
#define PREFIX_MAX   128
#define PREFIX_MIN   6
#define PREFIX_LINES 64 /* that must all have it, and at least PREFIX_LEAST */
#define PREFIX_LEAST 3

/* NULL: with the error. */
static const char *put_text(struct spools *spools, const struct strbuf *text, struct err *err)
{
    struct str all = strbuf_str(text);
    int fd;
    if (text->is_full) {
        (void)!err_set(err, ERR_PARSE, "more than %u bytes", TEXT_MAX);
        return NULL;
    }
    if (temp_spool(&fd, err) < 0) {
        return NULL;
    }
    const char *path = spools_add(spools, fd);
    return fs_write_all(fd, all.ptr, all.len, path, err) < 0 ? NULL : path;
}

/* ---- compressed ---- */

/* Whether its first bytes are those of such a file. */
static bool begins_as(const char *path, bool (*is)(struct str text))
{
    struct err ignored = {0};
    CLEANUP(fd) int fd = -1;
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    size_t len = 0;
    return log_open(path, &fd, &ignored) == 0 &&
           log_read_window(fd, path, window, &len, &ignored) == 0 && is((struct str){window, len});
}

const char *measure_decompress(struct spools *spools, const char *path)
{
    struct err why = {0};
    int fd;
    return log_is_compressed(path) && log_open(path, &fd, &why) == 0 ? spools_add(spools, fd)
                                                                     : NULL;
}

int measure_events(struct spools *spools, const char **path, struct err *err)
{
    CLEANUP(arena) struct arena own = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct str file;
    if (!begins_as(*path, tf_events_is)) {
        return 0;
    }
    const char *lines =
        fs_read(&own, *path, EVENTS_MAX, &file, err) < 0 || tf_events_read(file, &text, err) < 0
            ? NULL
            : put_text(spools, &text, err);
    if (!lines) {
        return err_wrap(err, "%s", *path);
    }
    *path = lines;
    return 0;
}

/* ---- one JSON document ---- */

/* A place in the document, and how much of the path leads to it. */
struct json_place {
    struct json at;
    size_t path_len;
};

static void put_scalar(struct strbuf *out, const struct json *at, struct str path)
{
    struct err ignored = {0};
    double value;
    if (!json_is_str(at) && !json_is_null(at) && json_f64(at, &value, &ignored) == 0) {
        strbuf_printf(out, "%.*s: %.17g\n", STR_ARG(path), value);
    }
}

/* Each number on a line of its own, behind the names that lead to it: "metric.throughput: 12.5". */
static void flatten(const struct json *root, struct strbuf *out)
{
    CLEANUP(free) struct json_place *stack = xcalloc(JSON_DEPTH_MAX + 1, sizeof(*stack));
    char path[PATH_BYTES];
    size_t depth = 0;
    size_t len = 0;
    bool more = json_first(root, &stack[0].at);
    while (!out->is_full && (more || depth > 0)) {
        if (!more) {
            depth--;
            more = json_next(&stack[depth].at);
            continue;
        }
        struct json *at = &stack[depth].at;
        len = stack[depth].path_len;
        if (at->key && len + strlen(at->key) + 2 < sizeof(path)) {
            len +=
                (size_t)snprintf(path + len, sizeof(path) - len, "%s%s", len ? "." : "", at->key);
        }
        bool is_inner = json_is_object(at) || json_is_array(at);
        if (is_inner && depth < JSON_DEPTH_MAX) {
            stack[depth + 1].path_len = len;
            more = json_first(at, &stack[depth + 1].at);
            if (more) {
                depth++;
                continue;
            }
        } else if (!is_inner) {
            put_scalar(out, at, (struct str){path, len});
        }
        more = json_next(at);
    }
}

const char *measure_flatten(struct spools *spools, const char *path)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct err why = {0};
    if (json_read_file(path, &doc, &why) < 0) {
        return NULL;
    }
    struct json root = json_root(&doc);
    if (json_is_object(&root) || json_is_array(&root)) {
        flatten(&root, &text);
    }
    return text.len > 0 ? put_text(spools, &text, &why) : NULL;
}

/* ---- a CSV whose quoted fields hold line breaks ---- */

const char *measure_join_rows(struct spools *spools, const struct log_head *head)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct err why = {0};
    bool is_quoted = false;
    bool has_joined = false;
    if (!head->is_whole || !memchr(head->ptr, '"', head->len)) {
        return NULL;
    }
    for (size_t idx = 0; idx < head->len; idx++) {
        char c = head->ptr[idx];
        bool is_break = c == '\n' || c == '\r';
        is_quoted = is_quoted != (c == '"');
        has_joined = has_joined || (is_quoted && is_break);
        strbuf_add_char(&text, is_quoted && is_break ? ' ' : c);
    }
    return has_joined ? put_text(spools, &text, &why) : NULL;
}

/* ---- a prefix ---- */

/* How much of the line is like the prefix, whatever its numbers: bytes of both. */
static void match_prefix(struct str prefix, struct str line, size_t *ret_of_prefix,
                         size_t *ret_of_line)
{
    size_t i = 0;
    size_t j = 0;
    while (i < prefix.len && j < line.len) {
        if (is_digit(prefix.ptr[i]) && is_digit(line.ptr[j])) {
            i = str_span(prefix, i, DIGITS);
            j = str_span(line, j, DIGITS);
        } else if (prefix.ptr[i] == line.ptr[j]) {
            i++;
            j++;
        } else {
            break;
        }
    }
    *ret_of_prefix = i;
    *ret_of_line = j;
}

/* What all lines begin with, but for its numbers, up to a blank; empty if there is nothing of the kind. */
static struct str find_prefix(struct str text)
{
    struct str line;
    struct str prefix = STR_EMPTY;
    size_t n = 0;
    while (n < PREFIX_LINES && str_next(&text, '\n', &line)) {
        size_t of_line;
        size_t len;
        if (str_trim(line).len == 0) {
            continue;
        }
        n++;
        if (n == 1) {
            prefix = str_sub(line, 0, PREFIX_MAX);
            continue;
        }
        match_prefix(prefix, line, &len, &of_line);
        prefix.len = len;
    }
    prefix = str_rcut(prefix, 0, " ");
    return n >= PREFIX_LEAST && prefix.len >= PREFIX_MIN ? prefix : STR_EMPTY;
}

const char *measure_strip(struct spools *spools, const struct log_head *head)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct str rest = {head->ptr, head->len};
    struct str prefix = head->is_whole ? find_prefix(rest) : STR_EMPTY;
    struct str line;
    struct err why = {0};
    if (prefix.len == 0) {
        return NULL;
    }
    while (str_next(&rest, '\n', &line)) {
        size_t of_prefix;
        size_t of_line;
        match_prefix(prefix, line, &of_prefix, &of_line);
        strbuf_add_str(&text, of_prefix == prefix.len ? str_sub(line, of_line, line.len) : line);
        strbuf_add_char(&text, '\n');
    }
    return put_text(spools, &text, &why);
}
