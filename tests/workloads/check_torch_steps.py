# SPDX-License-Identifier: Apache-2.0
"""Holds three optimiser steps of `reperf-train --check --steps 3` against PyTorch: the loss of the third, parameters and running
statistics after it. Speaks TAP. Usage: check_torch_steps.py REPERF_TRAIN SCRATCH_FOLDER MODEL:METHOD[:f32] ...

In F64 every tensor must lie within 1e-9 relative norm;
with :f32 the F32 results too, whose error against F64 may be 3 times PyTorch's own (the limits are check_torch.py's). One step
less must be caught in every tensor that moved, and where the network is small another method and a rate that is 0.1 % off, too."""
import copy
import importlib
import os
import subprocess
import sys

import numpy as np
import torch

import check_torch
from check_torch import F64_LIMIT, Tap, as_family, backends, pooled_limits, rel, strict_limits, worst
import nets_torch  # found by check_torch
import tensors  # found by check_torch

STEPS = 3
# A large epsilon: a step is then never decided by the sign of a gradient that is only rounding. A small rate of SGD: the
# second and third gradient are then not those of a network that one rounding has sent elsewhere, and F32's bound says something.
METHODS = {
    "sgd": dict(lr=1e-3, momentum=0.9, weight_decay=0.01, decay="all"),
    "adamw": dict(lr=2e-3, beta1=0.9, beta2=0.99, eps=1e-3, weight_decay=0.01, decay="matrices"),
}
# Of networks for which check_torch*.py has larger ones: what three steps of each fit into a few seconds with.
SHAPES = {"resnet50": (4, 3, 40, 40), "hrnet_w18": (3, 3, 40, 40), "deeplabv3p": (3, 3, 33, 35), "deeplabv3p_mmseg": (3, 3, 33, 35)}
# Of batch norms' biases: rounding then turns no ReLU around (check_torch_seg.py says why, and holds the masks). Without it DeepLabV3+'s
# first gradient is 0.4 / lr times its weights, and PyTorch itself is 1e-7 away after three steps in F64 if weights change by two bits.
LIFT = 4.0


def make_optimizer(parameters, method, o):
    groups = [{"params": [p for p in parameters if p.dim() > 1 or o["decay"] == "all"], "weight_decay": o["weight_decay"]},
              {"params": [p for p in parameters if p.dim() <= 1 and o["decay"] != "all"], "weight_decay": 0.0}]
    groups = [g for g in groups if g["params"]]
    if method == "sgd":
        return torch.optim.SGD(groups, lr=o["lr"], momentum=o["momentum"])
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"])


def torch_steps(model, batch, method, **changes):
    """What there is after each step, from the first on. The model is a copy's."""
    o = {**METHODS[method], **changes}
    model = copy.deepcopy(model)
    as_family(model)
    parameters = list(model.parameters())
    after = []
    model.train()
    optimizer = make_optimizer(parameters, method, o)
    for _ in range(STEPS):
        model.zero_grad()
        loss = nets_torch.loss_of(model, batch)[1]
        loss.backward()
        optimizer.step()
        out = {nets_torch.name_of(n): p for n, p in model.named_parameters()}
        out.update({nets_torch.name_of(n): b for n, b in model.named_buffers() if b.dim() == 1})
        after.append({n: t.detach().numpy().copy() for n, t in {**out, "loss": loss}.items()})
    return after


