#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ofrecord.py IN OUT PARTS: from folders of classes, IN/CLASS/IMAGE, to OFRecords as OneFlow's reader takes them: OUT/part-00000 and so on, among which the images go round;
each rank reads parts of its own. Before each record stands its length in eight bytes. A record is the image's own bytes and its class from 0, in the order of the names."""
import os
import struct
import sys

from oneflow.core.record.record_pb2 import OFRecord


def images(root):
    for label, name in enumerate(sorted(os.listdir(root))):
        for image in sorted(os.listdir(os.path.join(root, name))):
            yield os.path.join(root, name, image), label


def main():
    root, out, n_parts = sys.argv[1:]
    os.makedirs(out)
    parts = [open(os.path.join(out, "part-%05d" % idx), "wb") for idx in range(int(n_parts))]
    n = 0
    for path, label in images(root):
        record = OFRecord()
        with open(path, "rb") as data:
            record.feature["encoded"].bytes_list.value.append(data.read())
        record.feature["class/label"].int32_list.value.append(label)
        text = record.SerializeToString()
        parts[n % len(parts)].write(struct.pack("<q", len(text)) + text)
        n += 1
    for part in parts:
        part.close()
    print("OFRecords at %s: %d images in %d parts" % (out, n, len(parts)))


if __name__ == "__main__":
    main()
