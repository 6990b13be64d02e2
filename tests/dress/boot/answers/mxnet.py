# SPDX-License-Identifier: Apache-2.0
"""MXNet, until a block is built."""
from dress_boot import BUILDS, CLASS, LAYERS, MODULE, NOTHING, RECORD

TABLE = {
    "mxnet": MODULE,
    "mxnet.gluon": MODULE,
    "mxnet.gluon.nn": MODULE,
    "mxnet.gluon.nn.*": LAYERS,
    "mxnet.gluon.block": MODULE,
    "mxnet.gluon.block.HybridBlock": BUILDS,
    "mxnet.ndarray": MODULE,
    "mxnet.contrib": MODULE,
    "mxnet.contrib.amp": MODULE,
    "mxnet.autograd": MODULE,
    "mxnet.io": MODULE,
    "mxnet.io.DataBatch": CLASS,
    "mxnet.io.DataIter": CLASS,
    "mxnet.metric": MODULE,
    "mxnet.metric.Loss": CLASS,
    "mxnet.init": MODULE,
    "mxnet.init.Xavier": RECORD,
    "mxnet.cpu": NOTHING,
    "mxnet.gpu": NOTHING,
}
