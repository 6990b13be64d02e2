# SPDX-License-Identifier: Apache-2.0
"""Holds `reperf-train --model hrnet_w18 --check` against the same network in PyTorch. Speaks TAP.
Usage: check_torch_hrnet.py REPERF_TRAIN SCRATCH_FOLDER

The network is written here from the paper's section 3 and PaddleSeg's names; limits and file format are check_torch.py's."""
import sys

import numpy as np
import torch
import torch.nn.functional as F

from check_torch import F64_LIMIT, Tap, backends, engine_results, pooled_limits, refused, rel, strict_limits, torch_results, worst

MODEL = "hrnet_w18"
CLASSES, IGNORED = 19, 255
WIDTHS = [18, 36, 72, 144]


class ConvNorm(torch.nn.Module):
    def __init__(self, c_in, c_out, kernel, stride=1, relu=True):
        super().__init__()
        self._conv = torch.nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
        self._batch_norm = torch.nn.BatchNorm2d(c_out)
        self.relu = relu

    def forward(self, x):
        y = self._batch_norm(self._conv(x))
        return F.relu(y) if self.relu else y


class Residual(torch.nn.Module):
    """Convolutions in a row and a way around them."""

    def __init__(self, parts, around=None):
        super().__init__()
        for i, part in enumerate(parts):
            self.add_module("conv%d" % (i + 1), part)
        self.n = len(parts)
        self.conv_down = around

    def forward(self, x):
        y = x
        for i in range(self.n):
            y = getattr(self, "conv%d" % (i + 1))(y)
        return F.relu(y + (x if self.conv_down is None else self.conv_down(x)))


def container(**modules):
    out = torch.nn.Module()
    for name, module in modules.items():
        out.add_module(name, module)
    return out


def as_large_as(x, like):
    return F.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=False)


class Exchange(torch.nn.Module):
    def __init__(self, name, n):
        super().__init__()
        self.prefix, self.n = "residual_%s_layer_" % name, n
        for to in range(n):
            for source in range(n):
                if source > to:
                    self.add_module("%s%d_%d" % (self.prefix, to + 1, source + 1), ConvNorm(WIDTHS[source], WIDTHS[to], 1, relu=False))
                for i in range(to - source):
                    last = i == to - source - 1
                    width = WIDTHS[to] if last else WIDTHS[source]
                    self.add_module("%s%d_%d_%d" % (self.prefix, to + 1, source + 1, i + 1),
                                    ConvNorm(WIDTHS[source], width, 3, 2, relu=not last))

    def part(self, x, source, to):
        name = "%s%d_%d" % (self.prefix, to + 1, source + 1)
        if source > to:
            return as_large_as(getattr(self, name)(x[source]), x[to])
        y = x[source]
        for i in range(to - source):
            y = getattr(self, "%s_%d" % (name, i + 1))(y)
        return y

    def forward(self, x):
        return [F.relu(sum((self.part(x, s, to) for s in range(self.n) if s != to), x[to])) for to in range(self.n)]


class Module(torch.nn.Module):
    def __init__(self, name, n):
        super().__init__()
        self.name, self.n = name, n
        self.branches_func = container(**{
            "bb_%s_branch_layer_%d_%d" % (name, i + 1, j + 1):
                Residual([ConvNorm(WIDTHS[i], WIDTHS[i], 3), ConvNorm(WIDTHS[i], WIDTHS[i], 3, relu=False)])
            for i in range(n) for j in range(4)})
        self.fuse_func = Exchange(name, n)

    def forward(self, x):
        x = list(x)
        for i in range(self.n):
            for j in range(4):
                x[i] = getattr(self.branches_func, "bb_%s_branch_layer_%d_%d" % (self.name, i + 1, j + 1))(x[i])
        return self.fuse_func(x)


