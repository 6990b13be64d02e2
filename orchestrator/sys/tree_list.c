/* SPDX-License-Identifier: Apache-2.0 */
/* The lists' text. A path with a backslash, LF or CR in it is written as coreutils do: a backslash before the line, and
   \\, \n, \r in the name. */
#include "base/base.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/publish.h"
#include "base/temp.h"
#include "sys/tree.h"

#define READ_BYTES (1u << 20)
#define LINE_MAX_BYTES                                                                             \
    (1 + SHA256_HEX_SIZE + 1 + 2 * TREE_PATH_MAX + 2) /* every byte of the path escaped */

/* ---- one line ---- */

struct list_reader {
    struct arena *arena;
    const char *name;
    bool is_strict;
    size_t digest_bytes; /* 0 until the first line of a list of others */
    size_t n_lines;
    struct {
        struct tree_file *items;
        size_t n;
        size_t n_max;
    } files;
};

/* The path of an escaped line, in place; false for an escape that coreutils do not write. */
static bool unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; from++) {
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        if (*from == '\\') {
            *to++ = '\\';
        } else if (*from == 'n') {
            *to++ = '\n';
        } else if (*from == 'r') {
            *to++ = '\r';
        } else {
            return false;
        }
    }
    *to = '\0';
    return true;
}

static bool needs_escape(const char *path)
{
    return path[strcspn(path, "\\\n\r")] != '\0';
}

/* Relative, with no empty part, no "." and no "..". */
static bool is_clean_path(const char *path)
{
    const char *part = path;
    for (;;) {
        size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[len] == '\0') {
            return true;
        }
        part += len + 1;
    }
}

MUST_CHECK static int line_fail(const struct list_reader *reader, struct err *err, const char *what)
{
    return err_set(err, ERR_PARSE, "%s:%zu: %s", reader->name, reader->n_lines, what);
}

static int read_hex(const struct list_reader *reader, struct str hex, uint8_t *ret_digest,
                    struct err *err)
{
    char lower[SHA256_HEX_SIZE];
    struct err why = {0};
    for (size_t idx = 0; idx < hex.len; idx++) {
        char c = hex.ptr[idx];
        lower[idx] = !reader->is_strict && c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    }
    if (hex_decode((struct str){lower, hex.len}, hex.len / 2, ret_digest, &why) < 0) {
        return line_fail(reader, err, why.msg);
    }
    return 0;
}

static int read_path(const struct list_reader *reader, struct str text, bool is_escaped,
                     char **ret_path, struct err *err)
{
    char *path;
    if (!reader->is_strict) {
        while (str_starts(text, STR_LIT("./"))) {
            text = str_sub(text, 2, text.len);
        }
    }
    if (text.len == 0 || text.len >= (size_t)2 * TREE_PATH_MAX ||
        memchr(text.ptr, '\0', text.len)) {
        return line_fail(reader, err, "expected a path after the digest");
    }
    if (reader->is_strict && memchr(text.ptr, '\r', text.len)) {
        return line_fail(reader, err, "expected \\r in place of a bare carriage return");
    }
    path = arena_strndup(reader->arena, text.ptr, text.len);
    if (is_escaped && !unescape(path)) {
        return line_fail(reader, err, "expected \\\\, \\n or \\r after a backslash in the path");
    }
    if (reader->is_strict && is_escaped != needs_escape(path)) {
        return line_fail(reader, err, "expected a backslash first exactly where the path has one");
    }
    if (strlen(path) >= TREE_PATH_MAX || !is_clean_path(path)) {
        return line_fail(reader, err,
                         "expected a relative path without empty parts, \".\" and \"..\"");
    }
    *ret_path = path;
    return 0;
}

/* How many hex digits the line begins with: the kind of a list of others is seen on its first line. */
static size_t hex_len(const struct list_reader *reader, struct str line)
{
    if (reader->digest_bytes) {
        return 2 * reader->digest_bytes;
    }
    size_t len = str_cspan(line, 0, " ");
    return len;
}

static int read_line(struct list_reader *reader, struct str line, struct err *err)
{
    struct tree_file file = {0};
    bool is_escaped = line.len && line.ptr[0] == '\\';
    char *path = NULL;
    size_t len;
    reader->n_lines++;
    if (!reader->is_strict && line.len && line.ptr[line.len - 1] == '\r') {
        line.len--;
    }
    line = str_sub(line, is_escaped, line.len);
    len = hex_len(reader, line);
    if ((len != MD5_HEX_SIZE - 1 && len != SHA256_HEX_SIZE - 1) || line.len < len + 2 ||
        line.ptr[len] != ' ' ||
        (line.ptr[len + 1] != ' ' && (reader->is_strict || line.ptr[len + 1] != '*'))) {
        return line_fail(reader, err,
                         reader->is_strict ? "expected 64 hex digits, two blanks and a path"
                                           : "expected 32 or 64 hex digits as on the first line, "
                                             "two blanks and a path");
    }
    if (read_hex(reader, str_sub(line, 0, len), file.sha256, err) < 0 ||
        read_path(reader, str_sub(line, len + 2, line.len), is_escaped, &path, err) < 0) {
        return -1;
    }
    reader->digest_bytes = len / 2;
    if (reader->files.n >= TREE_FILES_MAX) {
        return line_fail(reader, err, "more lines than a list may have");
    }
    if (reader->is_strict && reader->files.n &&
        strcmp(reader->files.items[reader->files.n - 1].path, path) >= 0) {
        return line_fail(reader, err, "expected paths in the order of their bytes, each only once");
    }
    file.path = path;
    VEC_PUSH(&reader->files, file);
    return 0;
}

