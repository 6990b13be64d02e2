# SPDX-License-Identifier: Apache-2.0
"""OneFlow-Models' ResNet-50 names its device "cuda" in the code: with REPERF_DEVICE=cpu that is the CPU."""
import functools
import os


def _here(value):
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


def _on_cpu(call):
    @functools.wraps(call)
    def wrapped(*args, **named):
        return call(*map(_here, args), **{name: _here(value) for name, value in named.items()})
    return wrapped


def _patch():
    import oneflow as flow
    flow.Tensor.to = _on_cpu(flow.Tensor.to)
    flow.nn.Module.to = _on_cpu(flow.nn.Module.to)
    flow.randint = _on_cpu(flow.randint)
    flow.env.all_device_placement = _on_cpu(flow.env.all_device_placement)


if os.environ.get("REPERF_DEVICE") == "cpu":
    _patch()
