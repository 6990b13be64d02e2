# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 by the official models' own classifier_trainer.py, which reads TFRecords: first they are made of ImageNet's images, as its authors' are."""
import os
import runpy
import sys
import tempfile

import tensorflow as tf

SHARDS = 4  # at least one a worker


def feature(values):
    kind = "bytes" if isinstance(values[0], bytes) else "int64"
    return tf.train.Feature(**{kind + "_list": (tf.train.BytesList if kind == "bytes" else tf.train.Int64List)(value=values)})


def write_records(samples, split, folder):
    for shard in range(SHARDS):
        with tf.io.TFRecordWriter(os.path.join(folder, f"{split}-{shard:05d}-of-{SHARDS:05d}")) as out:
            for path, label in samples[shard::SHARDS]:
                with open(path, "rb") as image:
                    example = {"image/encoded": feature([image.read()]), "image/class/label": feature([label])}
                out.write(tf.train.Example(features=tf.train.Features(feature=example)).SerializeToString())


def samples_of(data, split):
    """(path, label from 1), as layout.py lists them."""
    with open(os.path.join(data, split + "_list.txt")) as lines:
        rows = [line.split() for line in lines]
    return [(os.path.join(data, path), 1 + int(label)) for path, label in rows]


def main():
    data, config = sys.argv[1:]
    records = tempfile.mkdtemp()
    for split, name in (("train", "train"), ("val", "validation")):
        write_records(samples_of(data, split), name, records)
    strategy = "multi_worker_mirrored" if int(os.environ["WORLD_SIZE"]) > 1 else "one_device"
    sys.argv = ["classifier_trainer.py", "--mode=train_and_eval", "--model_type=resnet", "--dataset=imagenet", f"--model_dir={tempfile.mkdtemp()}",
                f"--data_dir={records}", f"--config_file={config}", "--log_steps=2",
                f"--params_override=runtime.distribution_strategy={strategy},train_dataset.num_devices={os.environ['WORLD_SIZE']}"]
    runpy.run_module("official.legacy.image_classification.classifier_trainer", run_name="__main__", alter_sys=True)


main()
