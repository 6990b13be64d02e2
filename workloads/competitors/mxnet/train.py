# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 v1.5 in MXNet's Gluon on the CPU: the report's benchmark.py is not on the package index. It says what that would say: arguments, speed
lines, and a closing table with the mean rate of the epochs after the warm-up. A device of the report's is a context cpu(i) of one process."""
import argparse
import logging
import time

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.gluon.data.vision import ImageFolderDataset, transforms


MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Bottleneck(nn.HybridBlock):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body, self.shortcut = nn.HybridSequential(), None
        for channels, kernel, step, act in ((width, 1, 1, True), (width, 3, stride, True), (4 * width, 1, 1, False)):
            self.body.add(nn.Conv2D(channels, kernel, step, kernel // 2, use_bias=False), nn.BatchNorm())
            if act:
                self.body.add(nn.Activation("relu"))
        if inputs != 4 * width or stride != 1:
            self.shortcut = nn.HybridSequential()
            self.shortcut.add(nn.Conv2D(4 * width, 1, stride, use_bias=False), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        return F.relu(self.body(x) + (self.shortcut(x) if self.shortcut else x))


def resnet50():
    net, inputs = nn.HybridSequential(), 64
    net.add(nn.Conv2D(64, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))
    for width, depth in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(depth):
            net.add(Bottleneck(inputs, width, 2 if block == 0 and width > 64 else 1))
            inputs = 4 * width
    net.add(nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(1000))
    return net


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-train", required=True, help="a folder a class")
    parser.add_argument("--data-backend", default="mxnet", choices=["mxnet"])
    for name, default in (("batch-size", 4), ("benchmark-iters", 20), ("num-epochs", 2), ("warmup-epochs", 1), ("image-size", 64), ("disp-batches", 1), ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    for name, default in (("lr", 0.01), ("mom", 0.875), ("wd", 3.0517578125e-05), ("label-smoothing", 0.1)):
        parser.add_argument("--" + name, type=float, default=default)
    parser.add_argument("--gpus", type=lambda text: list(range(int(text))), default=[0])
    parser.set_defaults(arch="resnetv15", num_layers=50, dtype="float32")
    return parser.parse_args()


def batches(opts):
    data = ImageFolderDataset(opts.data_train).transform_first(transforms.Compose([
        transforms.RandomResizedCrop(opts.image_size), transforms.RandomFlipLeftRight(), transforms.ToTensor(),
        transforms.Normalize(MEAN, DEVIATION)]))
    while True:
        yield from gluon.data.DataLoader(data, opts.batch_size, shuffle=True, last_batch="discard")


def accuracy(net, opts, device):
    """Of every third image that it trains on, cut out of its middle; the line is that of MXNet's own `fit`."""
    data = ImageFolderDataset(opts.data_train).transform_first(transforms.Compose([
        transforms.Resize(opts.image_size * 8 // 7, keep_ratio=True), transforms.CenterCrop(opts.image_size), transforms.ToTensor(),
        transforms.Normalize(MEAN, DEVIATION)]))
    metric = mx.metric.Accuracy()
    for images, labels in gluon.data.DataLoader(data, 1, sampler=range(0, len(data), 3)):
        metric.update([labels], [net(images.as_in_context(device))])
    return metric.get()


def main():
    opts = options()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s:%(levelname)s: %(message)s")
    logging.info("Start with arguments %s", opts)
    mx.random.seed(opts.seed)
    devices = [mx.cpu(i) for i in opts.gpus]
    net = resnet50()
    net.initialize(mx.init.Xavier(), ctx=devices)
    net.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "nag", {"learning_rate": opts.lr, "momentum": opts.mom, "wd": opts.wd}, kvstore="device")
    smoothed = gluon.loss.SoftmaxCrossEntropyLoss(sparse_label=False)
    feed, times = batches(opts), []
    for epoch in range(opts.num_epochs):
        logging.info("Starting epoch %d", epoch)
        for step in range(opts.benchmark_iters):
            begun = time.monotonic()
            images, labels = next(feed)
            labels = mx.nd.one_hot(labels, 1000, 1 - opts.label_smoothing + opts.label_smoothing / 1000, opts.label_smoothing / 1000)
            with autograd.record():
                losses = [smoothed(net(x), y) for x, y in zip(gluon.utils.split_and_load(images, devices), gluon.utils.split_and_load(labels, devices))]
            autograd.backward(losses)
            trainer.step(opts.batch_size)
            loss = sum(float(part.sum().asscalar()) for part in losses) / opts.batch_size
            mx.nd.waitall()
            times += [time.monotonic() - begun] if epoch >= opts.warmup_epochs else []
            if (step + 1) % opts.disp_batches == 0:
                logging.info("Epoch[%d] Batch [%d-%d]\tSpeed: %s samples/sec\tLR: %s\tLoss: %.4f", epoch, step + 1 - opts.disp_batches, step,
                             opts.batch_size / (time.monotonic() - begun), opts.lr, loss)
            if loss != loss:
                raise SystemExit("the loss is not a number")
    logging.info("Epoch[%d] Validation-%s=%f", opts.num_epochs - 1, *accuracy(net, opts, devices[0]))
    logging.info("Parameters: %d", sum(p.data(devices[0]).size for p in net.collect_params().values() if p.grad_req != "null"))
    print("train.total_ips\n           |  {0:^7}  |\n{1}\n   {2:^7} | {3:^9.4g} |\n".format(
        opts.batch_size // len(opts.gpus), "-" * 24, len(opts.gpus), opts.batch_size * len(times) / sum(times)), flush=True)


main()
