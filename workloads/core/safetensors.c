/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/safetensors.h"

#include "base/fs.h"
#include "base/strbuf.h"
#include "core/json_in.h"
#include "core/json_out.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PREFIX_BYTES        8
#define META_TEXT_BYTES_MAX 65536

static const struct {
    enum dtype dtype;
    const char *name;
} DTYPES[] = {{DT_F32, "F32"}, {DT_F64, "F64"}, {DT_I64, "I64"}};

/* A tensor while it is read: where its data lie, relative to the end of the header. */
struct entry {
    struct st_tensor tensor;
    int64_t begin, end;
};

struct parser {
    struct arena *arena;
    struct json_in in;
    struct entry *entries;
    int n_entries, n_max;
    int64_t data_bytes;
};

/* ---- the header ---- */

static int read_dtype(struct parser *p, enum dtype *ret_dtype, struct err *err)
{
    struct str text;
    if (json_in_text(&p->in, p->arena, 16, &text, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(DTYPES); i++) {
        if (str_eq_z(text, DTYPES[i].name)) {
            *ret_dtype = DTYPES[i].dtype;
            return 0;
        }
    }
    return err_set(err, ERR_PARSE, "dtype %.*s, expected F32, F64 or I64", STR_ARG(text));
}

static int read_shape(struct parser *p, struct shape *ret_shape, struct err *err)
{
    struct shape shape = {0};
    int64_t n_seen = 0;
    bool has_more = false;
    if (json_in_expect(&p->in, '[', err) < 0) {
        return -1;
    }
    for (;;) {
        if (json_in_more(&p->in, ']', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            break;
        }
        if (shape.n_dims == SHAPE_DIMS_MAX) {
            return err_set(err, ERR_PARSE, "shape of more than %d dimensions", SHAPE_DIMS_MAX);
        }
        if (json_in_whole(&p->in, SHAPE_COUNT_MAX, &shape.dim[shape.n_dims], err) < 0) {
            return -1;
        }
        shape.n_dims++;
    }
    *ret_shape = shape;
    return 0;
}

static int read_offsets(struct parser *p, struct entry *entry, struct err *err)
{
    if (json_in_expect(&p->in, '[', err) < 0 ||
        json_in_whole(&p->in, ST_FILE_BYTES_MAX, &entry->begin, err) < 0 ||
        json_in_expect(&p->in, ',', err) < 0 ||
        json_in_whole(&p->in, ST_FILE_BYTES_MAX, &entry->end, err) < 0) {
        return -1;
    }
    return json_in_expect(&p->in, ']', err);
}

enum field { FIELD_DTYPE, FIELD_SHAPE, FIELD_OFFSETS, FIELD_COUNT };

static int read_field(struct parser *p, struct entry *entry, unsigned *seen, struct err *err)
{
    static const char *const names[FIELD_COUNT] = {"dtype", "shape", "data_offsets"};
    struct str key;
    if (json_in_text(&p->in, p->arena, 32, &key, err) < 0 || json_in_expect(&p->in, ':', err) < 0) {
        return -1;
    }
    int field = 0;
    while (field < FIELD_COUNT && !str_eq_z(key, names[field])) {
        field++;
    }
    if (field == FIELD_COUNT || (*seen >> field & 1U) != 0) {
        return err_set(err, ERR_PARSE, "%s key %.*s", field == FIELD_COUNT ? "unknown" : "double",
                       STR_ARG(key));
    }
    *seen |= 1U << field;
    switch ((enum field)field) {
    case FIELD_DTYPE:
        return read_dtype(p, &entry->tensor.dtype, err);
    case FIELD_SHAPE:
        return read_shape(p, &entry->tensor.shape, err);
    case FIELD_OFFSETS:
        return read_offsets(p, entry, err);
    case FIELD_COUNT:
        break;
    }
    ASSERT(false);
    return -1;
}

static int check_entry(const struct parser *p, const struct entry *entry, struct err *err)
{
    int64_t count = 0;
    if (shape_count_checked(&entry->tensor.shape, &count, err) < 0) {
        return -1;
    }
    int64_t wanted = count * dtype_bytes(entry->tensor.dtype); /* at most 2^43 */
    if (entry->begin > entry->end || entry->end > p->data_bytes) {
        return err_set(err, ERR_PARSE,
                       "data_offsets [%" PRId64 ", %" PRId64 "] in %" PRId64 " bytes of data",
                       entry->begin, entry->end, p->data_bytes);
    }
    if (entry->end - entry->begin != wanted) {
        return err_set(err, ERR_PARSE,
                       "data_offsets hold %" PRId64 " bytes, dtype and shape ask for %" PRId64,
                       entry->end - entry->begin, wanted);
    }
    return 0;
}

static int read_entry(struct parser *p, struct entry *entry, struct err *err)
{
    unsigned seen = 0;
    int64_t n_seen = 0;
    bool has_more = true;
    if (json_in_expect(&p->in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        if (json_in_more(&p->in, '}', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            break;
        }
        if (read_field(p, entry, &seen, err) < 0) {
            return -1;
        }
    }
    if (seen != (1U << FIELD_COUNT) - 1) {
        return err_set(err, ERR_PARSE, "dtype, shape and data_offsets are needed");
    }
    return check_entry(p, entry, err);
}

/* "__metadata__": texts by name. Read for its form, not kept. */
static int read_metadata(struct parser *p, struct err *err)
{
    int64_t n_seen = 0;
    bool has_more = true;
    if (json_in_expect(&p->in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        struct str ignored;
        if (json_in_more(&p->in, '}', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            return 0;
        }
        if (json_in_text(&p->in, p->arena, META_TEXT_BYTES_MAX, &ignored, err) < 0 ||
            json_in_expect(&p->in, ':', err) < 0 ||
            json_in_text(&p->in, p->arena, META_TEXT_BYTES_MAX, &ignored, err) < 0) {
            return -1;
        }
    }
}

static struct entry *new_entry(struct parser *p)
{
    if (p->n_entries == p->n_max) {
        p->n_max = p->n_max == 0 ? 64 : p->n_max * 2;
        struct entry *more = arena_array(p->arena, struct entry, (size_t)p->n_max);
        if (p->n_entries > 0) {
            memcpy(more, p->entries, (size_t)p->n_entries * sizeof(*more));
        }
        p->entries = more;
    }
    return &p->entries[p->n_entries++];
}

static int read_member(struct parser *p, bool *has_metadata, struct err *err)
{
    struct str name;
    size_t at = p->in.at;
    if (json_in_text(&p->in, p->arena, ST_NAME_BYTES_MAX, &name, err) < 0 ||
        json_in_expect(&p->in, ':', err) < 0) {
        return -1;
    }
    if (str_eq_z(name, "__metadata__")) {
        if (*has_metadata) {
            return err_set(err, ERR_PARSE, "byte %zu: double key __metadata__", at);
        }
        *has_metadata = true;
        return read_metadata(p, err) < 0 ? err_wrap(err, "__metadata__") : 0;
    }
    if (name.len == 0 || p->n_entries == ST_TENSORS_MAX) {
        return err_set(err, ERR_PARSE, "byte %zu: %s", at,
                       name.len == 0 ? "empty tensor name" : "more tensors than 65536");
    }
    struct entry *entry = new_entry(p);
    entry->tensor.name = name.ptr;
    if (read_entry(p, entry, err) < 0) {
        return err_wrap(err, "tensor %s", name.ptr);
    }
    return 0;
}

static int read_header(struct parser *p, struct err *err)
{
    int64_t n_seen = 0;
    bool has_more = true;
    bool has_metadata = false;
    if (json_in_expect(&p->in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        if (json_in_more(&p->in, '}', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            return json_in_end(&p->in, err);
        }
        if (read_member(p, &has_metadata, err) < 0) {
            return -1;
        }
    }
}

/* ---- the data ---- */

static int by_offset(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    return (a->end > b->end) - (a->end < b->end);
}

static int by_name(const void *left, const void *right)
{
    const struct st_tensor *a = left;
    const struct st_tensor *b = right;
    return strcmp(a->name, b->name);
}

static int check_layout(const struct parser *p, struct err *err)
{
    int64_t at = 0;
    for (int i = 0; i < p->n_entries; i++) {
        if (p->entries[i].begin != at) {
            return err_set(err, ERR_PARSE,
                           "tensor %s: data begin at %" PRId64 ", expected %" PRId64 " (%s)",
                           p->entries[i].tensor.name, p->entries[i].begin, at,
                           p->entries[i].begin < at ? "they overlap others" : "there is a hole");
        }
        at = p->entries[i].end;
    }
    if (at != p->data_bytes) {
        return err_set(err, ERR_PARSE, "%" PRId64 " bytes follow the last tensor",
                       p->data_bytes - at);
    }
    return 0;
}

static uint64_t little_endian(const char *ptr)
{
    uint64_t value = 0;
    for (int i = PREFIX_BYTES - 1; i >= 0; i--) {
        value = value << 8 | (unsigned char)ptr[i];
    }
    return value;
}

int st_parse(struct arena *arena, struct str content, struct st_file *ret_file, struct err *err)
{
    if (content.len < PREFIX_BYTES) {
        return err_set(err, ERR_PARSE, "%zu bytes, expected a header size of 8", content.len);
    }
    uint64_t header_bytes = little_endian(content.ptr);
    if (header_bytes > ST_HEADER_BYTES_MAX || header_bytes > content.len - PREFIX_BYTES) {
        return err_set(err, ERR_PARSE,
                       "header size %" PRIu64 ", expected at most %d and %zu left in the file",
                       header_bytes, ST_HEADER_BYTES_MAX, content.len - PREFIX_BYTES);
    }
    const char *data = content.ptr + PREFIX_BYTES + header_bytes;
    struct parser p = {
        .arena = arena,
        .in = {.text = {content.ptr + PREFIX_BYTES, (size_t)header_bytes}},
        .data_bytes = (int64_t)(content.len - PREFIX_BYTES - header_bytes),
    };
    if (read_header(&p, err) < 0) {
        return err_wrap(err, "header");
    }
    if (p.n_entries > 0) {
        qsort(p.entries, (size_t)p.n_entries, sizeof(*p.entries), by_offset);
    }
    if (check_layout(&p, err) < 0) {
        return -1;
    }
    struct st_file file = {.n_tensors = p.n_entries};
    file.tensors = arena_array(arena, struct st_tensor, (size_t)p.n_entries + 1);
    for (int i = 0; i < p.n_entries; i++) {
        file.tensors[i] = p.entries[i].tensor;
        file.tensors[i].data = data + p.entries[i].begin;
        file.tensors[i].bytes = p.entries[i].end - p.entries[i].begin;
    }
    qsort(file.tensors, (size_t)p.n_entries, sizeof(*file.tensors), by_name);
    for (int i = 1; i < p.n_entries; i++) {
        if (strcmp(file.tensors[i - 1].name, file.tensors[i].name) == 0) {
            return err_set(err, ERR_PARSE, "tensor %s is there twice", file.tensors[i].name);
        }
    }
    *ret_file = file;
    return 0;
}

int st_read(struct arena *arena, const char *path, struct st_file *ret_file, struct err *err)
{
    struct str content;
    if (fs_read(arena, path, (size_t)ST_FILE_BYTES_MAX, &content, err) < 0) {
        return -1;
    }
    return st_parse(arena, content, ret_file, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

const struct st_tensor *st_find(const struct st_file *file, const char *name)
{
    struct st_tensor key = {.name = name};
    return bsearch(&key, file->tensors, (size_t)file->n_tensors, sizeof(key), by_name);
}

/* ---- writing ---- */

static void write_header(struct strbuf *buf, const struct st_tensor *tensors, int n_tensors)
{
    struct json_out out = {.buf = buf};
    int64_t at = 0;
    json_out_open(&out, '{');
    for (int i = 0; i < n_tensors; i++) {
        const struct st_tensor *tensor = &tensors[i];
        ASSERT(tensor->bytes == shape_count(&tensor->shape) * dtype_bytes(tensor->dtype));
        json_out_key(&out, tensor->name);
        json_out_open(&out, '{');
        for (size_t j = 0; j < ARRAY_LEN(DTYPES); j++) {
            if (DTYPES[j].dtype == tensor->dtype) {
                json_out_put_text(&out, "dtype", DTYPES[j].name);
            }
        }
        json_out_key(&out, "shape");
        json_out_open(&out, '[');
        for (int j = 0; j < tensor->shape.n_dims; j++) {
            json_out_i64(&out, tensor->shape.dim[j]);
        }
        json_out_close(&out, ']');
        json_out_key(&out, "data_offsets");
        json_out_open(&out, '[');
        json_out_i64(&out, at);
        at += tensor->bytes;
        json_out_i64(&out, at);
        json_out_close(&out, ']');
        json_out_close(&out, '}');
    }
    json_out_close(&out, '}');
    while (buf->len % PREFIX_BYTES != 0 && !buf->is_full) {
        strbuf_add_char(buf, ' ');
    }
}

static int write_all(int fd, const char *path, const struct st_tensor *tensors, int n_tensors,
                     struct err *err)
{
    CLEANUP(strbuf) struct strbuf header;
    strbuf_init(&header, ST_HEADER_BYTES_MAX);
    write_header(&header, tensors, n_tensors);
    if (header.is_full) {
        return err_set(err, ERR_USAGE, "%s: header of more than %d bytes", path,
                       ST_HEADER_BYTES_MAX);
    }
    char prefix[PREFIX_BYTES];
    for (int i = 0; i < PREFIX_BYTES; i++) {
        prefix[i] = (char)(header.len >> (8 * i) & 0xFFU);
    }
    if (fs_write_all(fd, prefix, sizeof(prefix), path, err) < 0 ||
        fs_write_all(fd, header.ptr, header.len, path, err) < 0) {
        return -1;
    }
    for (int i = 0; i < n_tensors; i++) {
        if (fs_write_all(fd, tensors[i].data, (size_t)tensors[i].bytes, path, err) < 0) {
            return -1;
        }
    }
    if (fsync(fd) < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: fsync: %s", path, err_errno_text(errno));
    }
    return 0;
}

static int sync_folder_of(struct arena *arena, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return fs_sync_dir(".", err);
    }
    return fs_sync_dir(slash == path ? "/" : arena_strndup(arena, path, (size_t)(slash - path)),
                       err);
}

int st_write(const char *path, const struct st_tensor *tensors, int n_tensors, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (fs_check_target(path, err) < 0) {
        return -1;
    }
    char *temporary = arena_printf(&arena, "%s.tmp.%ld", path, (long)getpid());
    CLEANUP(fd) int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", temporary, err_errno_text(errno));
    }
    if (write_all(fd, path, tensors, n_tensors, err) < 0) {
        unlink(temporary);
        return -1;
    }
    if (rename(temporary, path) < 0) {
        int errnum = errno;
        unlink(temporary);
        return err_set(err, err_code_of_errno(errnum), "%s: %s", path, err_errno_text(errnum));
    }
    return sync_folder_of(&arena, path, err);
}
