/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/tfrecord.h"

#include "codec/proto.h"

#define KEY_MAX     64
#define EXAMPLE_MAX (1u << 28)

/* Field numbers of Example.features, Features.feature, the map's key and value, Feature's lists, .value. */
enum { FIELD_FEATURES = 1, FIELD_FEATURE = 1, FIELD_KEY = 1, FIELD_VALUE = 2 };
enum { FIELD_BYTES = 1, FIELD_FLOATS = 2, FIELD_INTS = 3, FIELD_VALUES = 1 };

int tfrecord_header(const uint8_t *header, uint64_t *ret_len, struct err *err)
{
    uint64_t len = little_endian(header, 8);
    if (!record_holds(header, 8)) {
        return err_set(err, ERR_INTEGRITY, "the CRC of a record's length does not match");
    }
    if (len > TFRECORD_BYTES_MAX) {
        return err_set(err, ERR_INTEGRITY, "a record of %" PRIu64 " bytes, expected at most %u",
                       len, TFRECORD_BYTES_MAX);
    }
    *ret_len = len;
    return 0;
}

int tfrecord_check(const uint8_t *data, size_t len, struct err *err)
{
    if (!record_holds(data, len)) {
        return err_set(err, ERR_INTEGRITY, "the CRC of a record's %zu bytes does not match", len);
    }
    return 0;
}

/* ---- reading ---- */

/* A message field of that number and nothing else. */
static int expect_message(const struct proto_field *field, uint64_t number, struct err *err)
{
    if (field->number != number || field->wire != PROTO_BYTES) {
        return err_set(err, ERR_INTEGRITY,
                       "field %" PRIu64 " of wire type %d, expected the message %" PRIu64,
                       field->number, (int)field->wire, number);
    }
    return 0;
}

struct numbers {
    int32_t *out;
    size_t n, n_max;
};

static int add_number(struct numbers *numbers, uint64_t raw, struct err *err)
{
    int64_t value = (int64_t)raw;
    if (numbers->n == numbers->n_max) {
        return err_set(err, ERR_INTEGRITY, "more than the expected %zu numbers", numbers->n_max);
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        return err_set(err, ERR_INTEGRITY, "%" PRId64 " does not fit into 32 bits", value);
    }
    numbers->out[numbers->n++] = (int32_t)value;
    return 0;
}

