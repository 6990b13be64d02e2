# SPDX-License-Identifier: Apache-2.0
"""JAX as a rival, see README.md here: one jit-compiled step (forward, backward, loss scale, optimiser) whose buffers are handed on."""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others live on the same GPU
if "--device=cpu" in sys.argv or "cpu" in sys.argv:  # before JAX looks for GPUs
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np  # noqa: E402

import peer  # noqa: E402
import tensors  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
except ImportError as e:
    peer.give_up(peer.NOT_HERE, "JAX is not installed: %s" % e)

import nets_jax  # noqa: E402

STATS = ("running_mean", "running_var", "_mean", "_variance")
SCALE_GROWS_AFTER = 2000  # good steps, as torch.cuda.amp.GradScaler has it
SCALE_TRIES = 24
ADAM = (0.9, 0.999, 1e-6)


def check_machine(args):
    try:
        jax.devices("gpu" if args.device == "cuda" else "cpu")
    except RuntimeError as e:
        peer.give_up(peer.NOT_HERE, "JAX %s has no such device: %s" % (jax.__version__, e))
    if not args.tf32:
        jax.config.update("jax_default_matmul_precision", "highest")


def norm_stats(params):
    """The running statistics there must be: of each batch norm, which is what has a weight of one dimension beside no LayerNorm."""
    out = {}
    for name, array in params.items():
        owner = name[:-len(".weight")]
        if name.endswith(".weight") and array.ndim == 1 and not owner.endswith("LayerNorm"):
            mean, var = (("._mean", "._variance") if owner.endswith("_batch_norm") else (".running_mean", ".running_var"))
            out[owner + mean], out[owner + var] = np.zeros_like(array), np.ones_like(array)
    return out


