# SPDX-License-Identifier: Apache-2.0
# DeepLabV3+ on ResNet-50-D8, from mmsegmentation's own configuration; SyncBatchNorm is for GPUs only.
_base_ = [
    "/usr/local/lib/python3.11/dist-packages/mmseg/.mim/configs/deeplabv3plus/deeplabv3plus_r50-d8_512x1024_80k_cityscapes.py",
]
exec(open("/reperf/overlay/smoke.py").read())
_bn = dict(norm_cfg=dict(type="BN", requires_grad=True))
model = dict(pretrained=None, backbone=_bn, decode_head=_bn, auxiliary_head=_bn)
