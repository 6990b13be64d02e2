#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ofrecord.py IN OUT PARTS: from folders of classes, IN/CLASS/IMAGE, to OFRecords as OneFlow's reader takes them: OUT/part-00000 and so on, among which the images go round;
each rank reads parts of its own. Before each record stands its length in eight bytes. A record is the image as a JPEG of three channels and its class from 0, in the order of the names."""
import io
import os
import struct
import sys

from PIL import Image
from oneflow.core.record.record_pb2 import OFRecord


def encoded(path):
    """The image's own bytes, if they are a JPEG of three channels. OneFlow 0.9.0's decoder with a random crop (jpeg_decoder.cpp) keeps room for three, whatever the JPEG has: of
    CMYK it writes a third too much past the end of that room, of greyscale it leaves most of it as it was; a PNG ends the process. The project's own imagenet_ofrecord.py makes
    JPEGs of three channels of all."""
    with open(path, "rb") as data:
        own = data.read()
    with Image.open(io.BytesIO(own)) as image:
        if image.format == "JPEG" and image.mode == "RGB":
            return own
        out = io.BytesIO()
        image.convert("RGB").save(out, "JPEG", quality=95)
    return out.getvalue()


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
        record.feature["encoded"].bytes_list.value.append(encoded(path))
        record.feature["class/label"].int32_list.value.append(label)
        text = record.SerializeToString()
        parts[n % len(parts)].write(struct.pack("<q", len(text)) + text)
        n += 1
    for part in parts:
        part.close()
    print("OFRecords at %s: %d images in %d parts" % (out, n, len(parts)))


if __name__ == "__main__":
    main()
