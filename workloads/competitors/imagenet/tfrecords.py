#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tfrecords.py IN OUT: from ImageNet as layout.py lays it out to TFRecords as TensorFlow's ResNet-50 reads them: OUT/train-NNNNN-of-01024 and
OUT/validation-NNNNN-of-00128, each record the image's own bytes and its class from 1. The order of training images is drawn from a fixed seed.
TensorFlow writes them; one process a core."""
import multiprocessing
import os
import random
import sys

SPLITS = (("train", "train", 1024), ("val", "validation", 128))


def write(shard):
    import tensorflow as tf
    root, path, images = shard
    writer = (tf.io if hasattr(tf, "io") else tf.python_io).TFRecordWriter(path)
    for image, label in images:
        with open(os.path.join(root, image), "rb") as data:
            features = {"image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data.read()])),
                        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label + 1]))}
        writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    writer.close()


def shards(root, out):
    for split, name, n in SPLITS:
        with open(os.path.join(root, split + "_list.txt")) as lines:
            images = [(path, int(label)) for path, label in (line.split() for line in lines)]
        if split == "train":
            random.Random(0).shuffle(images)
        n = min(n, len(images))
        for idx in range(n):
            yield root, os.path.join(out, "%s-%05d-of-%05d" % (name, idx, n)), images[idx::n]


def main():
    root, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    work = list(shards(root, out))
    with multiprocessing.Pool() as pool:
        for _ in pool.imap_unordered(write, work):
            pass
    print("TFRecords at %s: %d files" % (out, len(work)))


if __name__ == "__main__":
    main()
