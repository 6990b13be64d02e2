# SPDX-License-Identifier: Apache-2.0
"""OneFlow, until a model is built."""
import os

from dress_boot import BUILDS, CLASS, LAYERS, MODULE, NOTHING


class OFRecord(object):
    """The record of oneflow.core.record as ofrecord.py fills it: lists by name, and bytes that are never read here."""

    class Values(list):
        value = property(lambda self: self)
        bytes_list = int32_list = property(lambda self: self)

    class Features(dict):
        def __missing__(self, name):
            return self.setdefault(name, OFRecord.Values())

    def __init__(self):
        self.feature = OFRecord.Features()

    def SerializeToString(self):
        return b"".join(value if isinstance(value, bytes) else b"%d" % value for values in self.feature.values() for value in values)


TABLE = {
    "oneflow": MODULE,
    "oneflow.__version__": "0.9.0",
    "oneflow.core": MODULE,
    "oneflow.core.record": MODULE,
    "oneflow.core.record.record_pb2": MODULE,
    "oneflow.core.record.record_pb2.OFRecord": OFRecord,
    "oneflow.distributed": MODULE,
    "oneflow.distributed.launch": MODULE,
    "oneflow.Tensor": CLASS,
    "oneflow.env": MODULE,
    "oneflow.env.get_rank": lambda: int(os.environ["RANK"]),
    "oneflow.env.get_world_size": lambda: int(os.environ["WORLD_SIZE"]),
    "oneflow.boxing": MODULE,
    "oneflow.boxing.nccl": MODULE,
    "oneflow.boxing.nccl.set_fusion_threshold_mbytes": NOTHING,
    "oneflow.boxing.nccl.set_fusion_max_ops_num": NOTHING,
    "oneflow.nn": MODULE,
    "oneflow.nn.Module": BUILDS,
    "oneflow.nn.Graph": BUILDS,
    "oneflow.nn.*": LAYERS,
    "oneflow.nn.parallel": MODULE,
    "oneflow.nn.parallel.*": LAYERS,
}
