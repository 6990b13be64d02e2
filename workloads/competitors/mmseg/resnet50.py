# SPDX-License-Identifier: Apache-2.0
# ResNet-50 from mmclassification's own configuration, on the folders of classes that are there, crop 64.
_base_ = ["/usr/local/lib/python3.11/dist-packages/mmcls/.mim/configs/resnet/resnet50_8xb32_in1k.py"]
_norm = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True)
data = dict(
    samples_per_gpu=4,
    workers_per_gpu=1,
    train=dict(
        type="CustomDataset",
        data_prefix="/reperf/data/train",
        pipeline=[
            dict(type="LoadImageFromFile"),
            dict(type="RandomResizedCrop", size=64),
            dict(type="RandomFlip", flip_prob=0.5, direction="horizontal"),
            dict(type="Normalize", **_norm),
            dict(type="ImageToTensor", keys=["img"]),
            dict(type="ToTensor", keys=["gt_label"]),
            dict(type="Collect", keys=["img", "gt_label"]),
        ],
    ),
    val=dict(
        type="CustomDataset",
        data_prefix="/reperf/data/train",
        ann_file=None,
        pipeline=[
            dict(type="LoadImageFromFile"),
            dict(type="Resize", size=(73, -1)),
            dict(type="CenterCrop", crop_size=64),
            dict(type="Normalize", **_norm),
            dict(type="ImageToTensor", keys=["img"]),
            dict(type="Collect", keys=["img"]),
        ],
    ),
)
# After the last step, on what it trained on: mmcv's images lie in a folder a class, and those of `val` do not.
evaluation = dict(interval=20, metric="accuracy")
lr_config = dict(_delete_=True, policy="fixed")
log_config = dict(_delete_=True, interval=1, hooks=[dict(type="TextLoggerHook", by_epoch=False)])
runner = dict(_delete_=True, type="IterBasedRunner", max_iters=20)
checkpoint_config = dict(by_epoch=False, interval=1000)
dist_params = dict(backend="gloo")