/* ---- whole lists ---- */

static int by_path(const void *a, const void *b)
{
    const struct tree_file *left = a, *right = b;
    return strcmp(left->path, right->path);
}

void tree_list_sort(struct tree_list *list)
{
    if (list->n) {
        qsort(list->files, list->n, sizeof(list->files[0]), by_path);
    }
}

const struct tree_file *tree_list_find(const struct tree_list *list, const char *path)
{
    const struct tree_file wanted = {.path = path};
    return list->n ? bsearch(&wanted, list->files, list->n, sizeof(wanted), by_path) : NULL;
}

static int drop_doubles(struct list_reader *reader, struct err *err)
{
    struct tree_file *files = reader->files.items;
    size_t n = 0;
    for (size_t idx = 0; idx < reader->files.n; idx++) {
        if (n && strcmp(files[n - 1].path, files[idx].path) == 0) {
            if (memcmp(files[n - 1].sha256, files[idx].sha256, SHA256_BYTES) != 0) {
                return err_set(err, ERR_PARSE, "%s: two digests for %.300s", reader->name,
                               files[idx].path);
            }
            continue;
        }
        files[n++] = files[idx];
    }
    reader->files.n = n;
    return 0;
}

static void split_md5(struct list_reader *reader, struct tree_list *list)
{
    list->lacks_sha256 = true;
    list->md5 = arena_alloc_array(reader->arena, MD5_BYTES, list->n, 1);
    for (size_t idx = 0; idx < list->n; idx++) {
        memcpy(list->md5[idx], list->files[idx].sha256, MD5_BYTES);
        memset(list->files[idx].sha256, 0, SHA256_BYTES);
    }
}

static int finish(struct list_reader *reader, struct tree_list *ret_list, struct err *err)
{
    if (!reader->is_strict && reader->files.n) {
        qsort(reader->files.items, reader->files.n, sizeof(*reader->files.items), by_path);
        if (drop_doubles(reader, err) < 0) {
            return -1;
        }
    }
    *ret_list = (struct tree_list){.files = reader->files.items, .n = reader->files.n};
    arena_adopt(reader->arena, reader->files.items);
    reader->files.items = NULL;
    if (reader->digest_bytes == MD5_BYTES) {
        split_md5(reader, ret_list);
    }
    return 0;
}

/* All whole lines of buf; what is left moves to its start. */
static int read_lines(struct list_reader *reader, char *buf, size_t *len, struct err *err)
{
    size_t at = 0;
    const char *end;
    while ((end = memchr(buf + at, '\n', *len - at))) {
        size_t line_len = (size_t)(end - buf) - at;
        if (read_line(reader, (struct str){buf + at, line_len}, err) < 0) {
            return -1;
        }
        at += line_len + 1;
    }
    memmove(buf, buf + at, *len - at);
    *len -= at;
    return 0;
}

/* In pieces, so that the text of a long list is never in memory as a whole. */
static int read_stream(struct list_reader *reader, int fd, char *buf, struct err *err)
{
    size_t len = 0;
    uint64_t total = 0;
    for (;;) {
        size_t got;
        if (fs_fill(fd, buf + len, READ_BYTES - len, reader->name, &got, err) < 0) {
            return -1;
        }
        len += got;
        total += got;
        if (total > TREE_LIST_BYTES_MAX) {
            return err_set(err, ERR_IO, "%s: expected at most %u bytes", reader->name,
                           TREE_LIST_BYTES_MAX);
        }
        if (got == 0) {
            break;
        }
        if (read_lines(reader, buf, &len, err) < 0) {
            return -1;
        }
        if (len > LINE_MAX_BYTES) {
            reader->n_lines++;
            return line_fail(reader, err, "the line is too long");
        }
    }
    if (len && reader->is_strict) {
        return err_set(err, ERR_PARSE, "%s: the last line does not end: cut off", reader->name);
    }
    return len ? read_line(reader, (struct str){buf, len}, err) : 0;
}

static int read_file(struct list_reader *reader, struct tree_list *ret_list, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(free) char *buf = xmalloc(READ_BYTES);
    struct stat info;
    if (fs_open(reader->name, &fd, &info, err) < 0) {
        return -1;
    }
    int result = read_stream(reader, fd, buf, err);
    if (result == 0) {
        result = finish(reader, ret_list, err);
    }
    VEC_RELEASE(&reader->files);
    return result;
}

