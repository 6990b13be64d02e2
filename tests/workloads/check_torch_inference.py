# SPDX-License-Identifier: Apache-2.0
"""Holds `reperf-train --check --inference` against PyTorch's eval(): every network, running statistics away from 0 and 1. Speaks TAP.
Usage: check_torch_inference.py REPERF_TRAIN SCRATCH_FOLDER. F64 within 1e-9 relative norm; F32 within 3 times PyTorch's own F32 error."""
import copy
import os
import subprocess
import sys

import numpy as np
import torch

from check_torch import F32_FACTOR, F64_LIMIT, Tap, backends, rel
import nets_torch  # found by check_torch
import tensors  # found by check_torch

# One sample: a batch norm that sees one value has no variance in training, and needs none here.
CASES = [("resnet50", (1, 3, 33, 47)), ("hrnet_w18", (2, 3, 45, 53)), ("deeplabv3p", (1, 3, 35, 51)),
         ("deeplabv3p_mmseg", (1, 3, 35, 51)), ("bert_tiny", (3, 32, 6))]

EVERYDAY = ("hrnet_w18", "bert_tiny")  # the kernels of all: what differs is a network's list of calls, which training's check holds


def make_model(name):
    torch.manual_seed(5)
    model = nets_torch.NETS[name]().double()
    norms = (torch.nn.BatchNorm2d, torch.nn.LayerNorm)
    gains = {id(m.weight) for m in model.modules() if isinstance(m, norms)}
    for p in model.parameters():
        if p.dim() == 1:
            torch.nn.init.normal_(p, 1.0 if id(p) in gains else 0.0, 0.1)
        else:
            torch.nn.init.kaiming_normal_(p, nonlinearity="relu")
    for n, b in model.named_buffers():
        if b.dim() == 1:
            b.copy_(torch.rand_like(b) + (0.5 if n.endswith("var") else -0.5))
    for t in list(model.parameters()) + [b for b in model.buffers() if b.dim() == 1]:
        t.data.copy_(t.data.float().double())
    return model


def make_batch(name, shape):
    rng = np.random.default_rng(5)
    if name != "bert_tiny":
        is_dense = name != "resnet50"
        labels = rng.integers(0, 19, (shape[0],) + shape[2:] if is_dense else shape[0])
        return {"input": rng.standard_normal(shape).astype(np.float32), "labels": labels}
    n, s, p = shape
    mask = (np.arange(s) < rng.integers(s // 2, s + 1, n)[:, None]).astype(np.int64)
    return {"input_ids": rng.integers(0, 30522, (n, s)) * mask, "segment_ids": (np.arange(s) > s // 4) * mask, "input_mask": mask,
            "masked_lm_positions": rng.integers(0, s // 2, (n, p)), "masked_lm_ids": rng.integers(0, 30522, (n, p)),
            "next_sentence_labels": rng.integers(0, 2, n)}


def torch_logits(model, batch, dtype, is_training=False):
    model = copy.deepcopy(model).to(dtype).train(is_training)
    given = {n: torch.from_numpy(t).to(dtype) if t.dtype == np.float32 else torch.from_numpy(t) for n, t in batch.items()}
    with torch.no_grad():
        if isinstance(model, nets_torch.Bert):
            words, following = model(given)
            out = {"logits": words.flatten(0, 1), "next_sentence_logits": following}
        else:
            logits = model(given["input"])
            out = {"logits": logits[0] if isinstance(logits, tuple) else logits}
    return {n: t.numpy().astype(np.float64) for n, t in out.items()}


def engine_results(train, folder, name, given, backend):
    source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    tensors.write(source, given)
    subprocess.run([train, "--model", name, "--check", source, "--out", target, "--inference", "--backend", backend], check=True)
    return tensors.read(target)


def check(tap, train, folder, name, shape):
    model, batch = make_model(name), make_batch(name, shape)
    state = {nets_torch.name_of(n): t.numpy().copy() for n, t in model.state_dict().items() if t.dim() > 0}
    reference = torch_logits(model, batch, torch.float64)
    theirs = {n: rel(t, reference[n]) for n, t in torch_logits(model, batch, torch.float32).items()}
    for dtype, backend in [(np.float64, "plain")] + [(np.float32, b) for b in backends(train)]:
        given = {n: t.astype(dtype) if t.dtype.kind == "f" else t for n, t in {**state, **batch}.items()}
        ours = engine_results(train, folder, name, given, backend)
        limits = {n: F64_LIMIT if dtype == np.float64 else F32_FACTOR * max(e, float(np.finfo(np.float32).eps)) for n, e in theirs.items()}
        title = "%s, %s (%s)" % (name, np.dtype(dtype).name, backend)
        tap.ok(sorted(ours) == sorted(reference), title + ": logits and nothing else are written", " ".join(sorted(ours)))
        errors = {n: rel(ours[n], reference[n]) for n in reference}
        tap.ok(all(errors[n] <= limits[n] for n in errors), title + ": as eval() has it",
               " ".join("%s %.1e of %.1e" % (n, errors[n], limits[n]) for n in errors))
        if name == "hrnet_w18" and dtype == np.float64:
            off = rel(torch_logits(model, batch, torch.float64, True)["logits"], reference["logits"])
            tap.ok(off > limits["logits"], title + ": the batch's own statistics would be caught", "%.1e" % off)


def main():
    torch.set_num_threads(2)
    tap = Tap()
    for name, shape in CASES:
        if name in EVERYDAY or os.environ.get("TIER") == "all":
            check(tap, sys.argv[1], sys.argv[2], name, shape)
        else:
            print("# test-all: against PyTorch: inference of %s" % name)
    print("1..%d" % tap.n)
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