class HRNet(torch.nn.Module):
    STAGES = {2: 1, 3: 4, 4: 3}  # modules

    def __init__(self):
        super().__init__()
        b = self.backbone = torch.nn.Module()
        b.conv_layer1_1 = ConvNorm(3, 64, 3, 2)
        b.conv_layer1_2 = ConvNorm(64, 64, 3, 2)
        b.la1 = container(**{
            "bb_layer2_%d" % (i + 1):
                Residual([ConvNorm(256 if i else 64, 64, 1), ConvNorm(64, 64, 3), ConvNorm(64, 256, 1, relu=False)],
                         None if i else ConvNorm(64, 256, 1, relu=False))
            for i in range(4)})
        b.tr1 = container(transition_tr1_layer_1=ConvNorm(256, 18, 3), transition_tr1_layer_2=ConvNorm(256, 36, 3, 2))
        b.tr2 = container(transition_tr2_layer_3=ConvNorm(36, 72, 3, 2))
        b.tr3 = container(transition_tr3_layer_4=ConvNorm(72, 144, 3, 2))
        for stage, n in self.STAGES.items():
            b.add_module("st%d" % stage, container(**{
                "stage_st%d_%d" % (stage, i + 1): Module("st%d_%d" % (stage, i + 1), stage) for i in range(n)}))
        self.head = container(conv_1=ConvNorm(270, 270, 1), cls=torch.nn.Conv2d(270, CLASSES, 1, bias=False))

    def features(self, image):
        b = self.backbone
        x = b.conv_layer1_2(b.conv_layer1_1(image))
        for block in b.la1.children():
            x = block(x)
        x = [b.tr1.transition_tr1_layer_1(x), b.tr1.transition_tr1_layer_2(x)]
        for stage in self.STAGES:
            if stage > 2:
                x = x + [next(getattr(b, "tr%d" % (stage - 1)).children())(x[-1])]
            for module in getattr(b, "st%d" % stage).children():
                x = module(x)
        return torch.cat([x[0]] + [as_large_as(y, x[0]) for y in x[1:]], dim=1)

    def forward(self, image):
        return as_large_as(self.head.cls(self.head.conv_1(self.features(image))), image)


def paddle_name(name):
    return name.replace("_batch_norm.running_mean", "_batch_norm._mean").replace("_batch_norm.running_var", "_batch_norm._variance")


def make_model(seed, lift=0.0):
    """Weights away from what a fresh network has, and such that F32 holds them exactly. `lift` is the mean of the batch
    norms' biases: with 0 half of what they give is below zero, with 4 next to nothing is near it."""
    torch.manual_seed(seed)
    model = HRNet().double()
    for name, p in model.named_parameters():
        if "_batch_norm" in name:
            torch.nn.init.normal_(p, 1.0 if name.endswith("weight") else lift, 0.1)
        else:
            torch.nn.init.kaiming_normal_(p, mode="fan_out", nonlinearity="relu")
    for name, b in model.named_buffers():
        if b.dim() == 1:
            b.copy_(torch.rand_like(b) + (0.5 if name.endswith("var") else -0.5))
    for t in list(model.parameters()) + [b for b in model.buffers() if b.dim() == 1]:
        t.data.copy_(t.data.float().double())
    return model


def reference_results(model, x, labels):
    return {paddle_name(n): t for n, t in torch_results(model, x, labels, IGNORED).items()}


def make_batch(shape, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, (shape[0],) + shape[2:], dtype=np.int64)
    labels[rng.random(labels.shape) < 0.1] = IGNORED
    return rng.standard_normal(shape).astype(np.float32), labels


def state_of(model):
    return {paddle_name(n): t.numpy().copy() for n, t in model.state_dict().items() if t.dim() > 0}


