#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Room: codec
# A TensorBoard event file from lines "STEP TIME TAG VALUE": both ways to write a scalar in turn, and events that hold none. With a second argument:
# the same with a histogram's bytes, of which one is not what its checksum says.
import struct
import sys

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ 0x82F63B78 * (n & 1)
    TABLE.append(n)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(event):
    head = struct.pack("<Q", len(event))
    return head + masked_crc(head) + event + masked_crc(event)


def event(step, time, value):
    return b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + field(5, field(1, value))


out = record(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
for n, line in enumerate(sys.stdin):
    step, time, tag, value = line.split()
    if n % 2:  # a tensor of one float, with the plugin's name
        content = b"\x08\x01" + field(2, b"") + field(4, struct.pack("<f", float(value)))
        scalar = field(8, content) + field(9, field(1, field(1, b"scalars")))
    else:
        scalar = b"\x15" + struct.pack("<f", float(value))
    out += record(event(int(step), float(time), field(1, tag.encode()) + scalar))
    out += record(event(int(step), float(time), field(1, b"hist") + field(5, bytes(64))))
if len(sys.argv) > 2:
    out = out[:-20] + bytes([out[-20] ^ 1]) + out[-19:]
with open(sys.argv[1], "wb") as file:
    file.write(out)
