# SPDX-License-Identifier: Apache-2.0
"""Tensors by name in one file, as `reperf-train --check` reads and writes them: 8 bytes of header size, a JSON header, the data.
Source: https://github.com/huggingface/safetensors, README, "Format". Needs numpy alone: Debian has no safetensors package."""
import json
import os
import struct

import numpy as np

TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64, "I64": np.int64}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
HEADER_BYTES_MAX = 16 << 20


def write(path, tensors):
    """In the order given. The file is there whole or not at all."""
    header, at, arrays = {}, 0, []
    for name, array in tensors.items():
        array = np.asarray(array, order="C")
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
        arrays.append(array)
    text = json.dumps(header).encode()
    partial = path + ".partial"
    with open(partial, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in arrays:
            f.write(array.tobytes())
    os.replace(partial, path)


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    if len(raw) < 8:
        raise ValueError("%s: %d bytes, expected a header" % (path, len(raw)))
    (size,) = struct.unpack("<Q", raw[:8])
    if size > HEADER_BYTES_MAX or 8 + size > len(raw):
        raise ValueError("%s: a header of %d bytes in a file of %d" % (path, size, len(raw)))
    out = {}
    for name, info in json.loads(raw[8:8 + size]).items():
        begin, end = info["data_offsets"]
        dtype = np.dtype(TYPES[info["dtype"]])
        count = int(np.prod(info["shape"], dtype=np.int64))
        if begin < 0 or end - begin != count * dtype.itemsize or 8 + size + end > len(raw):
            raise ValueError("%s: tensor %s: bytes %d to %d do not hold its shape" % (path, name, begin, end))
        out[name] = np.frombuffer(raw, dtype, count, 8 + size + begin).reshape(info["shape"])
    return out
