/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/log_forms.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/temp.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/tf_events.h"
#include "load/log_reader.h"

#define TEXT_MAX     (64u << 20)
#define SHORT_MAX    (4u << 20) /* of a log whose lines are made anew */
#define EVENTS_MAX   (1u << 30)
#define PATH_BYTES   512
#define PREFIX_MAX   128
#define PREFIX_MIN   6
#define PREFIX_LINES 64 /* that must all have it, and at least PREFIX_LEAST */
#define PREFIX_LEAST 3

void log_forms_cleanup(struct log_forms *forms)
{
    while (forms->n) {
        fd_cleanup(&forms->fds[--forms->n]);
    }
}

static const char *add(struct log_forms *forms, int fd)
{
    ASSERT(forms->n < ARRAY_LEN(forms->fds));
    forms->fds[forms->n++] = fd;
    return arena_printf(forms->arena, "/proc/self/fd/%d", fd);
}

/* NULL: with the error. */
static const char *put_text(struct log_forms *forms, const struct strbuf *text, struct err *err)
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
    const char *path = add(forms, fd);
    return fs_write_all(fd, all.ptr, all.len, path, err) < 0 ? NULL : path;
}

/* ---- standard input, compressed files, events ---- */

/* What can be read once, spooled. */
static int copy(struct log_forms *forms, const char **path, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(LOG_WINDOW_BYTES);
    CLEANUP(fd) int opened = -1;
    bool is_input = strcmp(*path, "-") == 0;
    const char *name = is_input ? "standard input" : *path;
    size_t len;
    int fd;
    if ((!is_input && log_open(*path, &opened, err) < 0) || temp_spool(&fd, err) < 0) {
        return -1;
    }
    *path = add(forms, fd);
    do {
        if (log_read_window(is_input ? STDIN_FILENO : opened, name, window, &len, err) < 0 ||
            fs_write_all(fd, window, len, "a copy of it", err) < 0) {
            return -1;
        }
    } while (len > 0);
    return 0;
}

int log_forms_lines(struct log_forms *forms, const char **path, struct err *err)
{
    CLEANUP(arena) struct arena own = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct stat st;
    struct str file;
    int fd;
    bool is_once = strcmp(*path, "-") == 0 ||
                   (stat(*path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
    if (is_once && copy(forms, path, err) < 0) {
        return -1;
    }
    if (log_is_compressed(*path) && log_open(*path, &fd, ERR_IGNORED) == 0) {
        *path = add(forms, fd);
    }
    if (!tf_events_is(log_first(&own, *path))) {
        return 0;
    }
    const char *lines =
        fs_read(&own, *path, EVENTS_MAX, &file, err) < 0 || tf_events_read(file, &text, err) < 0
            ? NULL
            : put_text(forms, &text, err);
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
    double value;
    if (!json_is_str(at) && !json_is_null(at) && json_f64(at, &value, ERR_IGNORED) == 0) {
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

const char *log_forms_flatten(struct log_forms *forms, const char *path)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct err why = {0};
    if (json_read_file(path, &doc, &why) < 0) {
        return NULL;
    }
    if (json_is_object(&doc.root) || json_is_array(&doc.root)) {
        flatten(&doc.root, &text);
    }
    return text.len > 0 ? put_text(forms, &text, &why) : NULL;
}

/* ---- a CSV whose quoted fields hold line breaks ---- */

const char *log_forms_join_rows(struct log_forms *forms, const char *path)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct str all = log_text(forms->arena, path, SHORT_MAX);
    bool is_quoted = false;
    bool has_joined = false;
    for (size_t idx = 0; idx < all.len; idx++) {
        char c = all.ptr[idx];
        bool is_break = c == '\n' || c == '\r';
        is_quoted = is_quoted != (c == '"');
        has_joined = has_joined || (is_quoted && is_break);
        strbuf_add_char(&text, is_quoted && is_break ? ' ' : c);
    }
    return has_joined ? put_text(forms, &text, ERR_IGNORED) : NULL;
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

const char *log_forms_strip(struct log_forms *forms, const char *path)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct str rest = log_text(forms->arena, path, SHORT_MAX);
    struct str prefix = find_prefix(rest);
    struct str line;
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
    return put_text(forms, &text, ERR_IGNORED);
}

/* ---- folders ---- */

static bool is_hidden(struct str path)
{
    return str_starts(path, STR_LIT(".")) || str_find(path, STR_LIT("/.")) >= 0;
}

static bool is_result(struct str path)
{
    const char *slash = memrchr(path.ptr, '/', path.len);
    struct str name = slash ? str_of(slash + 1) : path;
    return str_starts(name, STR_LIT("result_")) && str_ends(name, STR_LIT(".txt"));
}

/* Below a folder: the files that are logs by their names, or, where there is none, texts. */
static int add_logs(struct arena *arena, const char *folder, struct opt_list *into,
                    bool *ret_is_round, struct err *err)
{
    struct fs_names files;
    size_t before = into->n;
    *ret_is_round = false;
    if (fs_walk(arena, folder, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n && !*ret_is_round; idx++) {
        *ret_is_round = is_result(str_of(files.items[idx]));
    }
    for (int texts = 0; texts < 2 && into->n == before && !*ret_is_round; texts++) {
        for (size_t idx = 0; idx < files.n; idx++) {
            struct str path = str_of(files.items[idx]);
            if (!is_hidden(path) && !fs_is_dir(fs_join(arena, folder, path.ptr)) &&
                (texts ? str_ends(path, STR_LIT(".txt")) : guess_is_log_name(path))) {
                VEC_PUSH(into, fs_join(arena, folder, path.ptr));
            }
        }
    }
    if (into->n == before && !*ret_is_round) {
        return err_set(
            err, ERR_USAGE,
            "%s: no file in it is a log by its name (*.log, *.out, *.jsonl, logs/*), and "
            "none is a result of MLPerf (result_*.txt); a log is named by its file",
            folder);
    }
    return 0;
}

int log_forms_expand(struct arena *arena, struct opt_list *files, size_t *ret_n_rounds,
                     struct err *err)
{
    struct opt_list all = {0};
    int status = 0;
    *ret_n_rounds = 0;
    for (size_t idx = 0; status == 0 && idx < files->n; idx++) {
        bool is_folder = fs_is_dir(files->items[idx]);
        bool is_round = false;
        status = is_folder ? add_logs(arena, files->items[idx], &all, &is_round, err) : 0;
        *ret_n_rounds += is_round;
        if (status == 0 && (!is_folder || is_round)) {
            VEC_PUSH(&all, files->items[idx]);
        }
    }
    VEC_RELEASE(files);
    *files = all;
    return status;
}
