# SPDX-License-Identifier: Apache-2.0
"""PyTorch trains a network of nets_torch.py on one batch of random numbers, on the CPU in FP32, and prints reperf-train's metric lines.
  train.py MODEL --batch N --image N|--sequence N --steps N --warmup N --threads N"""
import argparse
import json
import sys
import time

import torch

import nets_torch

SEED = 0
BERT_TOKENS, BERT_PREDICTIONS = 30522, 20


def say(event, **fields):
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), flush=True)


def options():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("model", choices=["resnet50", "bert_tiny"])
    for name in ["batch", "steps", "warmup", "threads"]:
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--sequence", type=int, default=32)
    return parser.parse_args()


def batch_of(args):
    n, length, marked = args.batch, args.sequence, min(BERT_PREDICTIONS, args.sequence)
    if args.model == "resnet50":
        return {"input": torch.randn(n, 3, args.image, args.image).contiguous(memory_format=torch.channels_last),
                "labels": torch.randint(1000, (n,))}
    return {"input_ids": torch.randint(BERT_TOKENS, (n, length)), "segment_ids": torch.zeros(n, length, dtype=torch.int64),
            "input_mask": torch.ones(n, length, dtype=torch.int64), "masked_lm_positions": torch.arange(marked).repeat(n, 1),
            "masked_lm_ids": torch.randint(BERT_TOKENS, (n, marked)), "next_sentence_labels": torch.randint(2, (n,))}


def main():
    args = options()
    torch.manual_seed(SEED)
    torch.set_num_threads(args.threads)
    net = nets_torch.NETS[args.model]().to(memory_format=torch.channels_last).train()
    batch = batch_of(args)
    if args.model == "resnet50":
        optimizer = torch.optim.SGD(net.parameters(), 0.01, 0.9, weight_decay=1e-4)
    else:
        net.dropout = 0.1
        optimizer = torch.optim.AdamW(net.parameters(), 1e-4, weight_decay=1e-2)
    say("run_start", version=torch.__version__, model=args.model, device="cpu", backend="torch " + torch.__version__, precision="fp32", dtype="f32",
        batch=args.batch, image=[args.image] * 2 if args.model == "resnet50" else [1, args.sequence], steps=args.steps,
        warmup_steps=args.warmup, ranks=1, rank=0, threads=args.threads, seed=SEED, parameters=sum(p.numel() for p in net.parameters()),
        data="synthetic", lr=optimizer.param_groups[0]["lr"], momentum=0.9, weight_decay=optimizer.param_groups[0]["weight_decay"],
        label_smoothing=0)
    elapsed, losses = 0, []
    for step in range(1, args.steps + 1):
        begin = time.perf_counter_ns()
        loss = nets_torch.loss_of(net, batch)[1]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        ns = time.perf_counter_ns() - begin
        elapsed += ns if step > args.warmup else 0
        say("step", step=step, steps=args.steps, rank=0, loss=losses[-1], step_time_ns=ns, samples_per_s=args.batch * 1e9 / ns,
            lr=optimizer.param_groups[0]["lr"])
    say("run_stop", steps=args.steps, warmup_steps=args.warmup, rank=0, elapsed_ns=elapsed,
        samples_per_s=args.batch * (args.steps - args.warmup) * 1e9 / elapsed, loss_first=losses[0], loss_last=losses[-1])


if __name__ == "__main__":
    sys.exit(main())