/* Int64List: its values packed, or one by one. */
static int read_ints(struct str list, struct numbers *numbers, struct err *err)
{
    while (list.len) {
        struct proto_field field = {0};
        if (proto_next(&list, &field, err) < 0) {
            return -1;
        }
        if (field.number != FIELD_VALUES ||
            (field.wire != PROTO_BYTES && field.wire != PROTO_VARINT)) {
            return err_set(err, ERR_INTEGRITY, "field %" PRIu64 " in a list of numbers",
                           field.number);
        }
        if (field.wire == PROTO_VARINT && add_number(numbers, field.value, err) < 0) {
            return -1;
        }
        while (field.bytes.len) {
            uint64_t value = 0;
            if (proto_varint(&field.bytes, &value, err) < 0 ||
                add_number(numbers, value, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int read_feature(struct str key, struct str value, const struct tokens_shape *shape,
                        int32_t *row, unsigned *seen, struct err *err)
{
    struct proto_field field = {0};
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        struct numbers numbers = {row + tokens_part_at(shape, part), 0,
                                  tokens_part_len(shape, part)};
        if (!str_eq_z(key, tokens_part_name(part))) {
            continue;
        }
        if (*seen & 1u << part) {
            return err_set(err, ERR_INTEGRITY, "%s occurs twice", tokens_part_name(part));
        }
        *seen |= 1u << part;
        if (proto_next(&value, &field, err) < 0 || expect_message(&field, FIELD_INTS, err) < 0 ||
            read_ints(field.bytes, &numbers, err) < 0) {
            return err_wrap(err, "%s", tokens_part_name(part));
        }
        if (value.len || numbers.n != numbers.n_max) {
            return err_set(err, ERR_INTEGRITY, "%s: %zu numbers, expected %zu",
                           tokens_part_name(part), numbers.n, numbers.n_max);
        }
        return 0;
    }
    if (str_eq_z(key, "masked_lm_weights")) {
        return 0;
    }
    return err_set(err, ERR_INTEGRITY, "a feature \"%.*s\" that is not one of BERT's inputs",
                   (int)(key.len < KEY_MAX ? key.len : KEY_MAX), key.ptr);
}

/* An entry of the map: key and value, in this order as every writer has them. */
static int read_entry(struct str entry, const struct tokens_shape *shape, int32_t *row,
                      unsigned *seen, struct err *err)
{
    struct proto_field key = {0}, value = {0};
    if (proto_next(&entry, &key, err) < 0 || expect_message(&key, FIELD_KEY, err) < 0 ||
        proto_next(&entry, &value, err) < 0 || expect_message(&value, FIELD_VALUE, err) < 0) {
        return -1;
    }
    if (entry.len) {
        return err_set(err, ERR_INTEGRITY, "%zu bytes after a feature", entry.len);
    }
    return read_feature(key.bytes, value.bytes, shape, row, seen, err);
}

int tfrecord_example(struct str data, const struct tokens_shape *shape, int32_t *row,
                     struct err *err)
{
    struct proto_field features = {0};
    unsigned seen = 0;
    if (proto_next(&data, &features, err) < 0 ||
        expect_message(&features, FIELD_FEATURES, err) < 0) {
        return -1;
    }
    if (data.len) {
        return err_set(err, ERR_INTEGRITY, "%zu bytes after the features", data.len);
    }
    while (features.bytes.len) {
        struct proto_field entry = {0};
        if (proto_next(&features.bytes, &entry, err) < 0 ||
            expect_message(&entry, FIELD_FEATURE, err) < 0 ||
            read_entry(entry.bytes, shape, row, &seen, err) < 0) {
            return -1;
        }
    }
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        if (!(seen & 1u << part)) {
            return err_set(err, ERR_INTEGRITY, "%s is missing", tokens_part_name(part));
        }
    }
    return 0;
}

/* ---- writing ---- */

/* One entry of the map: key and a feature with a list, whose values are given: packed, or one of bytes. */
static void add_feature(struct strbuf *out, const char *key, unsigned list_field, struct str packed)
{
    CLEANUP(strbuf) struct strbuf list = {0}, feature = {0}, entry = {0};
    strbuf_init(&list, EXAMPLE_MAX);
    strbuf_init(&feature, EXAMPLE_MAX);
    strbuf_init(&entry, EXAMPLE_MAX);
    proto_add_bytes(&list, FIELD_VALUES, packed);
    proto_add_bytes(&feature, list_field, strbuf_str(&list));
    proto_add_bytes(&entry, FIELD_KEY, str_of(key));
    proto_add_bytes(&entry, FIELD_VALUE, strbuf_str(&feature));
    proto_add_bytes(out, FIELD_FEATURE, strbuf_str(&entry));
}

static void add_features(struct strbuf *out, const struct tokens_shape *shape, const int32_t *row)
{
    CLEANUP(strbuf) struct strbuf packed = STRBUF(EXAMPLE_MAX);
    const int32_t *ids = row + tokens_part_at(shape, TOKENS_IDS);
    for (enum tokens_part part = TOKENS_INPUT; part < TOKENS_PARTS; part++) {
        const int32_t *at = row + tokens_part_at(shape, part);
        strbuf_clear(&packed);
        for (size_t idx = 0; idx < tokens_part_len(shape, part); idx++) {
            proto_add_varint(&packed, (uint64_t)(int64_t)at[idx]);
        }
        add_feature(out, tokens_part_name(part), FIELD_INTS, strbuf_str(&packed));
    }
    strbuf_clear(&packed);
    for (uint32_t idx = 0; idx < shape->predictions; idx++) {
        strbuf_add(&packed, ids[idx] ? "\0\0\x80\x3f" : "\0\0\0\0", 4); /* 1.0f or 0.0f */
    }
    add_feature(out, "masked_lm_weights", FIELD_FLOATS, strbuf_str(&packed));
}

/* One framed record with an Example of these features. */
static void append_record(struct strbuf *out, struct str features)
{
    CLEANUP(strbuf) struct strbuf example = {0}, header = {0};
    strbuf_init(&example, EXAMPLE_MAX);
    strbuf_init(&header, RECORD_HEAD_BYTES + 1);
    proto_add_bytes(&example, FIELD_FEATURES, features);
    add_little_endian(&header, example.len, 8);
    strbuf_add_str(out, strbuf_str(&header));
    add_little_endian(out, record_crc(header.ptr, 8), 4);
    strbuf_add_str(out, strbuf_str(&example));
    add_little_endian(out, record_crc(example.ptr, example.len), 4);
}

void tfrecord_append(struct strbuf *out, const struct tokens_shape *shape, const int32_t *row)
{
    CLEANUP(strbuf) struct strbuf features = STRBUF(EXAMPLE_MAX);
    add_features(&features, shape, row);
    append_record(out, strbuf_str(&features));
}

void tfrecord_append_image(struct strbuf *out, struct str file, uint64_t label)
{
    CLEANUP(strbuf) struct strbuf features = {0}, number = {0};
    strbuf_init(&features, EXAMPLE_MAX);
    strbuf_init(&number, RECORD_HEAD_BYTES);
    proto_add_varint(&number, label);
    add_feature(&features, "image/encoded", FIELD_BYTES, file);
    add_feature(&features, "image/class/label", FIELD_INTS, strbuf_str(&number));
    append_record(out, strbuf_str(&features));
}
