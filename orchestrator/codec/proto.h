/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format of protocol buffers, and the frame of a record in a TFRecord file: 8 bytes of length, the CRC of these, the
   bytes, their CRC; little endian, and a CRC is masked. A field is a varint (number << 3 | wire), then what its wire says.
   Source: tensorflow/tensorflow@v2.16.1 tensorflow/core/lib/io/record_writer.h, lib/hash/crc32c.h;
   protobuf.dev/programming-guides/encoding. */
#pragma once

#include "base/strbuf.h"

#define RECORD_HEAD_BYTES 12
#define RECORD_CRC_BYTES  4

/* Of n bytes, at most 8. */
uint64_t little_endian(const void *ptr, size_t n);
void add_little_endian(struct strbuf *out, uint64_t value, size_t n);
/* Masked. */
uint32_t record_crc(const void *ptr, size_t len);
/* Whether the CRC that follows the bytes is theirs. */
bool record_holds(const void *ptr, size_t len);

enum proto_wire { PROTO_VARINT = 0, PROTO_FIXED64 = 1, PROTO_BYTES = 2, PROTO_FIXED32 = 5 };

struct proto_field {
    uint64_t number;
    enum proto_wire wire;
    uint64_t value;   /* of all but PROTO_BYTES */
    struct str bytes; /* of PROTO_BYTES */
};

/* The next of rest, which then begins after it. ERR_INTEGRITY: rest stays as it was. */
MUST_CHECK int proto_varint(struct str *rest, uint64_t *ret_value, struct err *err);
MUST_CHECK int proto_next(struct str *rest, struct proto_field *ret_field, struct err *err);

void proto_add_varint(struct strbuf *out, uint64_t value);
void proto_add_bytes(struct strbuf *out, unsigned number, struct str bytes);
