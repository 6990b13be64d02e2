# SPDX-License-Identifier: Apache-2.0
"""Holds `reperf-train --check` against the same networks in PyTorch (workloads/competitors/nets_torch.py). Speaks TAP.
Usage: check_torch.py REPERF_TRAIN SCRATCH_FOLDER [NET]. TIER=all: every network, at all its sizes, and every optimiser; otherwise what is left out is named.

Of each network: the results of one forward and backward; its logits with the statistics it has (--inference); and three steps of an optimiser.
In F64 every tensor must lie within 1e-9 relative norm of PyTorch's float64. In F32 the plain backend's error against the F64 reference may be at most 3
times PyTorch's own F32 error on that very tensor, of whose two sets of CPU kernels the larger error counts: one alone is one draw. oneDNN's tensors are held
to the larger of that and the median of PyTorch's errors over tensors of their kind: batch-norm networks amplify rounding, and the error of one tensor is one
draw of a wide distribution. Planted faults have to be caught."""
import copy
import os
import subprocess
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../workloads/competitors"))
import nets_nano  # noqa: E402,F401
import nets_torch  # noqa: E402
import tensors  # noqa: E402
from nets_torch import loss_of, name_of  # noqa: E402

F64_LIMIT = 1e-9
F32_FACTOR = 3.0
EPS = float(np.finfo(np.float32).eps)
# Of batch norms' biases, where F32 is held: next to no value is then near zero. Some two million values meet a ReLU in HRNet; rounding in F32 turns a few of
# those near zero around, in each framework others, and one of them changes a whole gradient by 1e-2: the ratio of two such errors says nothing. The masks
# themselves are held to 1e-9 in F64. Without it DeepLabV3+'s first gradient is 0.4 / lr times its weights, too, and PyTorch itself is 1e-7 away after three
# steps in F64 if weights change by two bits.
LIFT = 4.0
IGNORED = 255