class Trainer:
    def __init__(self, args, start):
        self.args, self.net = args, nets_jax.NETS[args.model]
        self.dtype = jnp.float16 if args.precision == "amp" else jnp.float32
        given = {n: t for n, t in start.state.items() if not n.endswith("num_batches_tracked")}
        params = {n: t for n, t in given.items() if not n.endswith(STATS)}
        stats = norm_stats(params)
        extra = [n for n in given if n.endswith(STATS) and n not in stats]
        if extra:
            raise ValueError("%s: tensor %s is not part of this network" % (args.check, extra[0]))
        stats.update({n: given[n] for n in stats if n in given})
        self.params = {n: jnp.asarray(nets_jax.to_jax(n, t)) for n, t in params.items()}
        self.stats = {n: jnp.asarray(t) for n, t in stats.items()}
        self.batch = {n: jnp.asarray(t.astype(np.int32)) for n, t in start.batch.items() if n != "input"}
        if "input" in start.batch:
            self.batch["input"] = jnp.asarray(start.batch["input"].transpose(0, 2, 3, 1)).astype(self.dtype)

    def loss(self, params, stats, batch, key, scale, rate):
        p = nets_jax.Pass(params, stats, key, rate, self.dtype)
        loss = self.net(p, batch)
        if p.unused:
            raise ValueError("%s: tensor %s is not part of this network" % (self.args.check, min(p.unused)))
        return loss * scale, (loss, p.new_stats)

    def gradients(self, params, stats, batch, key, scale, rate):
        grads, (loss, stats) = jax.grad(self.loss, has_aux=True)(params, stats, batch, key, scale, rate)
        grads = jax.tree_util.tree_map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.isfinite(g).all() for g in grads.values()]))
        return grads, loss, stats, finite

    def check(self):
        scale = peer.LOSS_SCALE_START if self.args.precision == "amp" else 1.0
        compute = jax.jit(self.gradients, static_argnums=5)
        for _ in range(SCALE_TRIES):
            grads, loss, stats, finite = compute(self.params, self.stats, self.batch, jax.random.key(0), scale, 0.0)
            if finite:
                break
            scale /= 2
        self.scale = scale
        out = {"loss": np.float32(loss)}
        out.update({"grad." + n: np.ascontiguousarray(nets_jax.to_file(n, np.asarray(g))) for n, g in grads.items()})
        out.update({n: np.asarray(t) for n, t in stats.items()})
        return out

    def update(self, params, grads, slots, count):
        args = self.args
        if args.optimizer == "sgd":
            slots = {n: (args.momentum * slots[n][0] + grads[n] + args.weight_decay * w,) for n, w in params.items()}
            return {n: w - args.lr * slots[n][0] for n, w in params.items()}, slots
        b1, b2, eps = ADAM
        out, new = {}, {}
        for n, w in params.items():
            m = b1 * slots[n][0] + (1 - b1) * grads[n]
            v = b2 * slots[n][1] + (1 - b2) * jnp.square(grads[n])
            decay = 0.0 if n.endswith("bias") or "LayerNorm" in n else args.weight_decay
            step = (m / (1 - b1 ** count)) / (jnp.sqrt(v / (1 - b2 ** count)) + eps)
            out[n], new[n] = w * (1 - args.lr * decay) - args.lr * step, (m, v)
        return out, new

    def train_step(self, state, batch, key):
        """A step whose gradients are not finite changes nothing but the scale."""
        params, stats, slots, count, scale, good = state
        rate = peer.DROPOUT.get(self.args.model, 0.0)
        grads, loss, stats, finite = self.gradients(params, stats, batch, jax.random.fold_in(key, good + count), scale, rate)
        new_params, new_slots = self.update(params, grads, slots, count + 1)
        if self.args.precision == "amp":
            def choose(a, b):
                return jax.tree_util.tree_map(lambda x, y: jnp.where(finite, x, y), a, b)
            new_params, new_slots = choose(new_params, params), choose(new_slots, slots)
            grown = jnp.where((good + 1) % SCALE_GROWS_AFTER == 0, scale * 2, scale)
            scale = jnp.where(finite, grown, scale / 2)
            good = jnp.where(finite, good + 1, 0)
        return (new_params, stats, new_slots, count + finite, scale, good), loss

    def start(self):
        n_slots = 1 if self.args.optimizer == "sgd" else 2
        slots = {n: tuple(jnp.zeros_like(w) for _ in range(n_slots)) for n, w in self.params.items()}
        self.state = (self.params, self.stats, slots, jnp.int32(0), jnp.float32(self.scale), jnp.int32(0))
        self.params = self.stats = None
        self.compiled = jax.jit(self.train_step, donate_argnums=0)
        self.key = jax.random.key(1)

    def turn(self, n):
        """A step is handed out before the one before it is waited for, so that the device is never idle; what is timed is from one
        loss to the next."""
        times, losses, before = [], [], None
        jax.block_until_ready(self.state)
        last = peer.now_ns()
        for i in range(n + 1):
            loss = None
            if i < n:
                self.state, loss = self.compiled(self.state, self.batch, self.key)
            if before is not None:
                losses.append(float(before))
                now = peer.now_ns()
                times.append(now - last)
                last = now
            before = loss
        return times, losses

    def peak_bytes(self):
        stats = jax.devices()[0].memory_stats()
        return int(stats["peak_bytes_in_use"]) if stats else 0


def main():
    args = peer.options(["jit"])
    check_machine(args)
    start = peer.Start(args.check)
    begin = peer.now_ns()
    trainer = Trainer(args, start)
    n_parameters = sum(int(np.prod(w.shape)) for w in trainer.params.values())
    tensors.write(args.out, trainer.check())
    if args.steps == 0:
        return 0
    trainer.start()
    trainer.turn(args.warmup)
    peer.say_start(args, start, n_parameters, prepare_ns=peer.now_ns() - begin, warmup_before=args.warmup, version=jax.__version__,
                   backend="jax-jit", framework="jax", mode="jit", compile_mode="xla", gpu=jax.devices()[0].device_kind)
    peer.Stepper(args, start.size).run(trainer.turn, trainer.peak_bytes)
    return 0


if __name__ == "__main__":
    peer.run(main)
