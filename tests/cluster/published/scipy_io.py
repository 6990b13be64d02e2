# SPDX-License-Identifier: Apache-2.0
"""Of scipy.io, what layout.py asks of the development kit: its classes, in the order of the file."""
import re
import zlib


def loadmat(path, squeeze_me):
    data = zlib.decompress(open(path, "rb").read()[0x88:])
    names = [name.replace(b"\0", b"").decode() for name in re.findall(rb"n(?:\0?\d){8}", data)]
    return {"synsets": [{"ILSVRC2012_ID": idx + 1, "WNID": name, "num_children": 0} for idx, name in enumerate(names)]}
