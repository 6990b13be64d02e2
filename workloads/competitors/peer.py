# SPDX-License-Identifier: Apache-2.0
"""What the rivals' programs share: options, the file they start from, and the metric lines they print (README.md here)."""
import argparse
import json
import os
import sys
import time

import tensors

NOT_HERE = 77  # exit status: the framework, or what was asked of it, is not on this machine
REFUSED = 2
MODELS = ["resnet50", "hrnet_w18", "deeplabv3p", "deeplabv3p_mmseg", "bert_base", "bert_tiny", "bert_nano"]
BATCH = ["input", "labels", "input_ids", "segment_ids", "input_mask", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"]
DROPOUT = {"deeplabv3p": 0.1, "deeplabv3p_mmseg": 0.1, "bert_base": 0.1, "bert_tiny": 0.1, "bert_nano": 0.1}  # while it trains; models.md of the reports' configurations
LOSS_SCALE_START = 65536.0  # as torch.cuda.amp.GradScaler has it


def give_up(status, text):
    print("%s: %s" % (os.path.basename(sys.argv[0]), text), file=sys.stderr)
    sys.exit(status)


def whole(least):
    def parse(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError("%s: expected %d or more" % (text, least))
        return value
    return parse


def options(modes):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--mode", default=modes[0], choices=modes)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--precision", default="amp", choices=["fp32", "amp"])
    parser.add_argument("--check", required=True, metavar="FILE", help="parameters and one batch, as for reperf-train --check")
    parser.add_argument("--out", required=True, metavar="FILE", help="where loss and gradients go, as from reperf-train --check")
    parser.add_argument("--steps", type=whole(0), default=0, help="timed steps; 0: the check alone")
    parser.add_argument("--warmup", type=whole(1), default=3, help="steps before those")
    parser.add_argument("--turn", type=whole(1), default=10, help="steps for each line that is read from standard input")
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw"])
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--tf32", action="store_true", help="let fp32 products be rounded to TF32 first")
    parser.add_argument("--threads", type=whole(0), default=0, help="on a CPU; 0: as the framework likes")
    return parser.parse_args()


class Start:
    """Parameters and running statistics, and the batch, as numpy has them."""

    def __init__(self, path):
        content = tensors.read(path)
        self.batch = {n: content.pop(n) for n in BATCH if n in content}
        self.state = content
        first = self.batch.get("input", self.batch.get("input_ids"))
        if first is None:
            raise ValueError("%s: there is no batch in it" % path)
        self.size = int(first.shape[0])
        self.image = [int(n) for n in first.shape[2:]] or [1, int(first.shape[1])]


def fits(found, wanted, path):
    """Names and shapes must be the network's, all of them."""
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    if missing or extra:
        raise ValueError("%s: tensor %s is %s" % (path, (missing + extra)[0], "missing" if missing else "not part of this network"))
    for name, shape in wanted.items():
        if tuple(found[name].shape) != tuple(shape):
            raise ValueError("%s: tensor %s: shape %s, expected %s" % (path, name, list(found[name].shape), list(shape)))


def say(event, **fields):
    print(json.dumps({"event": event, **fields}, separators=(",", ":"), allow_nan=False), flush=True)


def say_start(args, start, n_parameters, **own):
    say("run_start", version=own.pop("version"), model=args.model, device=args.device, backend=own.pop("backend"),
        precision=args.precision, dtype="f32", batch=start.size, image=start.image, steps=args.steps, warmup_steps=0, ranks=1, rank=0,
        global_batch=start.size, comm="self", sync_bn=False, gradient_bytes=0, parameters=n_parameters, data="synthetic", lr=args.lr,
        momentum=args.momentum, weight_decay=args.weight_decay, label_smoothing=0, synthetic=True, optimizer=args.optimizer,
        dropout=DROPOUT.get(args.model, 0.0), tf32=args.tf32, **own)


class Stepper:
    """Says what was timed, turn by turn. `turn(n)` makes n steps and returns their nanoseconds and losses."""

    def __init__(self, args, size):
        self.args, self.size, self.done, self.elapsed_ns, self.first, self.last = args, size, 0, 0, None, None

    def say(self, times_ns, losses):
        for ns, loss in zip(times_ns, losses):
            self.done += 1
            self.elapsed_ns += ns
            if loss != loss or loss in (float("inf"), float("-inf")):
                say("fatal", rank=0, device=self.args.device, where="step %d" % self.done, what="loss is not finite")
                sys.exit(8)
            self.first, self.last = loss if self.first is None else self.first, loss
            say("step", step=self.done, steps=self.args.steps, rank=0, loss=loss, step_time_ns=ns,
                samples_per_s=self.size * 1e9 / ns, lr=self.args.lr)

    def run(self, turn, peak_bytes):
        while self.done < self.args.steps:
            if not sys.stdin.readline():
                give_up(REFUSED, "standard input ended after %d of %d steps" % (self.done, self.args.steps))
            self.say(*turn(min(self.args.turn, self.args.steps - self.done)))
        say("run_stop", steps=self.args.steps, warmup_steps=0, rank=0, elapsed_ns=self.elapsed_ns,
            samples_per_s=self.size * self.args.steps * 1e9 / self.elapsed_ns, loss_first=self.first, loss_last=self.last,
            peak_memory_bytes=peak_bytes())


def now_ns():
    return time.perf_counter_ns()


def run(main):
    """The end of a rival's program: what is wrong with what it was given is status 9, one line on standard error."""
    try:
        sys.exit(main())
    except BrokenPipeError:
        os._exit(10)  # nobody reads: nothing to say, and no flushing at the end
    except (OSError, ValueError) as e:
        give_up(9, str(e))
