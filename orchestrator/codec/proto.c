/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/proto.h"

#include "base/crc32c.h"

#define MASK_DELTA 0xa282ead8u

uint64_t little_endian(const void *ptr, size_t n)
{
    const uint8_t *bytes = ptr;
    uint64_t value = 0;
    while (n-- > 0) {
        value = value << 8 | bytes[n];
    }
    return value;
}

void add_little_endian(struct strbuf *out, uint64_t value, size_t n)
{
    for (; n > 0; n--, value >>= 8) {
        strbuf_add_char(out, (char)(value & 255));
    }
}

uint32_t record_crc(const void *ptr, size_t len)
{
    uint32_t crc = crc32c(0, ptr, len);
    return (crc >> 15 | crc << 17) + MASK_DELTA;
}

bool record_holds(const void *ptr, size_t len)
{
    return record_crc(ptr, len) == little_endian((const char *)ptr + len, RECORD_CRC_BYTES);
}

int proto_varint(struct str *rest, uint64_t *ret_value, struct err *err)
{
    uint64_t value = 0;
    for (size_t idx = 0; idx < 10; idx++) {
        if (idx == rest->len) {
            return err_set(err, ERR_INTEGRITY, "the message is truncated within a number");
        }
        uint8_t byte = (uint8_t)rest->ptr[idx];
        if (idx == 9 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 127) << (7 * idx);
        if (byte < 128) {
            *rest = str_sub(*rest, idx + 1, SIZE_MAX);
            *ret_value = value;
            return 0;
        }
    }
    return err_set(err, ERR_INTEGRITY, "a number of more than 64 bits");
}

int proto_next(struct str *rest, struct proto_field *ret_field, struct err *err)
{
    struct str at = *rest;
    uint64_t tag;
    if (proto_varint(&at, &tag, err) < 0) {
        return -1;
    }
    struct proto_field field = {.number = tag >> 3, .wire = (enum proto_wire)(tag & 7)};
    uint64_t len = field.wire == PROTO_FIXED64 ? 8 : field.wire == PROTO_FIXED32 ? 4 : 0;
    if (len == 0 && field.wire != PROTO_VARINT && field.wire != PROTO_BYTES) {
        return err_set(err, ERR_INTEGRITY, "field %" PRIu64 " of wire type %d", field.number,
                       (int)field.wire);
    }
    if (len == 0 && proto_varint(&at, field.wire == PROTO_BYTES ? &len : &field.value, err) < 0) {
        return -1;
    }
    if (len > at.len) {
        return err_set(err, ERR_INTEGRITY,
                       "the message is truncated: %" PRIu64 " bytes wanted, %zu left", len, at.len);
    }
    if (field.wire == PROTO_BYTES) {
        field.bytes = str_sub(at, 0, (size_t)len);
    } else if (len) {
        field.value = little_endian(at.ptr, (size_t)len);
    }
    *rest = str_sub(at, (size_t)len, SIZE_MAX);
    *ret_field = field;
    return 0;
}

void proto_add_varint(struct strbuf *out, uint64_t value)
{
    for (; value >= 128; value >>= 7) {
        strbuf_add_char(out, (char)(value | 128));
    }
    strbuf_add_char(out, (char)value);
}

void proto_add_bytes(struct strbuf *out, unsigned number, struct str bytes)
{
    proto_add_varint(out, number << 3 | PROTO_BYTES);
    proto_add_varint(out, bytes.len);
    strbuf_add_str(out, bytes);
}
