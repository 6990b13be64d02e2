# SPDX-License-Identifier: Apache-2.0
"""Holds `reperf-train --model MODEL --check` for BERT against the same network in PyTorch (workloads/competitors/nets_torch.py).
Speaks TAP. Usage: check_torch_bert.py REPERF_TRAIN SCRATCH_FOLDER MODEL. Limits and file format are check_torch.py's."""
import os
import subprocess
import sys

import numpy as np
import torch

from check_torch import F64_LIMIT, Tap, backends, refused, rel, strict_limits, worst
import nets_torch  # found by check_torch
import tensors  # found by check_torch


class Tiny(nets_torch.Bert):
    WIDTH, LAYERS, HEADS, INNER = 128, 2, 2, 512


class Case:
    """gain: of each layer's weights. Where it is large all tokens of a deep network come out alike, and the gradient of what tells
    keys apart is the difference of large numbers."""

    def __init__(self, net, parameters, gain, shapes):
        self.net, self.parameters, self.gain, self.shapes = net, parameters, gain, shapes


# N, S, P. An odd length, more predictions than a short sequence has words, and one token.
CASES = {
    "bert_tiny": Case(Tiny, 4433468, 1.5, [(3, 32, 6), (2, 13, 13), (2, 1, 1)]),
    "bert_base": Case(nets_torch.Bert, 110106428, 0.6, [(2, 16, 3)]),
}
MODEL = sys.argv[3]
CASE = CASES[MODEL]
PLANTED = ["grad.bert.embeddings.position_embeddings.weight", "grad.bert.encoder.layer.1.attention.self.value.weight",
           "grad.bert.embeddings.word_embeddings.weight", "grad.cls.predictions.bias", "logits", "next_sentence_logits"]


def make_model(seed):
    """Weights large enough for attention to choose, layer norms away from 1 and 0, and such that F32 holds them exactly."""
    torch.manual_seed(seed)
    model = CASE.net().double()
    for name, p in model.named_parameters():
        is_norm = "LayerNorm.weight" in name
        torch.nn.init.normal_(p, 1.0 if is_norm else 0.0, 0.1 if p.dim() == 1 or "embeddings" in name else CASE.gain / p.shape[1] ** 0.5)
        p.data.copy_(p.data.float().double())
    return model


