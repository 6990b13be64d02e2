/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/meta_mat.h"

#include <zlib.h>

#include "codec/proto.h"

#define HEADER_BYTES 128
#define FIELDS_MAX   64
#define GUESS_BYTES  (1u << 16)
#define TEXT_BYTES   116

static const char MAGIC[4] = {0, 1, 'I', 'M'}; /* version 1.0, little endian */

/* Types of data elements, and classes of arrays. */
enum { MI_INT8 = 1, MI_UINT8, MI_INT16, MI_UINT16, MI_INT32, MI_UINT32, MI_DOUBLE = 9 };
enum { MI_MATRIX = 14, MI_COMPRESSED = 15, MI_UTF8 = 16 };
enum { MX_STRUCT = 2, MX_CHAR = 4, MX_DOUBLE = 6 };

struct element {
    uint32_t type;
    struct str bytes;
};

static int cut(struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "meta.mat: an element is truncated");
}

/* Small elements have size and type in four bytes and up to four of data; others are padded to 8, compressed ones are not. */
static int next_element(struct str *rest, struct element *ret_element, struct err *err)
{
    uint32_t len;
    if (rest->len < 8) {
        return cut(err);
    }
    uint32_t type = (uint32_t)little_endian(rest->ptr, 4);
    if (type >> 16) {
        len = type >> 16;
        if (len > 4) {
            return cut(err);
        }
        *ret_element = (struct element){type & 0xFFFF, str_sub(*rest, 4, len)};
        *rest = str_sub(*rest, 8, SIZE_MAX);
        return 0;
    }
    len = (uint32_t)little_endian(rest->ptr + 4, 4);
    if (len > rest->len - 8) {
        return cut(err);
    }
    *ret_element = (struct element){type, str_sub(*rest, 8, len)};
    *rest = str_sub(*rest, 8 + (type == MI_COMPRESSED ? len : ((size_t)len + 7) / 8 * 8), SIZE_MAX);
    return 0;
}

struct matrix {
    uint32_t class;
    uint64_t n; /* of its elements */
    struct str name;
    struct str rest; /* after the name */
};

/* An array's flags, dimensions and name. No bytes at all are an empty array. */
static int open_matrix(const struct element *element, struct matrix *ret_matrix, struct err *err)
{
    struct element flags, dims, name;
    struct matrix matrix = {.n = 1, .rest = element->bytes};
    if (element->type != MI_MATRIX) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: element of type %u, expected an array",
                       element->type);
    }
    if (next_element(&matrix.rest, &flags, err) < 0 || next_element(&matrix.rest, &dims, err) < 0 ||
        next_element(&matrix.rest, &name, err) < 0) {
        return -1;
    }
    if (flags.bytes.len != 8 || dims.bytes.len < 8 || dims.bytes.len % 4) {
        return cut(err);
    }
    matrix.class = (uint32_t)little_endian(flags.bytes.ptr, 4) & 0xFF;
    matrix.name = name.bytes;
    for (size_t idx = 0; idx < dims.bytes.len; idx += 4) {
        if (__builtin_mul_overflow(matrix.n, (uint32_t)little_endian(dims.bytes.ptr + idx, 4),
                                   &matrix.n)) {
            return cut(err);
        }
    }
    *ret_matrix = matrix;
    return 0;
}

/* A whole number, stored as whatever type is shortest. */
static int read_number(const struct element *element, int64_t *ret_value, struct err *err)
{
    struct matrix matrix;
    struct element data;
    if (open_matrix(element, &matrix, err) < 0 || next_element(&matrix.rest, &data, err) < 0) {
        return -1;
    }
    const uint8_t *at = (const uint8_t *)data.bytes.ptr;
    double value;
    if (data.type == MI_UINT8 && data.bytes.len == 1) {
        *ret_value = at[0];
    } else if ((data.type == MI_UINT16 || data.type == MI_INT16) && data.bytes.len == 2) {
        *ret_value = at[0] | at[1] << 8;
    } else if (data.type == MI_DOUBLE && data.bytes.len == sizeof(value)) {
        memcpy(&value, at, sizeof(value));
        if (!(value >= 0 && value <= META_SYNSETS_MAX && value == (double)(int64_t)value)) {
            return err_set(err, ERR_INTEGRITY, "meta.mat: %g is not a class's number", value);
        }
        *ret_value = (int64_t)value;
    } else {
        return err_set(err, ERR_INTEGRITY, "meta.mat: ILSVRC2012_ID of type %u, %zu bytes",
                       data.type, data.bytes.len);
    }
    return 0;
}

