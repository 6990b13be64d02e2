/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/safetensors.h"

#include "base/fs.h"
#include "core/json_in.h"

#define META_TEXT_BYTES_MAX 65536
#define META_STEP           16 /* texts allocated at a time */

static const struct {
    enum dtype dtype;
    const char *name;
} DTYPES[] = {{DT_F32, "F32"}, {DT_F64, "F64"}, {DT_I64, "I64"}};

const char *st_dtype_text(enum dtype dtype)
{
    for (size_t i = 0; i < ARRAY_LEN(DTYPES); i++) {
        if (DTYPES[i].dtype == dtype) {
            return DTYPES[i].name;
        }
    }
    ASSERT(false);
    return NULL;
}

/* A tensor while it is read: where its data are, relative to the end of the header. */
struct entry {
    struct st_tensor tensor;
    int64_t begin, end;
};

struct parser {
    struct arena *arena;
    struct json_in in;
    struct entry *entries;
    int n_entries, n_max;
    struct st_meta *meta; /* (ST_META_MAX), once there is any */
    int n_meta;
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

static int keep_meta(struct parser *p, struct str key, struct str value, struct err *err)
{
    for (int i = 0; i < p->n_meta; i++) {
        if (str_eq_z(key, p->meta[i].key)) {
            return err_set(err, ERR_PARSE, "double key %.*s", STR_ARG(key));
        }
    }
    if (p->n_meta == ST_META_MAX) {
        return 0;
    }
    if (p->n_meta % META_STEP == 0) {
        struct st_meta *more = arena_array(p->arena, struct st_meta, (size_t)p->n_meta + META_STEP);
        if (p->n_meta > 0) {
            memcpy(more, p->meta, (size_t)p->n_meta * sizeof(*more));
        }
        p->meta = more;
    }
    p->meta[p->n_meta++] = (struct st_meta){key.ptr, value.ptr};
    return 0;
}

/* "__metadata__": texts by name; the first ST_META_MAX are kept. */
static int read_metadata(struct parser *p, struct err *err)
{
    int64_t n_seen = 0;
    bool has_more = true;
    if (json_in_expect(&p->in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        struct str key;
        struct str value;
        if (json_in_more(&p->in, '}', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            return 0;
        }
        if (json_in_text(&p->in, p->arena, META_TEXT_BYTES_MAX, &key, err) < 0 ||
            json_in_expect(&p->in, ':', err) < 0 ||
            json_in_text(&p->in, p->arena, META_TEXT_BYTES_MAX, &value, err) < 0 ||
            keep_meta(p, key, value, err) < 0) {
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
    for (int i = ST_PREFIX_BYTES - 1; i >= 0; i--) {
        value = value << 8 | (unsigned char)ptr[i];
    }
    return value;
}

int st_parse(struct arena *arena, struct str content, struct st_file *ret_file, struct err *err)
{
    if (content.len < ST_PREFIX_BYTES) {
        return err_set(err, ERR_PARSE, "%zu bytes, expected a header size of 8", content.len);
    }
    uint64_t header_bytes = little_endian(content.ptr);
    if (header_bytes > ST_HEADER_BYTES_MAX || header_bytes > content.len - ST_PREFIX_BYTES) {
        return err_set(err, ERR_PARSE,
                       "header size %" PRIu64 ", expected at most %d and %zu left in the file",
                       header_bytes, ST_HEADER_BYTES_MAX, content.len - ST_PREFIX_BYTES);
    }
    const char *data = content.ptr + ST_PREFIX_BYTES + header_bytes;
    struct parser p = {
        .arena = arena,
        .in = {.text = {content.ptr + ST_PREFIX_BYTES, (size_t)header_bytes}},
        .data_bytes = (int64_t)(content.len - ST_PREFIX_BYTES - header_bytes),
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
    struct st_file file = {.n_tensors = p.n_entries, .meta = p.meta, .n_meta = p.n_meta};
    file.tensors = arena_array(arena, struct st_tensor, (size_t)p.n_entries + 1);
    for (int i = 0; i < p.n_entries; i++) {
        file.tensors[i] = p.entries[i].tensor;
        file.tensors[i].data = data + p.entries[i].begin;
        file.tensors[i].bytes = p.entries[i].end - p.entries[i].begin;
    }
    qsort(file.tensors, (size_t)p.n_entries, sizeof(*file.tensors), by_name);
    for (int i = 1; i < p.n_entries; i++) {
        if (strcmp(file.tensors[i - 1].name, file.tensors[i].name) == 0) {
            return err_set(err, ERR_PARSE, "tensor %s occurs twice", file.tensors[i].name);
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

const char *st_find_meta(const struct st_file *file, const char *key)
{
    for (int i = 0; i < file->n_meta; i++) {
        if (strcmp(file->meta[i].key, key) == 0) {
            return file->meta[i].value;
        }
    }
    return NULL;
}