int tree_list_read(struct arena *arena, const char *path, struct tree_list *ret_list,
                   struct err *err)
{
    struct list_reader reader = {
        .arena = arena, .name = path, .is_strict = true, .digest_bytes = SHA256_BYTES};
    return read_file(&reader, ret_list, err);
}

int tree_sums_read(struct arena *arena, const char *path, struct tree_list *ret_list,
                   struct err *err)
{
    struct list_reader reader = {.arena = arena, .name = path};
    if (read_file(&reader, ret_list, err) < 0) {
        return -1;
    }
    return ret_list->n ? 0 : err_set(err, ERR_PARSE, "%s: names no file", path);
}

/* ---- writing ---- */

struct list_sink {
    struct digest digest;
    int fd;        /* -1: only the digest is wanted */
    bool is_shown; /* on a terminal: names must not steer it */
    const char *name;
    char *buf;
    size_t len;
};

static int flush(struct list_sink *sink, struct err *err)
{
    digest_update(&sink->digest, sink->buf, sink->len);
    if (sink->is_shown) {
        text_plain(sink->buf, sink->len);
    }
    if (sink->fd >= 0 && fs_write_all(sink->fd, sink->buf, sink->len, sink->name, err) < 0) {
        return -1;
    }
    sink->len = 0;
    return 0;
}

static void put_line(struct list_sink *sink, const struct tree_list *list, size_t idx)
{
    const char *path = list->files[idx].path;
    bool is_escaped = needs_escape(path);
    size_t digest_bytes = list->lacks_sha256 ? MD5_BYTES : SHA256_BYTES;
    char *to = sink->buf + sink->len;
    if (is_escaped) {
        *to++ = '\\';
    }
    hex_encode(list->lacks_sha256 ? list->md5[idx] : list->files[idx].sha256, digest_bytes, to);
    to += 2 * digest_bytes;
    *to++ = ' ';
    *to++ = ' ';
    for (const char *c = path; *c; c++) {
        if (*c == '\\' || *c == '\n' || *c == '\r') {
            *to++ = '\\';
            *to++ = (char)(*c == '\n' ? 'n' : *c == '\r' ? 'r' : '\\');
        } else {
            *to++ = *c;
        }
    }
    *to++ = '\n';
    sink->len = (size_t)(to - sink->buf);
}

static int emit(struct list_sink *sink, const struct tree_list *list, uint8_t *ret_sha256,
                struct err *err)
{
    CLEANUP(free) char *buf = xmalloc(READ_BYTES);
    int result = 0;
    digest_start(&sink->digest, DIGEST_SHA256);
    sink->buf = buf;
    for (size_t idx = 0; result == 0 && idx < list->n; idx++) {
        ASSERT(strlen(list->files[idx].path) < TREE_PATH_MAX);
        put_line(sink, list, idx);
        if (sink->len > READ_BYTES - LINE_MAX_BYTES) {
            result = flush(sink, err);
        }
    }
    if (result == 0) {
        result = flush(sink, err);
    }
    struct digest_value value = digest_finish(&sink->digest);
    digest_release(&sink->digest);
    if (result == 0 && ret_sha256) {
        memcpy(ret_sha256, value.sha256, SHA256_BYTES);
    }
    return result;
}

void tree_list_sha256(const struct tree_list *list, uint8_t *ret_sha256)
{
    struct list_sink sink = {.fd = -1, .name = "list"};
    int result = emit(&sink, list, ret_sha256, ERR_IGNORED);
    ASSERT(result == 0);
}

int tree_list_print(const struct tree_list *list, int fd, const char *name, struct err *err)
{
    struct list_sink sink = {.fd = fd, .is_shown = isatty(fd), .name = name};
    return emit(&sink, list, NULL, err);
}

int tree_list_write(const struct tree_list *list, const char *path, uint8_t *ret_sha256,
                    struct err *err)
{
    CLEANUP(temp) struct temp *temp = NULL;
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    if (temp_file(path, 0644, &temp) < 0) {
        return err_errno(err, "create", path);
    }
    struct list_sink sink = {.fd = temp->fd, .name = path};
    return emit(&sink, list, ret_sha256, err) < 0 ? -1
                                                  : publish_file(temp->fd, temp->path, path, err);
}

const char *const TREE_FAULT_NAMES[] = {[TREE_MISSING] = "missing",
                                        [TREE_EXTRA] = "extra",
                                        [TREE_CORRUPT] = "corrupt",
                                        [TREE_UNREADABLE] = "unreadable"};
const struct json_field TREE_DIFFERENCE_ROWS[] = {
    ROW_WORD("fault", struct tree_difference, fault, TREE_FAULT_NAMES, 0),
    ROW("path", struct tree_difference, path, 0),
};