/* Text of bytes, or of 16-bit characters below 128. */
static int read_text(const struct element *element, struct arena *arena, struct str *ret_text,
                     struct err *err)
{
    struct matrix matrix;
    struct element data;
    if (open_matrix(element, &matrix, err) < 0 || next_element(&matrix.rest, &data, err) < 0) {
        return -1;
    }
    size_t step = data.type == MI_UINT16 ? 2 : 1;
    char *text;
    if (matrix.class != MX_CHAR || data.bytes.len / step > 64 ||
        (step == 1 && data.type != MI_UINT8 && data.type != MI_INT8 && data.type != MI_UTF8)) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: WNID is not a short text");
    }
    text = arena_alloc(arena, data.bytes.len / step + 1, 1);
    for (size_t idx = 0; idx < data.bytes.len / step; idx++) {
        text[idx] = data.bytes.ptr[idx * step];
        if (text[idx] <= ' ' || (step == 2 && data.bytes.ptr[idx * step + 1])) {
            return err_set(err, ERR_INTEGRITY, "meta.mat: WNID has bytes other than letters");
        }
    }
    *ret_text = (struct str){text, data.bytes.len / step};
    return 0;
}

struct fields {
    uint32_t n, number, wnid; /* places of the two that matter */
};

static int read_fields(struct str *rest, struct fields *ret_fields, struct err *err)
{
    struct element name_len, names;
    struct fields fields = {0, UINT32_MAX, UINT32_MAX};
    uint32_t len;
    if (next_element(rest, &name_len, err) < 0 || next_element(rest, &names, err) < 0) {
        return -1;
    }
    len = name_len.bytes.len == 4 ? (uint32_t)little_endian(name_len.bytes.ptr, 4) : 0;
    if (len == 0 || len > 64 || names.bytes.len % len || names.bytes.len / len > FIELDS_MAX) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: the names of the fields cannot be read");
    }
    fields.n = (uint32_t)(names.bytes.len / len);
    for (uint32_t idx = 0; idx < fields.n; idx++) {
        const char *at = names.bytes.ptr + (size_t)idx * len;
        struct str name = {at, strnlen(at, len)};
        fields.number = str_eq_z(name, "ILSVRC2012_ID") ? idx : fields.number;
        fields.wnid = str_eq_z(name, "WNID") ? idx : fields.wnid;
    }
    if (fields.number == UINT32_MAX || fields.wnid == UINT32_MAX) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: no fields ILSVRC2012_ID and WNID");
    }
    *ret_fields = fields;
    return 0;
}

static int read_synsets(struct arena *arena, struct matrix *matrix, struct meta_mat *ret_meta,
                        struct err *err)
{
    struct fields fields = {0};
    struct meta_mat meta;
    if (matrix->class != MX_STRUCT || !str_eq_z(matrix->name, "synsets") ||
        matrix->n > META_SYNSETS_MAX) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: expected a struct array \"synsets\"");
    }
    if (read_fields(&matrix->rest, &fields, err) < 0) {
        return -1;
    }
    meta.n = (size_t)matrix->n;
    meta.synsets = arena_array(arena, struct meta_synset, meta.n ? meta.n : 1);
    for (size_t idx = 0; idx < meta.n; idx++) {
        for (uint32_t field = 0; field < fields.n; field++) {
            struct element element;
            if (next_element(&matrix->rest, &element, err) < 0 ||
                (field == fields.number &&
                 read_number(&element, &meta.synsets[idx].number, err) < 0) ||
                (field == fields.wnid &&
                 read_text(&element, arena, &meta.synsets[idx].wnid, err) < 0)) {
                return -1;
            }
        }
    }
    *ret_meta = meta;
    return 0;
}

/* One zlib stream that is all of `from`. The room grows with the output, not with what a header claims. */
static int inflate_all(struct arena *arena, struct str from, struct str *ret_bytes, struct err *err)
{
    int status = Z_BUF_ERROR;
    for (size_t size = GUESS_BYTES; status == Z_BUF_ERROR && size <= META_BYTES_MAX; size *= 4) {
        uLongf len = size;
        uLong used = from.len;
        char *bytes = arena_alloc(arena, size, 1);
        status = uncompress2((Bytef *)bytes, &len, (const Bytef *)from.ptr, &used);
        status = status == Z_OK && used != from.len ? Z_DATA_ERROR : status;
        *ret_bytes = (struct str){bytes, len};
    }
    return status == Z_OK ? 0
                          : err_set(err, ERR_INTEGRITY, "meta.mat: zlib: %s",
                                    status == Z_BUF_ERROR ? "too many bytes" : zError(status));
}

