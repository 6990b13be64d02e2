/* SPDX-License-Identifier: Apache-2.0 */
/* A file is a sequence of records: 8 bytes of length, the CRC of these, the bytes, their CRC; little endian, and a CRC is masked. A record
   is an Event in the wire format of protocol buffers: a field is a varint (number << 3 | type), then a varint (type 0), 8 bytes (1), a
   length and as many bytes (2), or 4 bytes (5).
   Source: tensorflow/tensorflow@v2.16.1 tensorflow/core/lib/io/record_writer.h, lib/hash/crc32c.h, util/event.proto,
   framework/summary.proto, framework/tensor.proto; protobuf.dev/programming-guides/encoding. */
#include "base/base.h"

#include "codec/tf_events.h"

#include "base/crc32c.h"
#include "codec/json.h"

#include <math.h>

#define HEAD_BYTES   12
#define CRC_BYTES    4
#define SCALARS_MAX  256 /* of a line */
#define TAG_BYTES    128
#define VARINT_BYTES 10
#define MASK_DELTA   0xa282ead8u
#define WIRE_VARINT  0
#define WIRE_8_BYTES 1
#define WIRE_LENGTH  2
#define WIRE_4_BYTES 5
#define DTYPE_FLOAT  1
#define DTYPE_DOUBLE 2

static uint64_t little_endian(const char *ptr, size_t n)
{
    uint64_t value = 0;
    for (size_t idx = n; idx-- > 0;) {
        value = value << 8 | (unsigned char)ptr[idx];
    }
    return value;
}

static bool has_crc(const char *ptr, size_t len)
{
    uint32_t crc = crc32c(0, ptr, len);
    return (crc >> 15 | crc << 17) + MASK_DELTA == (uint32_t)little_endian(ptr + len, CRC_BYTES);
}

static double as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof(value));
    return (double)value;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* ---- the wire ---- */

struct wire_field {
    uint64_t number;
    unsigned type;
    uint64_t value;   /* of a varint, of 4 and 8 bytes */
    struct str bytes; /* of a length */
};

static bool take_varint(struct str *rest, uint64_t *ret)
{
    *ret = 0;
    for (size_t idx = 0; idx < VARINT_BYTES && idx < rest->len; idx++) {
        unsigned char c = (unsigned char)rest->ptr[idx];
        *ret |= (uint64_t)(c & 0x7f) << (7 * idx);
        if (!(c & 0x80)) {
            *rest = str_sub(*rest, idx + 1, SIZE_MAX);
            return true;
        }
    }
    return false;
}

/* False at the end, and where the bytes are no field: then rest is not used up. */
static bool next_field(struct str *rest, struct wire_field *f)
{
    struct str at = *rest;
    uint64_t tag;
    if (at.len == 0 || !take_varint(&at, &tag)) {
        return false;
    }
    *f = (struct wire_field){.number = tag >> 3, .type = tag & 7};
    size_t n = f->type == WIRE_8_BYTES ? 8 : f->type == WIRE_4_BYTES ? 4 : 0;
    if (f->type == WIRE_VARINT   ? !take_varint(&at, &f->value)
        : f->type == WIRE_LENGTH ? !take_varint(&at, &f->value) || f->value > at.len
                                 : n == 0 || at.len < n) {
        return false;
    }
    if (f->type == WIRE_LENGTH) {
        f->bytes = str_sub(at, 0, (size_t)f->value);
        n = f->bytes.len;
    } else if (n > 0) {
        f->value = little_endian(at.ptr, n);
    }
    *rest = str_sub(at, n, SIZE_MAX);
    return true;
}

/* ---- a scalar ---- */

/* The one number of a tensor; false: it holds none, or several. */
static bool tensor_scalar(struct str tensor, double *ret)
{
    struct wire_field f;
    uint64_t dtype = 0;
    struct str packed = STR_EMPTY;
    while (next_field(&tensor, &f)) {
        uint64_t of = f.number == 5 ? DTYPE_FLOAT : f.number == 6 ? DTYPE_DOUBLE : 0;
        dtype = f.number == 1 && f.type == WIRE_VARINT ? f.value : dtype;
        if (of && f.type != WIRE_LENGTH) { /* not packed */
            *ret = of == DTYPE_FLOAT ? as_float(f.value) : as_double(f.value);
            return tensor.len == 0;
        }
        packed = (f.number == 4 || of) && f.type == WIRE_LENGTH && f.bytes.len ? f.bytes : packed;
    }
    size_t size = dtype == DTYPE_FLOAT ? 4 : dtype == DTYPE_DOUBLE ? 8 : 0;
    if (tensor.len || size == 0 || packed.len != size) {
        return false;
    }
    uint64_t bits = little_endian(packed.ptr, size);
    *ret = size == 4 ? as_float(bits) : as_double(bits);
    return true;
}

struct scalar {
    char tag[TAG_BYTES];
    double value;
};

