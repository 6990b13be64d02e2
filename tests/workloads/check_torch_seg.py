# SPDX-License-Identifier: Apache-2.0
"""Holds `reperf-train --model MODEL --check` against the same network in PyTorch (workloads/competitors/nets_torch.py). Speaks TAP.
Usage: check_torch_seg.py REPERF_TRAIN SCRATCH_FOLDER MODEL. Limits and file format are check_torch.py's."""
import copy
import os
import sys

import numpy as np
import torch

from check_torch import F64_LIMIT, Tap, backends, engine_results, pooled_limits, refused, rel, strict_limits, torch_results, worst
import nets_torch  # found by check_torch

CLASSES, IGNORED = 19, 255


class Case:
    def __init__(self, net, parameters, shapes, planted):
        self.net, self.parameters, self.shapes, self.planted = net, parameters, shapes, planted


# Shapes that halve evenly, and ones that never do. A batch norm of DeepLab's sees one value a sample: with two samples it
# gives plus and minus 1 for any input, so three.
CASES = {
    "hrnet_w18": Case(nets_torch.HRNet, 9640830, [(2, 3, 64, 64), (3, 3, 45, 53)],
                      ["grad.backbone.conv_layer1_1._conv.weight", "head.conv_1._batch_norm._variance", "grad.head.cls.weight"]),
    "deeplabv3p": Case(nets_torch.DeepLab, 26723395, [(3, 3, 35, 51), (3, 3, 48, 64)],
                       ["grad.backbone.conv1_1._conv.weight", "head.aspp.conv_bn_relu._batch_norm._variance", "grad.head.decoder.conv.weight"]),
    "deeplabv3p_mmseg": Case(nets_torch.DeepLabMmseg, 43589878, [(3, 3, 35, 51)],
                             ["grad.backbone.stem.0.weight", "decode_head.bottleneck.bn.running_var", "grad.auxiliary_head.conv_seg.weight"]),
}
MODEL = sys.argv[3]
CASE = CASES[MODEL]


def make_model(seed, lift=0.0):
    """Weights away from what a fresh network has, and such that F32 holds them exactly. `lift` is the mean of the batch
    norms' biases: with 0 half of what they give is below zero, with 4 next to nothing is near it."""
    torch.manual_seed(seed)
    model = CASE.net().double()
    norms = {n for n, m in model.named_modules() if isinstance(m, torch.nn.BatchNorm2d)}
    for name, p in model.named_parameters():
        if name.rpartition(".")[0] in norms:
            torch.nn.init.normal_(p, 1.0 if name.endswith("weight") else lift, 0.1)
        elif p.dim() == 1:
            torch.nn.init.normal_(p, 0.0, 0.1)
        else:
            torch.nn.init.kaiming_normal_(p, mode="fan_out", nonlinearity="relu")
    for name, b in model.named_buffers():
        if b.dim() == 1:
            b.copy_(torch.rand_like(b) + (0.5 if name.endswith("var") else -0.5))
    for t in list(model.parameters()) + [b for b in model.buffers() if b.dim() == 1]:
        t.data.copy_(t.data.float().double())
    return model


def make_batch(shape, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, (shape[0],) + shape[2:], dtype=np.int64)
    labels[rng.random(labels.shape) < 0.1] = IGNORED
    return rng.standard_normal(shape).astype(np.float32), labels


def distances(results, reference):
    """Relative, by name. A bias that the next batch norm takes away again has no gradient but for rounding: that of a
    convolution before one, and that of a depthwise batch norm, which only a 1x1 convolution stands before the next. Its scale
    is that of the weights beside it."""
    out = {}
    for name, want in reference.items():
        if name.startswith("grad.") and name.endswith(("._conv.bias", "depthwise_conv._batch_norm.bias")):
            scale = np.linalg.norm(reference[name[:-4] + "weight"])
            out[name] = float(np.linalg.norm(results[name].astype(np.float64) - want) / scale)
        else:
            out[name] = rel(results[name], want)
    return out


def state_of(model):
    return {nets_torch.name_of(n): t.numpy().copy() for n, t in model.state_dict().items() if t.dim() > 0}


def torch_f32_errors(model, x, labels, reference):
    """The larger of what PyTorch's two sets of CPU kernels come to: one of them alone is one draw."""
    worst_of = {}
    for has_mkldnn in (True, False):
        with torch.backends.mkldnn.flags(enabled=has_mkldnn):
            results = torch_results(copy.deepcopy(model).float(), torch.from_numpy(x), torch.from_numpy(labels))
        for name, error in distances(results, reference).items():
            worst_of[name] = max(error, worst_of.get(name, 0.0))
    return worst_of