int meta_mat_parse(struct arena *arena, struct str bytes, struct meta_mat *ret_meta,
                   struct err *err)
{
    struct element element;
    struct matrix matrix;
    struct str rest = str_sub(bytes, HEADER_BYTES, SIZE_MAX);
    if (bytes.len < HEADER_BYTES || bytes.len > META_BYTES_MAX ||
        memcmp(bytes.ptr + HEADER_BYTES - 4, MAGIC, 4) != 0) {
        return err_set(err, ERR_INTEGRITY, "meta.mat: not a little-endian MAT file of level 5");
    }
    if (next_element(&rest, &element, err) < 0) {
        return -1;
    }
    if (element.type == MI_COMPRESSED) {
        if (inflate_all(arena, element.bytes, &rest, err) < 0 ||
            next_element(&rest, &element, err) < 0) {
            return -1;
        }
    }
    if (open_matrix(&element, &matrix, err) < 0) {
        return -1;
    }
    return read_synsets(arena, &matrix, ret_meta, err);
}

/* ---- writing ---- */

static void add_element(struct strbuf *out, uint32_t type, struct str bytes)
{
    add_little_endian(out, type, 4);
    add_little_endian(out, (uint32_t)bytes.len, 4);
    strbuf_add_str(out, bytes);
    while (out->len % 8) {
        strbuf_add_char(out, '\0');
    }
}

/* Flags, dimensions and name of an array of 1 x n. */
static void add_opening(struct strbuf *out, uint32_t class, uint32_t n, const char *name)
{
    add_little_endian(out, MI_UINT32, 4);
    add_little_endian(out, 8, 4);
    add_little_endian(out, class, 4);
    add_little_endian(out, 0, 4);
    add_little_endian(out, MI_INT32, 4);
    add_little_endian(out, 8, 4);
    add_little_endian(out, 1, 4);
    add_little_endian(out, n, 4);
    add_element(out, MI_INT8, str_of(name));
}

static void add_synset(struct strbuf *out, const struct meta_synset *synset)
{
    CLEANUP(strbuf) struct strbuf array = STRBUF(4096);
    double number = (double)synset->number;
    add_opening(&array, MX_DOUBLE, 1, "");
    add_element(&array, MI_DOUBLE, (struct str){(const char *)&number, sizeof(number)});
    add_element(out, MI_MATRIX, strbuf_str(&array));
    strbuf_clear(&array);
    add_opening(&array, MX_CHAR, (uint32_t)synset->wnid.len, "");
    add_element(&array, MI_UTF8, synset->wnid);
    add_element(out, MI_MATRIX, strbuf_str(&array));
}

int meta_mat_make(const struct meta_mat *meta, uint8_t **ret_bytes, size_t *ret_len,
                  struct err *err)
{
    static const char names[32] = "ILSVRC2012_ID\0\0\0WNID"; /* 16 bytes each */
    CLEANUP(strbuf) struct strbuf array = {0}, whole = {0};
    char header[HEADER_BYTES + 1];
    strbuf_init(&array, META_BYTES_MAX);
    strbuf_init(&whole, META_BYTES_MAX);
    add_opening(&array, MX_STRUCT, (uint32_t)meta->n, "synsets");
    add_little_endian(&array, 4u << 16 | MI_INT32, 4);
    add_little_endian(&array, 16, 4);
    add_element(&array, MI_INT8, (struct str){names, sizeof(names)});
    for (size_t idx = 0; idx < meta->n; idx++) {
        add_synset(&array, &meta->synsets[idx]);
    }
    add_element(&whole, MI_MATRIX, strbuf_str(&array));
    if (whole.is_full || array.is_full) {
        return err_set(err, ERR_INTERNAL, "meta.mat: too many classes");
    }
    uLongf packed_len = compressBound(whole.len);
    uint8_t *bytes = xmalloc(HEADER_BYTES + 8 + packed_len);
    if (compress(bytes + HEADER_BYTES + 8, &packed_len, (const Bytef *)whole.ptr, whole.len) !=
        Z_OK) {
        free(bytes);
        return err_set(err, ERR_INTERNAL, "zlib: compress failed");
    }
    snprintf(header, sizeof(header), "%-*s", HEADER_BYTES, "MATLAB 5.0 MAT-file, synthetic");
    memset(header + TEXT_BYTES, 0, 8);
    memcpy(header + HEADER_BYTES - 4, MAGIC, 4);
    strbuf_clear(&whole);
    add_little_endian(&whole, MI_COMPRESSED, 4);
    add_little_endian(&whole, (uint32_t)packed_len, 4);
    memcpy(bytes, header, HEADER_BYTES);
    memcpy(bytes + HEADER_BYTES, whole.ptr, 8);
    *ret_bytes = bytes;
    *ret_len = HEADER_BYTES + 8 + packed_len;
    return 0;
}
