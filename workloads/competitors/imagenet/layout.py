#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layout.py IN OUT [N]: ImageNet as frameworks read it. OUT/train and OUT/val get a folder a class, OUT/train_list.txt and OUT/val_list.txt a line
"PATH LABEL" an image (labels from 0, by the classes' names in order). Images are linked, never copied. Where the images of IN/val lie in no
folders, the development kit has the number of each one's class, and classes.txt beside this file its name. With N, that many training images and
none else: of each class, by their names, the first N over the number of classes, and of the first classes one more where that leaves a rest."""
import os
import sys


def folders(path):
    return sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)))


def val_by_kit(root, out):
    kit = os.path.join(root, "ILSVRC2012_devkit_t12", "data")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "classes.txt")) as lines:
        names = [None] + [line.strip() for line in lines if not line.startswith("#")]
    images = sorted(os.listdir(os.path.join(root, "val")))
    with open(os.path.join(kit, "ILSVRC2012_validation_ground_truth.txt")) as lines:
        truth = [names[int(line)] for line in lines]
    if len(images) != len(truth):
        sys.exit("layout.py: %d images in %s/val, the development kit knows %d" % (len(images), root, len(truth)))
    for image, name in zip(images, truth):
        os.makedirs(os.path.join(out, name), exist_ok=True)
        os.symlink(os.path.join(root, "val", image), os.path.join(out, name, image))


def write_list(out, split, classes):
    n = 0
    with open(os.path.join(out, split + "_list.txt"), "w") as lines:
        for label, name in enumerate(classes):
            folder = os.path.join(out, split, name)
            for image in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                lines.write("%s/%s/%s %d\n" % (split, name, image, label))
                n += 1
    return n


def subset(root, out, n):
    classes = folders(root)
    for at, name in enumerate(classes):
        os.makedirs(os.path.join(out, name))
        for image in sorted(os.listdir(os.path.join(root, name)))[:n // len(classes) + (at < n % len(classes))]:
            os.symlink(os.path.join(root, name, image), os.path.join(out, name, image))


def main():
    root, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    os.makedirs(out, exist_ok=True)
    if len(sys.argv) > 3:
        subset(os.path.join(root, "train"), os.path.join(out, "train"), int(sys.argv[3]))
    else:
        os.symlink(os.path.join(root, "train"), os.path.join(out, "train"))
    if folders(os.path.join(root, "val")):
        os.symlink(os.path.join(root, "val"), os.path.join(out, "val"))
    else:
        val_by_kit(root, os.path.join(out, "val"))
    classes = folders(os.path.join(out, "train"))
    others = set(folders(os.path.join(out, "val"))) - set(classes)
    if others:
        sys.exit("layout.py: no training images of %s" % ", ".join(sorted(others)[:5]))
    counts = tuple(write_list(out, split, classes) for split in ("train", "val"))
    print("ImageNet at %s: %d classes, %d training and %d validation images" % ((out, len(classes)) + counts))


main()