def check_f32(tap, train, folder, title, x, labels, seed):
    """With lifted biases. Some two million values meet a ReLU in this network; rounding in F32 turns a few of those near
    zero around, in each framework others, and one of them changes a whole gradient by 1e-2: the ratio of two such errors
    says nothing. The masks themselves are held to 1e-9 in F64."""
    model = make_model(seed, 4.0)
    state32 = {n: t.astype(np.float32) for n, t in state_of(model).items()}
    reference = torch_results(copy.deepcopy(model), torch.from_numpy(x).double(), torch.from_numpy(labels))
    theirs = torch_f32_errors(model, x, labels, reference)
    for backend in backends(train):
        limits = strict_limits(theirs) if backend == "plain" else pooled_limits(theirs)
        ours = engine_results(train, folder, state32, x, labels, ["--backend", backend], MODEL)
        errors = distances(ours, reference)
        name = worst(errors, limits)
        ratios = sorted(errors[n] / max(theirs[n], 1e-30) for n in errors)
        tap.ok(errors[name] <= limits[name], "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend),
               "worst %s %.2e of %.2e; ratio to PyTorch's: median %.2f, most %.2f" % (
                   name, errors[name], limits[name], ratios[len(ratios) // 2], ratios[-1]))
        fault = CASE.planted[2]
        tap.ok(rel(ours[fault] * np.float32(1.2), reference[fault]) > limits[fault],
               "%s: F32 (%s) a gradient that is 20 %% too large is caught" % (title, backend))


def check_f32_masks(tap, train, folder, title, state, x, labels, reference):
    """With half of everything below zero: a mask that is wrong is off by its whole size, those few roundings by some 1e-2."""
    state32 = {n: t.astype(np.float32) for n, t in state.items()}
    for backend in backends(train):
        ours = engine_results(train, folder, state32, x, labels, ["--backend", backend], MODEL)
        median = float(np.median(list(distances(ours, reference).values())))
        tap.ok(median <= 0.1, "%s: F32 (%s) with as many masks as not" % (title, backend), "median error %.2e" % median)


def check_shape(tap, train, folder, shape, seed, has_f32=True):
    title = "x".join(map(str, shape))
    model = make_model(seed)
    state = state_of(model)
    x, labels = make_batch(shape, seed)
    ours = engine_results(train, folder, state, x.astype(np.float64), labels, model=MODEL)
    reference = torch_results(model, torch.from_numpy(x).double(), torch.from_numpy(labels))
    tap.ok(sorted(ours) == sorted(reference), title + ": the engine writes the results PyTorch has, by the reference's names",
           "%d tensors" % len(ours))
    tap.ok(all(ours[n].shape == reference[n].shape and ours[n].dtype == np.float64 for n in reference), title + ": shapes and type")
    errors = distances(ours, reference)
    name = max(errors, key=errors.get)
    tap.ok(errors[name] <= F64_LIMIT, title + ": F64 within 1e-9 of PyTorch", "worst %s %.2e" % (name, errors[name]))
    if has_f32:
        check_f32_masks(tap, train, folder, title, state, x, labels, reference)
        check_f32(tap, train, folder, title, x, labels, seed)
    return state, x, labels, reference, ours


def check_planted(tap, reference, ours):
    for name in CASE.planted + ["logits"]:
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
    total = sum(p.numel() for p in CASE.net().parameters())
    tap.ok(total == CASE.parameters, "the network of this test has %s's %d parameters" % (MODEL, CASE.parameters), str(total))
    is_all = os.environ.get("TIER") == "all"
    has_f32 = CASE.parameters < 2e7 or is_all  # HRNet has most kernels; test_wl_net holds dilation and depthwise to oneDNN's
    if not has_f32:
        print("# test-all: against PyTorch: F32 of %s" % MODEL)
    state, x, labels, reference, ours = check_shape(tap, train, folder, CASE.shapes[0], 1, has_f32)
    check_planted(tap, reference, ours)
    if CASE.parameters < 2e7:  # the same code for every model; their files are large
        check_labels(tap, train, folder, state, x, labels)
    for shape in CASE.shapes[1:]:
        if is_all:
            check_shape(tap, train, folder, shape, 2)
        else:
            print("# test-all: against PyTorch: %s, %s" % (MODEL, "x".join(map(str, shape))))
    print("1..%d" % tap.n)
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