class Net:
    """sizes: N, C, H, W, the first one every day, and a small one for steps and one for inference; of tokens N, S, P. planted: gradients and statistics that a
    fault of 1e-7 is planted in; fault: a gradient, and by how much it is made too large in F32. gain: of each layer's weights. Where it is large all tokens of a
    deep network come out alike, and the gradient of what tells keys apart is the difference of large numbers."""

    def __init__(self, name, parameters, sizes, planted, fault, for_steps=None, for_inference=None, classes=0, gain=0.0):
        self.name, self.parameters, self.sizes, self.planted, self.fault = name, parameters, sizes, planted, fault
        self.for_steps, self.for_inference, self.classes, self.gain = for_steps or sizes[0], for_inference or sizes[0], classes, gain
        self.is_tokens = classes == 0

    def model(self, seed, lift=0.0):
        """Weights away from what a fresh network has, and such that F32 holds them exactly. Of tokens, large enough for attention to choose."""
        torch.manual_seed(seed)
        model = nets_torch.NETS[self.name]().double()
        norms = {n for n, m in model.named_modules() if isinstance(m, (torch.nn.BatchNorm2d, torch.nn.LayerNorm))}
        for name, p in model.named_parameters():
            if name.rpartition(".")[0] in norms:
                torch.nn.init.normal_(p, 1.0 if name.endswith("weight") else 0.0 if self.is_tokens else lift, 0.1)
            elif self.is_tokens:
                torch.nn.init.normal_(p, 0.0, 0.1 if p.dim() == 1 or "embeddings" in name else self.gain / p.shape[1] ** 0.5)
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

    def batch(self, size, seed):
        """Of tokens: padding of several lengths, places that come twice, words that come often, predictions that are not used."""
        rng = np.random.default_rng(seed)
        if not self.is_tokens:
            labels = rng.integers(0, self.classes, (size[0],) + (size[2:] if self.classes < 1000 else ()), dtype=np.int64)
            if labels.ndim > 1:
                labels[rng.random(labels.shape) < 0.1] = IGNORED
            return {"input": rng.standard_normal(size).astype(np.float32), "labels": labels}
        n, length, predictions = size
        used = rng.integers((length + 1) // 2, length + 1, n)
        mask = (np.arange(length) < used[:, None]).astype(np.int64)
        words = nets_torch.NETS[self.name].WORDS
        ids = rng.choice([101, 102, 103, 2000, words - 1, 1592], (n, length)) * mask
        places = rng.integers(0, length, (n, predictions)) % used[:, None]
        masked = rng.integers(1, words, (n, predictions))
        masked[0, predictions // 2:] = 0
        places[0, predictions // 2:] = 0
        masked[-1, 0] = words - 1
        return {"input_ids": ids, "segment_ids": (np.arange(length) > used[:, None] // 2) * mask, "input_mask": mask,
                "masked_lm_positions": places, "masked_lm_ids": masked, "next_sentence_labels": rng.integers(0, 2, n)}


# Sizes that halve evenly, and ones that never do. A batch norm of DeepLab's sees one value a sample: with two samples it gives plus and minus 1 for any input,
# so three. No single sample: where every ReLU is open, the mean that ResNet-50 pools is then that of its last batch norm's bias for any input, and all
# gradients before it are zero but for rounding. Of tokens an odd length, more predictions than a short sequence has words, and one token.
NETS = [
    Net("resnet50", 25557032, [(3, 3, 33, 47), (4, 3, 64, 64), (2, 3, 97, 64)], ["grad.conv1.weight", "layer4.2.bn3.running_var"],
        ("grad.layer2.1.conv2.weight", 1.2), (4, 3, 40, 40), (1, 3, 33, 47), 1000),
    Net("hrnet_w18", 9640830, [(2, 3, 64, 64), (3, 3, 45, 53)], ["grad.backbone.conv_layer1_1._conv.weight", "head.conv_1._batch_norm._variance"],
        ("grad.head.cls.weight", 1.2), (3, 3, 40, 40), (2, 3, 45, 53), 19),
    Net("deeplabv3p", 26723395, [(3, 3, 35, 51), (3, 3, 48, 64)], ["grad.backbone.conv1_1._conv.weight", "head.aspp.conv_bn_relu._batch_norm._variance"],
        ("grad.head.decoder.conv.weight", 1.2), (3, 3, 33, 35), (1, 3, 35, 51), 19),
    Net("deeplabv3p_mmseg", 43589878, [(3, 3, 35, 51)], ["grad.backbone.stem.0.weight", "decode_head.bottleneck.bn.running_var"],
        ("grad.auxiliary_head.conv_seg.weight", 1.2), (3, 3, 33, 35), (1, 3, 35, 51), 19),
    Net("bert_nano", 824564, [(3, 32, 6), (2, 13, 13), (2, 1, 1)],
        ["grad.bert.embeddings.position_embeddings.weight", "grad.bert.encoder.layer.1.attention.self.value.weight",
         "grad.bert.embeddings.word_embeddings.weight", "grad.cls.predictions.bias", "next_sentence_logits"],
        ("grad.bert.encoder.layer.0.output.dense.weight", 1.001), gain=1.5),
    Net("bert_base", 110106428, [(2, 16, 3)], ["grad.bert.embeddings.position_embeddings.weight"],
        ("grad.bert.encoder.layer.0.output.dense.weight", 1.001), gain=0.6),
]


# --- both sides ----------------------------------------------------------------------------------------
def keep_variance(norm, _inputs):
    norm.was = norm.running_var.clone()


def as_paddle(norm, inputs, _output):
    count, kept = inputs[0].numel() / inputs[0].shape[1], (1 - norm.momentum) * norm.was
    norm.running_var = kept + (norm.running_var - kept) * (count - 1) / count  # a new one: backward still needs the old


def in_training(model, dtype):
    """A copy. Paddle's networks, whose batch norms are called _batch_norm, keep variances divided by all values; PyTorch divides by one less."""
    model = copy.deepcopy(model).to(dtype).train()
    for name, norm in model.named_modules():
        if name.endswith("_batch_norm"):
            norm.register_forward_pre_hook(keep_variance)
            norm.register_forward_hook(as_paddle)
    return model


def given(batch, dtype):
    return {n: torch.from_numpy(t).to(dtype) if t.dtype == np.float32 else torch.from_numpy(t) for n, t in batch.items()}


def numbers(found):
    return {n: t.detach().numpy().astype(np.float64) for n, t in found.items()}


def logits_of(model, batch):
    if isinstance(model, nets_torch.Bert):
        words, following = model(batch)
        return {"logits": words.flatten(0, 1), "next_sentence_logits": following}
    logits = model(batch["input"])
    return {"logits": logits[0] if isinstance(logits, tuple) else logits}


def statistics_of(model):
    return {name_of(n): b for n, b in model.named_buffers() if b.dim() == 1}


def torch_results(model, batch, dtype):
    model = in_training(model, dtype)
    batch = given(batch, dtype)
    logits, loss = loss_of(model, batch)
    loss.backward()
    out = logits_of(model, batch) if isinstance(model, nets_torch.Bert) else {"logits": logits}
    return numbers({**out, "loss": loss, **{"grad." + n: p.grad for n, p in model.named_parameters()}, **statistics_of(model)})


def torch_logits(model, batch, dtype, is_training=False):
    with torch.no_grad():
        return numbers(logits_of(copy.deepcopy(model).to(dtype).train(is_training), given(batch, dtype)))


METHODS = {
    # A large epsilon: a step is then never decided by the sign of a gradient that is only rounding. A small rate of SGD: the second and third gradient are
    # then not those of a network that one rounding has sent elsewhere, and F32's bound says something.
    "sgd": dict(lr=1e-3, momentum=0.9, weight_decay=0.01, decay="all"),
    "adamw": dict(lr=2e-3, beta1=0.9, beta2=0.99, eps=1e-3, weight_decay=0.01, decay="matrices"),
}
STEPS = 3


def torch_steps(model, batch, dtype, method, **changes):
    """What there is after each step, from the first on."""
    o = {**METHODS[method], **changes}
    model = in_training(model, dtype)
    batch = given(batch, dtype)
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1 or o["decay"] == "all"], "weight_decay": o["weight_decay"]},
              {"params": [p for p in model.parameters() if p.dim() <= 1 and o["decay"] != "all"], "weight_decay": 0.0}]
    groups = [g for g in groups if g["params"]]
    optimizer = (torch.optim.SGD(groups, lr=o["lr"], momentum=o["momentum"]) if method == "sgd"
                 else torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"]))
    after = []
    for _ in range(STEPS):
        model.zero_grad()
        loss = loss_of(model, batch)[1]
        loss.backward()
        optimizer.step()
        after.append({n: t.copy() for n, t in numbers({**{name_of(n): p for n, p in model.named_parameters()}, **statistics_of(model), "loss": loss}).items()})
    return after


def state_of(model):
    return {name_of(n): t.numpy().copy() for n, t in model.state_dict().items() if t.dim() > 0}


def files():
    return os.path.join(FOLDER, "in.safetensors"), os.path.join(FOLDER, "out.safetensors")


def engine(net, state, batch, dtype, *options):
    source, target = files()
    tensors.write(source, {n: t.astype(dtype) if t.dtype.kind == "f" else t for n, t in {**state, **batch}.items()})
    subprocess.run([TRAIN, "--model", net.name, "--check", source, "--out", target, *options], check=True)
    return tensors.read(target)


def backends():
    probe = subprocess.run([TRAIN, "--model", "resnet50", "--backend", "onednn", "--describe", "--image", "32"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["plain", "onednn"] if probe.returncode == 0 else ["plain"]


# --- how far apart ---------------------------------------------------------------------------------------
# No gradient but for rounding, so that its scale is that of the weights beside it: a bias that the next batch norm takes away again (that of a convolution
# before one, and that of a depthwise batch norm, which only a 1x1 convolution stands before the next), and what is added to every key alike.
TAKEN_AWAY = ("._conv.bias", "depthwise_conv._batch_norm.bias", "self.key.bias")


def rel(a, b, scale=None):
    norm = np.linalg.norm(b if scale is None else scale)
    return float(np.linalg.norm(a.astype(np.float64) - b) / (norm if norm > 0 else 1.0))


def distances(results, reference):
    return {n: rel(results[n], want, reference[n[:-4] + "weight"] if n.startswith("grad.") and n.endswith(TAKEN_AWAY) else None)
            for n, want in reference.items()}


def torch_errors(reference, compute):
    """The larger of what PyTorch's two sets of CPU kernels come to."""
    errors = []
    for has_mkldnn in (True, False):
        with torch.backends.mkldnn.flags(enabled=has_mkldnn):
            errors.append(distances(compute(), reference))
    return {n: max(e[n] for e in errors) for n in reference}


def kind(name):
    last = name.split(".")[-1]
    return last if last in ("running_mean", "running_var", "_mean", "_variance") else name.split(".")[0]


def limits_of(theirs, is_pooled):
    """Per tensor: 3 times PyTorch's own error on that very tensor, and no less than what rounding its values to F32 costs. Pooled: or its median error over
    tensors of that kind, if that is larger. The loss is one number made from the logits: its error may vanish by chance, so theirs is its yardstick too."""
    if not is_pooled:
        return {n: F32_FACTOR * max(e, EPS) for n, e in theirs.items()}
    of_kind = {}
    for name, error in theirs.items():
        of_kind.setdefault(kind(name), []).append(error)
    limits = {n: F32_FACTOR * max(e, float(np.median(of_kind[kind(n)])), EPS / 2) for n, e in theirs.items()}
    limits["loss"] = max(limits["loss"], limits.get("logits", 0.0))
    return limits


class Tap:
    n = bad = 0

    def ok(self, good, name, note=""):
        self.n += 1
        self.bad += not good
        print("%sok %d - %s%s" % ("" if good else "not ", self.n, name, " # " + note if note else ""), flush=True)

    def near(self, results, reference, limits, name):
        errors = distances(results, reference)
        worst = max(errors, key=lambda n: errors[n] / limits[n])
        self.ok(errors[worst] <= limits[worst], name, "worst %s %.2e of %.2e" % (worst, errors[worst], limits[worst]))


tap = Tap()


# --- results of one forward and backward -------------------------------------------------------------------
def check_f32(net, title, size, seed):
    model, batch = net.model(seed, LIFT), net.batch(size, seed)
    reference = torch_results(model, batch, torch.float64)
    theirs = torch_errors(reference, lambda: torch_results(model, batch, torch.float32))
    name, factor = net.fault
    for backend in backends():
        limits = limits_of(theirs, backend == "onednn" and not net.is_tokens)
        ours = engine(net, state_of(model), batch, np.float32, "--backend", backend)
        tap.near(ours, reference, limits, "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend))
        tap.ok(rel(ours[name] * np.float32(factor), reference[name]) > limits[name],
               "%s: F32 (%s) a gradient that is %g times as large is caught" % (title, backend, factor))


def check_results(net, size, seed):
    title = "%s, %s" % (net.name, "x".join(map(str, size)))
    model, batch = net.model(seed), net.batch(size, seed)
    state = state_of(model)
    ours, reference = engine(net, state, batch, np.float64), torch_results(model, batch, torch.float64)
    tap.ok(sorted(ours) == sorted(reference), title + ": the engine writes the results PyTorch has, by the reference's names", "%d tensors" % len(ours))
    tap.ok(all(ours[n].shape == reference[n].shape and ours[n].dtype == np.float64 for n in reference), title + ": shapes and type")
    tap.near(ours, reference, dict.fromkeys(reference, F64_LIMIT), title + ": F64 within 1e-9 of PyTorch")
    for name in net.planted + [net.fault[0], "logits"]:
        planted = np.array(ours[name])
        planted.flat[-1] += 1e-7 * np.linalg.norm(planted)
        tap.ok(rel(planted, reference[name]) > F64_LIMIT, title + ": planted fault of 1e-7 in %s is caught" % name)
    if not net.is_tokens:  # half of everything is below zero: a mask that is wrong is off by its whole size, a few roundings by some 1e-2
        for backend in backends():
            median = float(np.median(list(distances(engine(net, state, batch, np.float32, "--backend", backend), reference).values())))
            tap.ok(median <= 0.1, "%s: F32 (%s) with as many masks as not" % (title, backend), "median error %.2e" % median)
    check_f32(net, title, size, seed)
    return model, state, batch


def refused(net, content, needle, name):
    source, target = files()
    if os.path.exists(target):
        os.unlink(target)
    tensors.write(source, {n: t.astype(np.float64) if t.dtype == np.float32 and n == "input" else t for n, t in content.items()})
    got = subprocess.run([TRAIN, "--model", net.name, "--check", source, "--out", target], capture_output=True, text=True)
    good = got.returncode == 9 and needle in got.stderr and not os.path.exists(target)
    tap.ok(good, name, "" if good else "status %d: %s" % (got.returncode, got.stderr.strip()))


def changed(t, at, value):
    t = t.copy()
    t.flat[at] = value
    return t


def without(whole, name):
    return {n: t for n, t in whole.items() if n != name}


def refuse_images(net, model, state, batch):
    small, labels = batch, batch["labels"]
    for content, needle, name in [
            (without(small, "input"), "tensor input is missing", "a missing input is named"),
            (small, "tensor conv1.weight is missing", "a missing parameter is named"),
            ({**small, "layer5.weight": labels}, "tensor layer5.weight", "an extra tensor is named"),
            ({**small, "loss": np.zeros(())}, "tensor loss", "a result among the inputs is refused"),
            ({**small, "fc.num_batches_tracked": np.array(1)}, "tensor fc.num", "a counter of no batch norm is refused"),
            ({**small, "fc.bias": np.zeros(999)}, "tensor fc.bias", "a wrong shape is named"),
            ({**small, "fc.bias": np.zeros(1000, np.float32)}, "tensor fc.bias", "a wrong type is named"),
            ({**small, "labels": labels.astype(np.float64)}, "tensor labels", "labels that are no integers are refused"),
            ({**small, "input": batch["input"][:, :2]}, "tensor input", "a wrong channel count is refused"),
            ({**state, **small, "labels": labels + 1000}, "tensor labels: element 0", "a label out of range is named")]:
        refused(net, content, needle, name)
    # Without running statistics the engine starts from 0 and 1, as PyTorch's BatchNorm2d does.
    ours = engine(net, {n: t for n, t in state.items() if "running" not in n}, batch, np.float64)
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.reset_running_stats()
    reference = torch_results(model, batch, torch.float64)
    tap.near(ours, reference, dict.fromkeys(reference, F64_LIMIT), "running statistics that are not given start at 0 and 1")


def refuse_segments(net, _model, state, batch):
    whole, labels = {**state, **batch}, batch["labels"]
    for label in (net.classes, 254, 256, -1):
        refused(net, {**whole, "labels": changed(labels, 5, label)}, "tensor labels: element 5 is %d, expected 0 to 18 or 255" % label, "label %d is refused" % label)
    refused(net, {**whole, "labels": labels[:, 0, 0].copy()}, "tensor labels", "one label an image is refused")
    ours = engine(net, state, {**batch, "labels": np.full_like(labels, IGNORED)}, np.float64)
    quiet = all(not t.any() for n, t in ours.items() if n.startswith("grad."))
    tap.ok(float(ours["loss"]) == 0.0 and quiet, "a batch whose every pixel is ignored has loss 0 and no gradient")


def refuse_tokens(net, _model, state, batch):
    whole = {**state, **batch}
    for name, value, needle in [("input_ids", 2546, "is 2546, expected 0 to 2545"), ("input_ids", -1, "is -1"), ("segment_ids", 2, "is 2"), ("input_mask", 2, ""),
                                ("masked_lm_positions", 32, "is 32"), ("masked_lm_ids", 2546, ""), ("next_sentence_labels", 2, "")]:
        refused(net, {**whole, name: changed(batch[name], 1, value)}, "%s: element 1 %s" % (name, needle) if needle else name + ": element 1",
                "%s of %d is refused" % (name, value))
    for content, needle, name in [
            (batch, "no tensor of F32 or F64", "a file without parameters is refused"),
            (without(whole, "input_ids"), "tensor input_ids is missing", "missing tokens are named"),
            (without(whole, "cls.predictions.bias"), "tensor cls.predictions.bias is missing", "a missing parameter is named"),
            ({**whole, "input_mask": batch["input_mask"][:, 1:].copy()}, "tensor input_mask", "a mask of another length is refused"),
            ({**whole, "input_ids": batch["input_ids"].astype(np.float64)}, "tensor input_ids", "tokens that are no integers are refused")]:
        refused(net, content, needle, name)
    # The masked words then have no loss and no gradient; the next sentence has both.
    ours = engine(net, state, {**batch, "masked_lm_ids": np.zeros_like(batch["masked_lm_ids"])}, np.float64)
    quiet = not ours["grad.cls.predictions.bias"].any() and not ours["grad.cls.predictions.transform.dense.weight"].any()
    tap.ok(quiet and ours["grad.bert.pooler.dense.weight"].any() and 0 < float(ours["loss"]) < 5, "a batch without a word to predict")


# Of one network of each kind: it is the same code for every one.
REFUSES = {"resnet50": refuse_images, "hrnet_w18": refuse_segments, "bert_nano": refuse_tokens}


def results(net):
    total = sum(p.numel() for p in nets_torch.NETS[net.name]().parameters())
    tap.ok(total == net.parameters, "the network of this test has %s's %d parameters" % (net.name, net.parameters), str(total))
    model, state, batch = check_results(net, net.sizes[0], 1)
    if net.name in REFUSES:
        REFUSES[net.name](net, model, state, batch)
    for size in net.sizes[1:] if IS_ALL else []:
        check_results(net, size, 2)


# --- inference, and three steps ----------------------------------------------------------------------------
def inference(net):
    """One sample: a batch norm that sees one value has no variance in training, and needs none here."""
    model, batch = net.model(5), net.batch(net.for_inference, 5)
    reference = torch_logits(model, batch, torch.float64)
    theirs = torch_errors(reference, lambda: torch_logits(model, batch, torch.float32))
    for dtype, backend in [(np.float64, "plain")] + [(np.float32, b) for b in backends()]:
        ours = engine(net, state_of(model), batch, dtype, "--inference", "--backend", backend)
        limits = dict.fromkeys(reference, F64_LIMIT) if dtype == np.float64 else limits_of(theirs, False)
        title = "%s, %s (%s)" % (net.name, np.dtype(dtype).name, backend)
        tap.ok(sorted(ours) == sorted(reference), title + ": logits and nothing else are written", " ".join(sorted(ours)))
        tap.near(ours, reference, limits, title + ": as eval() has it")
    if net.classes == 19:
        batch = net.batch(net.sizes[0], 5)
        off = rel(*(torch_logits(model, batch, torch.float64, is_training)["logits"] for is_training in (True, False)))
        tap.ok(off > F64_LIMIT, net.name + ": the batch's own statistics would be caught", "%.1e" % off)


def steps(net, method, has_f32=False):
    title = "%s, %d steps of %s" % (net.name, STEPS, method)
    model, batch = net.model(1, LIFT), net.batch(net.for_steps, 1)
    options = ["--steps", str(STEPS), "--optimizer", method] + ["--%s=%s" % (key.replace("_", "-"), value) for key, value in METHODS[method].items()]
    ours = engine(net, state_of(model), batch, np.float64, *options)
    after = torch_steps(model, batch, torch.float64, method)
    reference = after[-1]
    tap.ok(set(reference) <= set(ours), title + ": the engine writes every parameter and running statistic", "%d" % len(reference))
    tap.near(ours, reference, dict.fromkeys(reference, F64_LIMIT), title + ": F64 within 1e-9 of PyTorch")
    start = {name_of(n): p.detach().numpy() for n, p in model.named_parameters()}
    moved = [n for n in start if rel(start[n], reference[n]) > 1e-6]
    tap.ok(len(moved) > 0.5 * len(start), title + ": most parameters have moved", "%d of %d" % (len(moved), len(start)))
    wrong = [(after[-2], "one step less")]
    if net.name == "bert_nano" and IS_ALL:
        wrong.append((torch_steps(model, batch, torch.float64, "sgd")[-1], "another method"))
        wrong.append((torch_steps(model, batch, torch.float64, method, lr=METHODS[method]["lr"] * 1.001)[-1], "a rate that is 0.1 % off"))
    for found, what in wrong:
        missed = [n for n in moved if rel(ours[n], found[n]) <= F64_LIMIT]
        tap.ok(not missed, title + ": %s would be caught in each that moved" % what, " ".join(missed))
    if not has_f32:
        return
    theirs = torch_errors(reference, lambda: torch_steps(model, batch, torch.float32, method)[-1])
    for backend in backends():
        limits = limits_of(theirs, backend == "onednn")
        tap.near(engine(net, state_of(model), batch, np.float32, *options, "--backend", backend), reference, limits,
                 "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend))
        wide = [n for n in reference if limits[n] > 1e-4]
        tap.ok(len(wide) < 0.1 * len(limits), "%s: F32 (%s) limits that a fault of 1e-4 would pass are few" % (title, backend), "%d of %d" % (len(wide), len(limits)))


# What, of which network, and whether every day.
JOBS = [(results, "resnet50", True), (results, "bert_nano", True), (steps, "bert_nano", True, "adamw", True), (results, "hrnet_w18", False),
        (results, "deeplabv3p", False), (results, "deeplabv3p_mmseg", False), (results, "bert_base", False),
        *[(inference, net.name, False) for net in NETS if net.name != "bert_base"],
        (steps, "hrnet_w18", False, "sgd", True), (steps, "resnet50", False, "sgd", True), (steps, "deeplabv3p", False, "sgd")]

if __name__ == "__main__":
    TRAIN, FOLDER, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    IS_ALL = os.environ.get("TIER") == "all"
    torch.set_num_threads(2)
    if not IS_ALL:
        print("# test-all: against PyTorch: every other size of the networks")
    for job, name, is_everyday, *more in JOBS:
        if only and name not in only:
            continue
        if is_everyday or IS_ALL or only:
            job(next(net for net in NETS if net.name == name), *more)
        else:
            print("# test-all: against PyTorch: %s of %s" % (job.__name__, " ".join(map(str, [name, *more]))))
    print("1..%d" % tap.n)
    sys.exit(1 if tap.bad else 0)