/* Of a Summary.Value: false if it is no scalar. */
static bool take_scalar(struct str value, struct scalar *ret)
{
    struct wire_field f;
    struct str tag = STR_EMPTY;
    bool has_value = false;
    while (next_field(&value, &f)) {
        if (f.number == 1 && f.type == WIRE_LENGTH) {
            tag = f.bytes;
        } else if (f.number == 2 && f.type == WIRE_4_BYTES) {
            ret->value = as_float(f.value);
            has_value = true;
        } else if (f.number == 8 && f.type == WIRE_LENGTH) {
            has_value = tensor_scalar(f.bytes, &ret->value);
        }
    }
    if (value.len || !has_value || tag.len == 0 || tag.len >= TAG_BYTES) {
        return false;
    }
    memcpy(ret->tag, tag.ptr, tag.len);
    ret->tag[tag.len] = '\0';
    for (size_t idx = 0; idx < tag.len; idx++) {
        if (ret->tag[idx] < ' ' || ret->tag[idx] == 0x7f) { /* also beyond ASCII, and NUL */
            return false;
        }
    }
    return true;
}

/* ---- lines ---- */

struct step_line { /* scalars of one step, until another step begins */
    struct scalar items[SCALARS_MAX];
    size_t n;
    int64_t step;
    double time_s;
};

static void end_line(struct step_line *line, struct strbuf *out)
{
    struct json_out json;
    if (line->n == 0) {
        return;
    }
    jw_begin(&json, out, true);
    jw_object(&json, NULL);
    jw_i64(&json, "step", line->step);
    jw_f64(&json, "time", line->time_s);
    for (size_t idx = 0; idx < line->n; idx++) {
        if (isfinite(line->items[idx].value)) {
            jw_f64(&json, line->items[idx].tag, line->items[idx].value);
        } else {
            jw_z(&json, line->items[idx].tag, "NaN");
        }
    }
    jw_end_object(&json);
    strbuf_add_char(out, '\n');
    line->n = 0;
}

static void add_scalar(struct step_line *line, const struct scalar *s, struct strbuf *out)
{
    bool is_again = line->n == SCALARS_MAX;
    for (size_t idx = 0; idx < line->n; idx++) {
        is_again = is_again || strcmp(line->items[idx].tag, s->tag) == 0;
    }
    if (is_again) {
        end_line(line, out);
    }
    line->items[line->n++] = *s;
}

/* An Event: its time, its step, and its summary's values. False if it is not well formed. */
static bool take_event(struct str event, struct step_line *line, struct strbuf *out)
{
    struct str rest = event;
    struct wire_field f;
    struct str summary = STR_EMPTY;
    double time_s = 0;
    int64_t step = 0;
    while (next_field(&rest, &f)) {
        time_s = f.number == 1 && f.type == WIRE_8_BYTES ? as_double(f.value) : time_s;
        step = f.number == 2 && f.type == WIRE_VARINT ? (int64_t)f.value : step;
        summary = f.number == 5 && f.type == WIRE_LENGTH ? f.bytes : summary;
    }
    if (rest.len) {
        return false;
    }
    while (next_field(&summary, &f)) {
        struct scalar s;
        if (f.number != 1 || f.type != WIRE_LENGTH || !take_scalar(f.bytes, &s)) {
            continue;
        }
        if (step != line->step) {
            end_line(line, out);
        }
        add_scalar(line, &s, out);
        line->step = step;
        line->time_s = time_s;
    }
    return summary.len == 0;
}

bool tf_events_is(struct str file)
{
    /* After the record's length and checksum, the time, and the field's tag and length. */
    return str_starts(str_sub(file, 23, file.len), STR_LIT("brain.Event:"));
}

int tf_events_read(struct str file, struct strbuf *out, struct err *err)
{
    CLEANUP(free) struct step_line *line = xcalloc(1, sizeof(*line));
    size_t at = 0;
    for (size_t n = 1; at < file.len; n++) {
        struct str rest = str_sub(file, at, file.len);
        uint64_t len = rest.len >= HEAD_BYTES ? little_endian(rest.ptr, 8) : 0;
        if (rest.len >= HEAD_BYTES && !has_crc(rest.ptr, 8)) {
            return err_set(err, ERR_INTEGRITY,
                           "record %zu, byte %zu: the checksum of its length is wrong", n, at);
        }
        if (rest.len < HEAD_BYTES + CRC_BYTES || len > rest.len - HEAD_BYTES - CRC_BYTES) {
            end_line(line, out);
            strbuf_add_z(out, "{\"step\":"); /* cut off, as what reads lines will see */
            return 0;
        }
        if (!has_crc(rest.ptr + HEAD_BYTES, (size_t)len)) {
            return err_set(err, ERR_INTEGRITY, "record %zu, byte %zu: its checksum is wrong", n,
                           at);
        }
        if (!take_event(str_sub(rest, HEAD_BYTES, (size_t)len), line, out)) {
            return err_set(err, ERR_PARSE, "record %zu, byte %zu: it is no event", n, at);
        }
        at += HEAD_BYTES + (size_t)len + CRC_BYTES;
    }
    end_line(line, out);
    return 0;
}
