# SPDX-License-Identifier: Apache-2.0
# FCN on HRNet-W18, from the configuration of the report's own fork; SyncBatchNorm is for GPUs only.
_base_ = [
    "/reperf/source/configs/hrnet/fcn_hr18_512x1024_80k_cityscapes.py",
]
exec(open("/reperf/overlay/smoke.py").read())
_bn = dict(norm_cfg=dict(type="BN", requires_grad=True))
model = dict(pretrained=None, backbone=_bn, decode_head=_bn)