def make_batch(shape, seed):
    """Padding of several lengths, places that come twice, words that come often, predictions that are not used."""
    n, length, predictions = shape
    rng = np.random.default_rng(seed)
    used = rng.integers((length + 1) // 2, length + 1, n)
    mask = (np.arange(length) < used[:, None]).astype(np.int64)
    ids = rng.choice([101, 102, 103, 2000, 30521, 7592], (n, length)) * mask
    places = rng.integers(0, length, (n, predictions)) % used[:, None]
    masked = rng.integers(1, nets_torch.Bert.WORDS, (n, predictions))
    masked[0, predictions // 2:] = 0
    places[0, predictions // 2:] = 0
    masked[-1, 0] = 30521
    return {"input_ids": ids, "segment_ids": (np.arange(length) > used[:, None] // 2) * mask, "input_mask": mask,
            "masked_lm_positions": places, "masked_lm_ids": masked, "next_sentence_labels": rng.integers(0, 2, n)}


def torch_results(model, batch):
    model.zero_grad()
    batch = {name: torch.from_numpy(t) for name, t in batch.items()}
    words, following = model(batch)
    words.retain_grad()
    _, loss = model.loss(batch)
    loss.backward()
    out = {"logits": words.flatten(0, 1), "next_sentence_logits": following, "loss": loss}
    out.update({"grad." + n: p.grad for n, p in model.named_parameters()})
    return {n: t.detach().numpy().astype(np.float64) for n, t in out.items()}


def engine_results(train, folder, state, batch, extra_args=()):
    source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    tensors.write(source, {**state, **batch})
    subprocess.run([train, "--model", MODEL, "--check", source, "--out", target, *extra_args], check=True)
    return tensors.read(target)


def distances(results, reference):
    """Relative, by name. What is added to every key alike takes nothing from any share: the gradient of the keys' bias is 0 but for
    rounding, and its scale is that of their weights."""
    out = {}
    for name, want in reference.items():
        if name.endswith("self.key.bias"):
            scale = np.linalg.norm(reference[name[:-4] + "weight"])
            out[name] = float(np.linalg.norm(results[name].astype(np.float64) - want) / (scale if scale > 0 else 1.0))
        else:
            out[name] = rel(results[name], want)
    return out


def check_shape(tap, train, folder, shape, seed):
    title = "%d x %d tokens" % shape[:2]
    model = make_model(seed)
    state = {n: p.detach().numpy().copy() for n, p in model.named_parameters()}
    batch = make_batch(shape, seed)
    reference = torch_results(model, batch)
    ours = engine_results(train, folder, state, batch)
    tap.ok(sorted(ours) == sorted(reference), title + ": the engine writes the results PyTorch has, by Hugging Face's names",
           "%d tensors" % len(ours))
    tap.ok(all(ours[n].shape == reference[n].shape and ours[n].dtype == np.float64 for n in reference), title + ": shapes and type")
    errors = distances(ours, reference)
    name = max(errors, key=errors.get)
    tap.ok(errors[name] <= F64_LIMIT, title + ": F64 within 1e-9 of PyTorch", "worst %s %.2e" % (name, errors[name]))
    for name in PLANTED:
        planted = np.array(ours[name])
        planted.flat[-1] += 1e-7 * np.linalg.norm(planted)
        tap.ok(rel(planted, reference[name]) > F64_LIMIT, "%s: planted fault of 1e-7 in %s is caught" % (title, name))
    check_f32(tap, train, folder, title, state, batch, model, reference)
    return state, batch


def check_f32(tap, train, folder, title, state, batch, model, reference):
    state32 = {n: t.astype(np.float32) for n, t in state.items()}
    theirs = distances(torch_results(model.float(), batch), reference)
    limits = strict_limits(theirs)
    for backend in backends(train):
        ours = engine_results(train, folder, state32, batch, ["--backend", backend])
        errors = distances(ours, reference)
        name = worst(errors, limits)
        ratios = sorted(errors[n] / max(theirs[n], 1e-30) for n in errors if theirs[n] > 0)
        tap.ok(errors[name] <= limits[name], "%s: F32 (%s) within 3 times PyTorch's own error" % (title, backend),
               "worst %s %.2e of %.2e; ratio to PyTorch's: median %.2f, most %.2f" % (
                   name, errors[name], limits[name], ratios[len(ratios) // 2], ratios[-1]))
        fault = "grad.bert.encoder.layer.0.output.dense.weight"
        tap.ok(rel(ours[fault] * np.float32(1.001), reference[fault]) > limits[fault],
               "%s: F32 (%s) a gradient that is 0.1 %% too large is caught" % (title, backend))


def check_refusals(tap, train, folder, state, batch):
    whole = {**state, **batch}
    for name, value, needle in [("input_ids", 30522, "input_ids: element 1 is 30522, expected 0 to 30521"),
                                ("input_ids", -1, "input_ids: element 1 is -1"), ("segment_ids", 2, "segment_ids: element 1 is 2"),
                                ("input_mask", 2, "input_mask: element 1"), ("masked_lm_positions", 32, "masked_lm_positions: element 1 is 32"),
                                ("masked_lm_ids", 30522, "masked_lm_ids: element 1"), ("next_sentence_labels", 2, "next_sentence_labels: element 1")]:
        wrong = batch[name].copy()
        wrong.flat[1] = value
        refused(tap, train, folder, {**whole, name: wrong}, needle, "%s of %d is refused" % (name, value), MODEL)
    refused(tap, train, folder, batch, "no tensor of F32 or F64", "a file without parameters is refused", MODEL)
    refused(tap, train, folder, {n: t for n, t in whole.items() if n != "input_ids"}, "tensor input_ids is missing", "missing tokens are named", MODEL)
    refused(tap, train, folder, {n: t for n, t in whole.items() if n != "cls.predictions.bias"}, "tensor cls.predictions.bias is missing",
            "a missing parameter is named", MODEL)
    refused(tap, train, folder, {**whole, "input_mask": batch["input_mask"][:, 1:].copy()}, "tensor input_mask", "a mask of another length is refused", MODEL)
    refused(tap, train, folder, {**whole, "input_ids": batch["input_ids"].astype(np.float64)}, "tensor input_ids", "tokens that are no integers are refused",
            MODEL)


def check_nothing_to_predict(tap, train, folder, state, batch):
    """The masked words then have no loss and no gradient; the next sentence has both."""
    ours = engine_results(train, folder, state, {**batch, "masked_lm_ids": np.zeros_like(batch["masked_lm_ids"])})
    quiet = not ours["grad.cls.predictions.bias"].any() and not ours["grad.cls.predictions.transform.dense.weight"].any()
    tap.ok(quiet and ours["grad.bert.pooler.dense.weight"].any() and 0 < float(ours["loss"]) < 5, "a batch without a word to predict")


def main():
    train, folder = sys.argv[1], sys.argv[2]
    torch.set_num_threads(2)
    tap = Tap()
    total = sum(p.numel() for p in CASE.net().parameters())
    tap.ok(total == CASE.parameters, "the network of this test has %s's %d parameters" % (MODEL, CASE.parameters), str(total))
    state, batch = check_shape(tap, train, folder, CASE.shapes[0], 1)
    if MODEL == "bert_tiny":  # the same code for both; the other's files are large
        check_refusals(tap, train, folder, state, batch)
        check_nothing_to_predict(tap, train, folder, state, batch)
    for shape in CASE.shapes[1:]:
        check_shape(tap, train, folder, shape, 2)
    print("1..%d" % tap.n)
    return 1 if tap.bad else 0


if __name__ == "__main__":
    sys.exit(main())