class Subject:
    """A model of this folder's other programs, whose networks and batches are taken."""

    def __init__(self, name):
        self.name = name
        sys.argv[3:] = [name]  # what those programs read
        self.is_tokens = name.startswith("bert")
        program = "check_torch_bert" if self.is_tokens else "check_torch" if name == "resnet50" else "check_torch_seg"
        self.program = check_torch if name == "resnet50" else importlib.reload(importlib.import_module(program))
        if self.is_tokens:
            self.batch = self.program.make_batch(self.program.CASE.shapes[0], 1)
        elif name == "resnet50":
            rng = np.random.default_rng(1)
            self.batch = {"input": rng.standard_normal(SHAPES[name]).astype(np.float32), "labels": rng.integers(0, 1000, 4, dtype=np.int64)}
        else:
            x, labels = self.program.make_batch(SHAPES[name], 1)
            self.batch = {"input": x, "labels": labels}

    def model(self):
        return self.program.make_model(1) if self.is_tokens else self.program.make_model(1, LIFT)

    def torch_batch(self, dtype):
        out = {n: torch.from_numpy(t) for n, t in self.batch.items()}
        return {n: t.to(dtype) if t.is_floating_point() else t for n, t in out.items()}

    def engine(self, train, folder, model, method, dtype, extra=()):
        source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
        state = {nets_torch.name_of(n): t.detach().numpy().astype(dtype) for n, t in list(model.named_parameters()) + list(model.named_buffers())
                 if t.dim() > 0}
        batch = {n: t.astype(dtype) if t.dtype == np.float32 else t for n, t in self.batch.items()}
        tensors.write(source, {**state, **batch})
        options = ["--%s=%s" % (key.replace("_", "-"), value) for key, value in METHODS[method].items()]
        subprocess.run([train, "--model", self.name, "--check", source, "--out", target, "--steps", str(STEPS), "--optimizer", method,
                        *options, *extra], check=True)
        return tensors.read(target)


def check_f64(tap, train, folder, subject, model, method):
    title = "%s, %d steps of %s" % (subject.name, STEPS, method)
    ours = subject.engine(train, folder, model, method, np.float64)
    batch = subject.torch_batch(torch.float64)
    after = torch_steps(model, batch, method)
    reference = after[-1]
    tap.ok(set(reference) <= set(ours), title + ": the engine writes every parameter and running statistic", "%d" % len(reference))
    errors = {n: rel(ours[n], reference[n]) for n in reference}
    name = max(errors, key=errors.get)
    tap.ok(errors[name] <= F64_LIMIT, title + ": F64 within 1e-9 of PyTorch", "worst %s %.2e" % (name, errors[name]))
    start = {nets_torch.name_of(n): p.detach().numpy() for n, p in model.named_parameters()}
    moved = [n for n in start if rel(start[n], reference[n]) > 1e-6]
    tap.ok(len(moved) > 0.5 * len(start), title + ": most parameters have moved", "%d of %d" % (len(moved), len(start)))
    wrong = [(after[-2], "one step less")]
    if subject.is_tokens:
        wrong.append((torch_steps(model, batch, "sgd")[-1], "another method"))
        wrong.append((torch_steps(model, batch, method, lr=METHODS[method]["lr"] * 1.001)[-1], "a rate that is 0.1 % off"))
    for results, what in wrong:
        missed = [n for n in moved if rel(ours[n], results[n]) <= F64_LIMIT]
        tap.ok(not missed, title + ": %s would be caught in each that moved" % what, " ".join(missed))
    return reference


def check_f32(tap, train, folder, subject, model, method, reference):
    title = "%s, %d steps of %s" % (subject.name, STEPS, method)
    model = model.float()
    theirs = {}
    for has_mkldnn in (True, False):
        with torch.backends.mkldnn.flags(enabled=has_mkldnn):
            results = torch_steps(model, subject.torch_batch(torch.float32), method)[-1]
        for name, want in reference.items():
            theirs[name] = max(theirs.get(name, 0.0), rel(results[name], want))
    for backend in backends(train):
        limits = strict_limits(theirs) if backend == "plain" else pooled_limits({**theirs, "logits": 0.0})
        ours = subject.engine(train, folder, model, method, np.float32, ["--backend", backend])
        errors = {n: rel(ours[n], reference[n]) for n in reference}
        name = worst(errors, limits)
        tap.ok(errors[name] <= limits[name], "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend),
               "worst %s %.2e of %.2e, PyTorch's %.2e" % (name, errors[name], limits[name], theirs[name]))
        wide = [n for n in reference if limits[n] > 1e-4]
        tap.ok(len(wide) < 0.1 * len(limits), "%s: F32 (%s) limits that a fault of 1e-4 would pass are few" % (title, backend),
               "%d of %d" % (len(wide), len(limits)))


def main():
    train, folder, jobs = sys.argv[1], sys.argv[2], sys.argv[3:]
    torch.set_num_threads(2)
    tap = Tap()
    for job in jobs:
        name, method, *more = job.split(":")
        subject = Subject(name)
        model = subject.model()
        reference = check_f64(tap, train, folder, subject, model, method)
        if more == ["f32"]:
            check_f32(tap, train, folder, subject, model, method, reference)
    print("1..%d" % tap.n)
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