def check_f32(tap, train, folder, title, x, labels, seed):
    """With lifted biases. Some two million values meet a ReLU in this network; rounding in F32 turns a few of those near
    zero around, in each framework others, and one of them changes a whole gradient by 1e-2: the ratio of two such errors
    says nothing. The masks themselves are held to 1e-9 in F64."""
    model = make_model(seed, 4.0)
    state32 = {n: t.astype(np.float32) for n, t in state_of(model).items()}
    reference = reference_results(model, torch.from_numpy(x).double(), torch.from_numpy(labels))
    theirs = reference_results(make_model(seed, 4.0).float(), torch.from_numpy(x), torch.from_numpy(labels))
    theirs = {n: rel(theirs[n], reference[n]) for n in reference}
    for backend in backends(train):
        limits = strict_limits(theirs) if backend == "plain" else pooled_limits(theirs)
        ours = engine_results(train, folder, state32, x, labels, ["--backend", backend], MODEL)
        errors = {n: rel(ours[n], reference[n]) for n in reference}
        name = worst(errors, limits)
        ratios = sorted(errors[n] / max(theirs[n], 1e-30) for n in errors)
        tap.ok(errors[name] <= limits[name], "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend),
               "worst %s %.2e of %.2e; ratio to PyTorch's: median %.2f, most %.2f" % (
                   name, errors[name], limits[name], ratios[len(ratios) // 2], ratios[-1]))
        fault = "grad.head.cls.weight"
        tap.ok(rel(ours[fault] * np.float32(1.2), reference[fault]) > limits[fault],
               "%s: F32 (%s) a gradient that is 20 %% too large is caught" % (title, backend))


def check_f32_masks(tap, train, folder, title, state, x, labels, reference):
    """With half of everything below zero: a mask that is wrong is off by its whole size, those few roundings by 1e-2 at most."""
    state32 = {n: t.astype(np.float32) for n, t in state.items()}
    for backend in backends(train):
        ours = engine_results(train, folder, state32, x, labels, ["--backend", backend], MODEL)
        median = float(np.median([rel(ours[n], reference[n]) for n in reference]))
        tap.ok(median <= 1e-2, "%s: F32 (%s) with as many masks as not" % (title, backend), "median error %.2e" % median)


def check_shape(tap, train, folder, shape, seed):
    title = "x".join(map(str, shape))
    model = make_model(seed)
    state = state_of(model)
    x, labels = make_batch(shape, seed)
    ours = engine_results(train, folder, state, x.astype(np.float64), labels, model=MODEL)
    reference = reference_results(model, torch.from_numpy(x).double(), torch.from_numpy(labels))
    tap.ok(sorted(ours) == sorted(reference), title + ": the engine writes the results PyTorch has, by PaddleSeg's names",
           "%d tensors" % len(ours))
    tap.ok(all(ours[n].shape == reference[n].shape and ours[n].dtype == np.float64 for n in reference), title + ": shapes and type")
    errors = {n: rel(ours[n], reference[n]) for n in reference}
    name = max(errors, key=errors.get)
    tap.ok(errors[name] <= F64_LIMIT, title + ": F64 within 1e-9 of PyTorch", "worst %s %.2e" % (name, errors[name]))
    check_f32_masks(tap, train, folder, title, state, x, labels, reference)
    check_f32(tap, train, folder, title, x, labels, seed)
    return state, x, labels, reference, ours


def check_planted(tap, reference, ours):
    for name in ["grad.backbone.conv_layer1_1._conv.weight", "head.conv_1._batch_norm._variance", "logits"]:
        planted = np.array(ours[name])
        planted.flat[0] += 1e-7 * np.linalg.norm(planted)
        tap.ok(rel(planted, reference[name]) > F64_LIMIT, "planted fault of 1e-7 in %s is caught" % name)


def check_labels(tap, train, folder, state, x, labels):
    whole = {**state, "input": x.astype(np.float64), "labels": labels}
    for label in (CLASSES, 254, 256, -1):
        wrong = labels.copy()
        wrong[0, 0, 5] = label
        refused(tap, train, folder, {**whole, "labels": wrong}, "tensor labels: element 5 is %d, expected 0 to 18 or 255" % label,
                "label %d is refused" % label, MODEL)
    refused(tap, train, folder, {**whole, "labels": labels[:, 0, 0].copy()}, "tensor labels", "one label an image is refused", MODEL)
    nothing = np.full_like(labels, IGNORED)
    ours = engine_results(train, folder, state, x.astype(np.float64), nothing, model=MODEL)
    quiet = all(not t.any() for n, t in ours.items() if n.startswith("grad."))
    tap.ok(float(ours["loss"]) == 0.0 and quiet, "a batch whose every pixel is ignored has loss 0 and no gradient")


def main():
    train, folder = sys.argv[1], sys.argv[2]
    torch.set_num_threads(2)
    tap = Tap()
    total = sum(p.numel() for p in HRNet().parameters())
    tap.ok(total == 9640830, "the network of this test has HRNet-W18's 9,640,830 parameters", str(total))
    state, x, labels, reference, ours = check_shape(tap, train, folder, (2, 3, 64, 128), 1)
    check_planted(tap, reference, ours)
    check_labels(tap, train, folder, state, x, labels)
    check_shape(tap, train, folder, (3, 3, 45, 53), 2)  # no size halves evenly
    print("1..%d" % tap.n)
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
