# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 by the official models' own classifier_trainer.py, which reads TFRecords: first they are made of ImageNet's folders, as its authors' are."""
import glob
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


def samples_of(data):
    """(path, label from 1) of both splits; of a training image the place of its folder, of others what the development kit says."""
    train = sorted(glob.glob(os.path.join(data, "train", "*", "*.JPEG")))
    validation = sorted(glob.glob(os.path.join(data, "val", "*.JPEG")))
    with open(os.path.join(data, "ILSVRC2012_devkit_t12", "data", "ILSVRC2012_validation_ground_truth.txt")) as lines:
        labels = [int(line) for line in lines]
    if not train or len(labels) != len(validation):
        sys.exit(f"{data}: {len(train)} images to train, {len(validation)} to validate, {len(labels)} labels")
    folders = sorted({os.path.dirname(path) for path in train})
    return [(path, 1 + folders.index(os.path.dirname(path))) for path in train], list(zip(validation, labels))


def main():
    data, config = sys.argv[1:]
    records = tempfile.mkdtemp()
    for split, samples in zip(("train", "validation"), samples_of(data)):
        write_records(samples, split, records)
    strategy = "multi_worker_mirrored" if int(os.environ["WORLD_SIZE"]) > 1 else "one_device"
    sys.argv = ["classifier_trainer.py", "--mode=train_and_eval", "--model_type=resnet", "--dataset=imagenet", f"--model_dir={tempfile.mkdtemp()}",
                f"--data_dir={records}", f"--config_file={config}", "--log_steps=2",
                f"--params_override=runtime.distribution_strategy={strategy},train_dataset.num_devices={os.environ['WORLD_SIZE']}"]
    runpy.run_module("official.legacy.image_classification.classifier_trainer", run_name="__main__", alter_sys=True)


main()
