# SPDX-License-Identifier: Apache-2.0
"""The networks of the reports as their own packages build them, for `reperf-bench agree` alone (README.md here).
  paddleseg    HRNet-W18 and DeepLabV3+ by PaddleSeg, dropout off
  mmseg        DeepLabV3+ by mmsegmentation, dropout off
  torchvision  ResNet-50"""
import importlib.util
import os

import numpy as np

import peer
import tensors

HERE = os.path.dirname(os.path.abspath(__file__))
NO_CLASS = 255
STATISTICS = ("running_mean", "running_var", "_mean", "_variance")
CONFIGS = {"hrnet_w18": "hrnetw18.yml", "deeplabv3p": "deeplabv3p.yml"}


class Paddleseg:
    models = tuple(CONFIGS)

    def __init__(self, model):
        import cv2  # noqa: F401  before paddle: see paddleseg/train.py
        import paddle
        from paddleseg.cvlibs import Config, SegBuilder
        self.paddle = paddle
        paddle.set_device("cpu")
        self.version = "paddleseg of paddle %s" % paddle.__version__
        self.net = SegBuilder(Config(os.path.join(HERE, "paddleseg", CONFIGS[model]))).model
        self.net.train()
        for layer in self.net.sublayers():
            if "Dropout" in type(layer).__name__:
                layer.eval()

    def shapes(self):
        return {n: t.shape for n, t in self.net.state_dict().items()}

    def statistics(self):
        return {n: t.numpy() for n, t in self.net.state_dict().items() if n.endswith(STATISTICS)}

    def load(self, state):
        self.net.set_state_dict({n: self.paddle.to_tensor(t) for n, t in state.items()})

    def check(self, batch):
        from paddleseg.models.losses import CrossEntropyLoss
        logits = self.net(self.paddle.to_tensor(batch["input"]))[0]
        loss = CrossEntropyLoss(ignore_index=NO_CLASS)(logits, self.paddle.to_tensor(batch["labels"]))
        loss.backward()
        grads = {n: p.grad.numpy() for n, p in self.net.named_parameters() if not p.stop_gradient}
        return float(loss), logits.numpy(), grads


class OfTorch:
    def shapes(self):
        return {n: t.shape for n, t in self.net.state_dict().items() if not n.endswith("num_batches_tracked")}

    def statistics(self):
        return {n: t.numpy() for n, t in self.net.state_dict().items() if n.endswith(STATISTICS)}

    def load(self, state):
        self.net.load_state_dict({n: self.torch.from_numpy(t) for n, t in state.items()}, strict=False)

    def check(self, batch):
        logits, loss = self.loss(self.torch.from_numpy(batch["input"]), self.torch.from_numpy(batch["labels"]))
        loss.backward()
        return loss.item(), logits.detach().numpy(), {n: p.grad.numpy() for n, p in self.net.named_parameters()}


class Torchvision(OfTorch):
    models = ("resnet50",)

    def __init__(self, _model):
        import torch
        import torchvision
        self.torch, self.version = torch, "torchvision %s" % torchvision.__version__
        self.net = torchvision.models.resnet50().train()

    def loss(self, images, labels):
        logits = self.net(images)
        return logits, self.torch.nn.functional.cross_entropy(logits, labels)


def answer_for_cuda():
    """What a run of mmsegmentation gets by PYTHONPATH."""
    os.environ["REPERF_DEVICE"] = "cpu"
    spec = importlib.util.spec_from_file_location("answers", os.path.join(HERE, "mmseg", "sitecustomize.py"))
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


class Mmseg(OfTorch):
    models = ("deeplabv3p_mmseg",)

    def __init__(self, _model):
        answer_for_cuda()
        import mmseg
        import torch
        from mmcv import Config
        from mmseg.models import build_segmentor
        self.torch, self.version = torch, "mmsegmentation %s" % mmseg.__version__
        config = Config.fromfile(mmseg.__path__[0] + "/.mim/configs/deeplabv3plus/deeplabv3plus_r50-d8_512x1024_80k_cityscapes.py").model
        norm = dict(type="BN", requires_grad=True)
        for part in (config.backbone, config.decode_head, config.auxiliary_head):
            part.norm_cfg = norm
        config.pretrained = None
        config.decode_head.dropout_ratio = config.auxiliary_head.dropout_ratio = 0
        self.net = build_segmentor(config).train()

    def loss(self, images, labels):
        """As mmsegmentation weighs its heads, but divided by the pixels that have a class: its 0.20.2 divides by all of them."""
        functional, total = self.torch.nn.functional, 0
        features = self.net.extract_feat(images)
        for head, weight in ((self.net.auxiliary_head, 0.4), (self.net.decode_head, 1.0)):
            logits = functional.interpolate(head(features), size=labels.shape[1:], mode="bilinear", align_corners=False)
            total = total + weight * functional.cross_entropy(logits, labels, ignore_index=NO_CLASS)
        return logits, total


ORIGINALS = {"paddleseg": Paddleseg, "mmseg": Mmseg, "torchvision": Torchvision}


def build(args):
    original = ORIGINALS[args.mode]
    if args.model not in original.models:
        peer.give_up(peer.NOT_HERE, "%s: has no %s that ours follows" % (args.mode, args.model))
    if args.device != "cpu" or args.precision != "fp32" or args.steps:
        peer.give_up(peer.NOT_HERE, "%s: is held against ours on a CPU in FP32, without timing" % args.mode)
    try:
        return original(args.model)
    except ImportError as e:
        peer.give_up(peer.NOT_HERE, "%s is not installed: %s" % (args.mode, e))


def main():
    args = peer.options(list(ORIGINALS))
    net, start = build(args), peer.Start(args.check)
    shapes = net.shapes()
    # A start has no running statistics: they do not go into what is computed here.
    own = {n: s for n, s in shapes.items() if n in start.state or not n.endswith(STATISTICS)}
    peer.fits(start.state, own, args.check)
    net.load({n: np.array(t) for n, t in start.state.items()})
    loss, logits, grads = net.check({n: np.array(t) for n, t in start.batch.items()})
    out = {"loss": np.float32(loss), "logits": np.ascontiguousarray(logits)}
    out.update({"grad." + n: np.ascontiguousarray(g) for n, g in grads.items()})
    out.update({n: np.ascontiguousarray(t) for n, t in net.statistics().items()})
    tensors.write(args.out, out)
    return 0


if __name__ == "__main__":
    peer.run(main)
