# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a rival, see README.md here.
  eager    autocast and GradScaler, channels last, cuDNN's fastest algorithm by trial, fused optimiser where there is one
  compile  the same with forward, loss and backward by torch.compile(mode="max-autotune"), which also captures CUDA graphs"""
import numpy as np

import peer
import tensors

try:
    import torch
except ImportError as e:
    peer.give_up(peer.NOT_HERE, "PyTorch is not installed: %s" % e)

import nets_nano  # noqa: E402,F401
import nets_torch  # noqa: E402

COMPILE_MODE = "max-autotune"
SCALE_TRIES = 24  # halvings: from 65536 far below 1


def check_machine(args):
    if args.mode == "compile" and not hasattr(torch, "compile"):
        peer.give_up(peer.NOT_HERE, "PyTorch %s has no torch.compile" % torch.__version__)
    if args.device == "cuda" and not torch.cuda.is_available():
        peer.give_up(peer.NOT_HERE, "PyTorch %s sees no GPU" % torch.__version__)
    if args.precision == "amp" and args.device == "cpu" and not hasattr(torch.amp, "GradScaler"):
        peer.give_up(peer.NOT_HERE, "PyTorch %s has no half precision on a CPU" % torch.__version__)


def set_up(args):
    torch.manual_seed(0)
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = args.tf32
    torch.backends.cuda.matmul.allow_tf32 = args.tf32


def load(args, start):
    net = nets_torch.NETS[args.model]()
    own = {nets_torch.name_of(n): t for n, t in net.state_dict().items() if not n.endswith("num_batches_tracked")}
    counters = [n for n in start.state if n.endswith("num_batches_tracked")]
    given = {n: t for n, t in start.state.items() if n not in counters}
    given.update({n: t.numpy() for n, t in own.items() if n.endswith(("running_mean", "running_var", "_mean", "_variance")) and n not in given})
    peer.fits(given, {n: t.shape for n, t in own.items()}, args.check)
    for name, tensor in own.items():  # these are the network's own
        tensor.copy_(torch.from_numpy(np.array(given[name])))
    return net.to(args.device, memory_format=torch.channels_last).train()


def place(args, start):
    """Pictures come in half precision where the network computes in it: who feeds a GPU would make them so."""
    batch = {n: torch.from_numpy(np.array(t)).to(args.device) for n, t in start.batch.items()}
    if "input" in batch:
        dtype = torch.float16 if args.precision == "amp" else torch.float32
        batch["input"] = batch["input"].to(dtype).contiguous(memory_format=torch.channels_last)
    if args.mode == "compile" and args.device == "cuda":
        for tensor in batch.values():
            torch._dynamo.mark_static_address(tensor)  # it stays where it is: a CUDA graph need not copy it
    return batch


class Scaler:
    """The loss scale of AMP; 1 and nothing else without. It starts at one that is known to be low enough."""

    def __init__(self, args, scale):
        self.scaler = None
        if args.precision == "amp":
            kind = torch.amp.GradScaler if hasattr(torch.amp, "GradScaler") else lambda _, **k: torch.cuda.amp.GradScaler(**k)
            self.scaler = kind(args.device, init_scale=scale)

    def scale(self, loss):
        return self.scaler.scale(loss) if self.scaler else loss

    def step(self, optimizer):
        if self.scaler:
            self.scaler.step(optimizer)
            self.scaler.update()
        else:
            optimizer.step()


class Trainer:
    def __init__(self, args, start):
        self.args = args
        self.net = load(args, start)
        self.batch = place(args, start)
        self.loss = torch.compile(self.plain_loss, mode=COMPILE_MODE) if args.mode == "compile" else self.plain_loss

    def plain_loss(self):
        if self.args.precision == "fp32":
            return nets_torch.loss_of(self.net, self.batch)[1]
        with torch.autocast(self.args.device, torch.float16):
            return nets_torch.loss_of(self.net, self.batch)[1]

    def forward(self):
        if self.args.mode == "compile" and self.args.device == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        return self.loss()

    def check(self):
        """Loss, gradients and running statistics by what is timed later, dropout off; the loss scale is halved until all is finite."""
        state = {n: t.clone() for n, t in self.net.state_dict().items()}
        scale = peer.LOSS_SCALE_START if self.args.precision == "amp" else 1.0
        for _ in range(SCALE_TRIES):
            self.net.load_state_dict(state)
            self.net.zero_grad(set_to_none=True)
            loss = self.forward()
            (loss * scale).backward()
            if all(bool(torch.isfinite(p.grad).all()) for p in self.net.parameters()):
                break
            scale /= 2
        out = {"loss": np.float32(loss.item())}
        for name, p in self.net.named_parameters():
            out["grad." + nets_torch.name_of(name)] = (p.grad.float() / scale).contiguous().cpu().numpy()
        out.update({nets_torch.name_of(n): np.array(b.cpu()) for n, b in self.net.named_buffers() if b.dim() == 1})
        self.net.load_state_dict(state)
        self.net.zero_grad(set_to_none=True)
        self.scale = scale
        return out

    def make_optimizer(self):
        args, named = self.args, list(self.net.named_parameters())
        fused = {"fused": True} if args.device == "cuda" and torch.__version__ >= "2.3" else {}
        if args.optimizer == "sgd":
            return torch.optim.SGD([p for _, p in named], args.lr, args.momentum, weight_decay=args.weight_decay, **fused)
        bare = [p for n, p in named if n.endswith("bias") or "LayerNorm" in n]
        rest = [p for n, p in named if not (n.endswith("bias") or "LayerNorm" in n)]
        groups = [{"params": rest}, {"params": bare, "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, args.lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=args.weight_decay, **fused)

    def start(self):
        """From here on it trains: with dropout."""
        self.net.dropout = peer.DROPOUT.get(self.args.model, 0.0)
        self.optimizer, self.scaler = self.make_optimizer(), Scaler(self.args, self.scale)

    def step(self):
        loss = self.forward()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def turn_cuda(self, n):
        """By events between the steps: the host may run ahead, as it does in training."""
        losses = torch.zeros(n, device="cuda")
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
        torch.cuda.synchronize()
        marks[0].record()
        for i in range(n):
            losses[i].copy_(self.step())
            marks[i + 1].record()
        torch.cuda.synchronize()
        return [int(a.elapsed_time(b) * 1e6) for a, b in zip(marks, marks[1:])], losses.tolist()

    def turn_cpu(self, n):
        times, losses = [], []
        for _ in range(n):
            begin = peer.now_ns()
            losses.append(self.step().item())
            times.append(peer.now_ns() - begin)
        return times, losses

    def turn(self, n):
        return self.turn_cuda(n) if self.args.device == "cuda" else self.turn_cpu(n)

    def peak_bytes(self):
        return torch.cuda.max_memory_reserved() if self.args.device == "cuda" else 0


def versions(args):
    own = {"version": torch.__version__, "backend": "torch-" + args.mode, "framework": "pytorch", "mode": args.mode,
           "compile_mode": COMPILE_MODE if args.mode == "compile" else None, "threads": torch.get_num_threads()}
    if args.device == "cuda":
        own.update(gpu=torch.cuda.get_device_name(), cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    return own


def main():
    args = peer.options(["eager", "compile"])
    check_machine(args)
    set_up(args)
    start = peer.Start(args.check)
    begin = peer.now_ns()
    trainer = Trainer(args, start)
    tensors.write(args.out, trainer.check())
    if args.steps == 0:
        return 0
    trainer.start()
    trainer.turn(args.warmup)
    n_parameters = sum(p.numel() for p in trainer.net.parameters())
    peer.say_start(args, start, n_parameters, prepare_ns=peer.now_ns() - begin, warmup_before=args.warmup, **versions(args))
    peer.Stepper(args, start.size).run(trainer.turn, trainer.peak_bytes)
    return 0


if __name__ == "__main__":
    peer.run(main)
