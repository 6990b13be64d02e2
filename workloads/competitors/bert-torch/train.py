# SPDX-License-Identifier: Apache-2.0
"""BERT pre-training in PyTorch on the CPU with Hugging Face's BertForPreTraining: NVIDIA's program needs compiled extensions that no package has. It reads the
HDF5 files of that program and prints what it would. LAMB is replaced by AdamW."""
import argparse
import contextlib
import datetime
import glob
import os
import time

import h5py
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import BertConfig, BertForPreTraining

KEYS = ("input_ids", "segment_ids", "input_mask", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels")
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def say(text):
    if RANK == 0:
        print("DLL", datetime.datetime.now(), "-", text, flush=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input_dir", required=True)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    for name, default in (("train_batch_size", 2), ("gradient_accumulation_steps", 1), ("max_seq_length", 128), ("max_predictions_per_seq", 20), ("max_steps", 20), ("seed", 42)):
        parser.add_argument("--" + name, type=int, default=default)
    return parser.parse_args()


def read(folder, opts):
    """Labels are -100, which the loss ignores, but at the masked positions; a position of 0 is none."""
    columns = {key: [] for key in KEYS}
    for path in sorted(glob.glob(os.path.join(folder, "*.hdf5"))):
        with h5py.File(path, "r") as part:
            for key in KEYS:
                columns[key].append(torch.from_numpy(part[key][:]).long())
    if not columns["input_ids"]:
        raise SystemExit(f"{folder}: no HDF5 files are there")
    ids, segments, mask, positions, words, follows = (torch.cat(columns[key]) for key in KEYS)
    if ids.shape[1] != opts.max_seq_length or positions.shape[1] != opts.max_predictions_per_seq:
        raise SystemExit(f"{folder}: sequences of {ids.shape[1]} with {positions.shape[1]} predictions")
    labels = torch.full_like(ids, -100).scatter(1, positions, torch.where(positions > 0, words, -100))
    return TensorDataset(ids, segments, mask, labels, follows.view(-1))


def main():
    opts = options()
    begun = time.monotonic()
    torch.manual_seed(opts.seed)
    torch.distributed.init_process_group("gloo")
    say(f'PARAMETER Config : ["{opts}"]')
    parts = opts.gradient_accumulation_steps
    say(f"PARAMETER batch_size_per_gpu : {opts.train_batch_size // parts}")
    data = read(opts.input_dir, opts)
    loader = DataLoader(data, opts.train_batch_size // parts, sampler=DistributedSampler(data, seed=opts.seed), drop_last=True)
    model = BertForPreTraining(BertConfig())
    say(f"PARAMETER parameters : {sum(p.numel() for p in model.parameters())}")
    model = DistributedDataParallel(model) if RANKS > 1 else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=opts.learning_rate)
    batches = (batch for _ in iter(int, 1) for batch in loader)
    training = time.monotonic()
    for step in range(opts.max_steps):
        for part in range(parts):
            ids, segments, mask, labels, follows = next(batches)
            with model.no_sync() if RANKS > 1 and part + 1 < parts else contextlib.nullcontext():
                loss = model(input_ids=ids, token_type_ids=segments, attention_mask=mask, labels=labels, next_sentence_label=follows).loss
                (loss / parts).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        say(f"Training Epoch: 0 Training Iteration: {step + 1}  step_loss : {loss.item()}  learning_rate : {opts.learning_rate}")
        if loss.item() != loss.item():
            raise SystemExit("the loss is not a number")
    now = time.monotonic()
    say(f" e2e_train_time : {now - begun}  training_sequences_per_second : {opts.train_batch_size * RANKS * opts.max_steps / (now - training)}"
        f"  final_loss : {loss.item()}  raw_train_time : {now - training}")


main()
