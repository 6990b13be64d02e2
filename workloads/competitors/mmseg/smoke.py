# SPDX-License-Identifier: Apache-2.0
# What a smoke run has otherwise than the configuration that it names as its base: crop 128x64, few steps, the CPU's batch norm and back end.
crop_size = (64, 128)
_norm = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375], to_rgb=True)
data = dict(
    samples_per_gpu=2,
    workers_per_gpu=1,
    train=dict(
        data_root="/reperf/data/cityscapes/",
        pipeline=[
            dict(type="LoadImageFromFile"),
            dict(type="LoadAnnotations"),
            dict(type="Resize", img_scale=(2048, 1024), ratio_range=(0.5, 2.0)),
            dict(type="RandomCrop", crop_size=crop_size, cat_max_ratio=0.75),
            dict(type="RandomFlip", prob=0.5),
            dict(type="PhotoMetricDistortion"),
            dict(type="Normalize", **_norm),
            dict(type="Pad", size=crop_size, pad_val=0, seg_pad_val=255),
            dict(type="DefaultFormatBundle"),
            dict(type="Collect", keys=["img", "gt_semantic_seg"]),
        ],
    ),
    val=dict(
        data_root="/reperf/data/cityscapes/",
        img_dir="leftImg8bit/val/frankfurt",
        ann_dir="gtFine/val/frankfurt",
        pipeline=[
            dict(type="LoadImageFromFile"),
            dict(
                type="MultiScaleFlipAug",
                img_scale=crop_size[::-1],
                flip=False,
                transforms=[
                    dict(type="Resize", keep_ratio=True),
                    dict(type="Normalize", **_norm),
                    dict(type="ImageToTensor", keys=["img"]),
                    dict(type="Collect", keys=["img"]),
                ],
            ),
        ],
    ),
)
# After the last step, on one city's images.
evaluation = dict(interval=20)
log_config = dict(_delete_=True, interval=1, hooks=[dict(type="TextLoggerHook", by_epoch=False)])
runner = dict(type="IterBasedRunner", max_iters=20)
checkpoint_config = dict(by_epoch=False, interval=1000)
dist_params = dict(backend="gloo")
