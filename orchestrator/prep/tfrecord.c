/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/tfrecord.h"

#include "codec/proto.h"

#define EXAMPLE_MAX (1u << 28)

/* Field numbers of Example.features, Features.feature, the map's key and value, Feature's lists, .value. */
enum { FIELD_FEATURES = 1, FIELD_FEATURE = 1, FIELD_KEY = 1, FIELD_VALUE = 2 };
enum { FIELD_BYTES = 1, FIELD_FLOATS = 2, FIELD_INTS = 3, FIELD_VALUES = 1 };

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
