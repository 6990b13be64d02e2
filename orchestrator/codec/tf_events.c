/* SPDX-License-Identifier: Apache-2.0 */
/* A record is an Event.
   Source: tensorflow/tensorflow@v2.16.1 tensorflow/core/util/event.proto, framework/summary.proto, framework/tensor.proto. */
#include "base/base.h"

#include "codec/tf_events.h"

#include "codec/json.h"
#include "codec/proto.h"

#include <math.h>

#define SCALARS_MAX  256 /* of a line */
#define TAG_BYTES    128
#define DTYPE_FLOAT  1
#define DTYPE_DOUBLE 2

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

/* False at the end, and where the bytes are no field: then rest is not used up. */
static bool next_field(struct str *rest, struct proto_field *f)
{
    return rest->len > 0 && proto_next(rest, f, ERR_IGNORED) == 0;
}

/* ---- a scalar ---- */

/* The one number of a tensor; false: it holds none, or several. */
static bool tensor_scalar(struct str tensor, double *ret)
{
    struct proto_field f;
    uint64_t dtype = 0;
    struct str packed = STR_EMPTY;
    while (next_field(&tensor, &f)) {
        uint64_t of = f.number == 5 ? DTYPE_FLOAT : f.number == 6 ? DTYPE_DOUBLE : 0;
        dtype = f.number == 1 && f.wire == PROTO_VARINT ? f.value : dtype;
        if (of && f.wire != PROTO_BYTES) { /* not packed */
            *ret = of == DTYPE_FLOAT ? as_float(f.value) : as_double(f.value);
            return tensor.len == 0;
        }
        packed = (f.number == 4 || of) && f.wire == PROTO_BYTES && f.bytes.len ? f.bytes : packed;
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
    struct proto_field f;
    struct str tag = STR_EMPTY;
    bool has_value = false;
    while (next_field(&value, &f)) {
        if (f.number == 1 && f.wire == PROTO_BYTES) {
            tag = f.bytes;
        } else if (f.number == 2 && f.wire == PROTO_FIXED32) {
            ret->value = as_float(f.value);
            has_value = true;
        } else if (f.number == 8 && f.wire == PROTO_BYTES) {
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
    struct proto_field f;
    struct str summary = STR_EMPTY;
    double time_s = 0;
    int64_t step = 0;
    while (next_field(&rest, &f)) {
        time_s = f.number == 1 && f.wire == PROTO_FIXED64 ? as_double(f.value) : time_s;
        step = f.number == 2 && f.wire == PROTO_VARINT ? (int64_t)f.value : step;
        summary = f.number == 5 && f.wire == PROTO_BYTES ? f.bytes : summary;
    }
    if (rest.len) {
        return false;
    }
    while (next_field(&summary, &f)) {
        struct scalar s;
        if (f.number != 1 || f.wire != PROTO_BYTES || !take_scalar(f.bytes, &s)) {
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
        uint64_t len = rest.len >= RECORD_HEAD_BYTES ? little_endian(rest.ptr, 8) : 0;
        if (rest.len >= RECORD_HEAD_BYTES && !record_holds(rest.ptr, 8)) {
            return err_set(err, ERR_INTEGRITY,
                           "record %zu, byte %zu: the checksum of its length is wrong", n, at);
        }
        if (rest.len < RECORD_HEAD_BYTES + RECORD_CRC_BYTES ||
            len > rest.len - RECORD_HEAD_BYTES - RECORD_CRC_BYTES) {
            end_line(line, out);
            strbuf_add_z(out, "{\"step\":"); /* cut off, as what reads lines will see */
            return 0;
        }
        if (!record_holds(rest.ptr + RECORD_HEAD_BYTES, (size_t)len)) {
            return err_set(err, ERR_INTEGRITY, "record %zu, byte %zu: its checksum is wrong", n,
                           at);
        }
        if (!take_event(str_sub(rest, RECORD_HEAD_BYTES, (size_t)len), line, out)) {
            return err_set(err, ERR_PARSE, "record %zu, byte %zu: it is not an event", n, at);
        }
        at += RECORD_HEAD_BYTES + (size_t)len + RECORD_CRC_BYTES;
    }
    end_line(line, out);
    return 0;
}
