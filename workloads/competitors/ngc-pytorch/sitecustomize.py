# SPDX-License-Identifier: Apache-2.0
"""DeepLearningExamples' ResNet-50 for PyTorch without a GPU: what main.py asks of CUDA is answered for the CPU; apex and DALI, which nobody built here, stand in by name and say so when they are used."""
import contextlib
import os
import sys
import types


def _module(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    vars(module).update(members)
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], leaf, module)
    return module


def _absent(what):
    class Absent:
        """Can be named and inherited from; cannot be made."""

        def __init__(self, *_args, **_kwargs):
            raise RuntimeError(f"{what} is not here")

    return Absent


def _on_the_cpu():
    import torch
    import torch.distributed

    class Stream:
        def wait_stream(self, _other):
            pass

        def synchronize(self):
            pass

    cuda = torch.cuda
    torch.Tensor.cuda = lambda self, *_args, **_kwargs: self
    torch.nn.Module.cuda = lambda self, *_args, **_kwargs: self
    cuda.device_count = lambda: int(os.environ.get("NPROC_PER_NODE", "1"))
    cuda.set_device = lambda _device: None
    cuda.synchronize = lambda *_args: None
    cuda.Stream = Stream
    cuda.stream = lambda _stream: contextlib.nullcontext()
    cuda.current_stream = lambda *_args: Stream()
    of_group = torch.distributed.init_process_group
    torch.distributed.init_process_group = lambda backend="gloo", *args, **kwargs: of_group("gloo", *args, **kwargs)


def _apex():
    import torch

    class DistributedDataParallel(torch.nn.parallel.DistributedDataParallel):
        """Gradients are averaged over the ranks, running statistics are each rank's own, as with apex."""

        def __init__(self, module):
            super().__init__(module, broadcast_buffers=False)

    def not_here(*_args, **_kwargs):
        raise RuntimeError("apex is not here: FP32 only")

    _module("apex", amp=_module("apex_amp", initialize=not_here, scale_loss=not_here))
    _module("apex.parallel", DistributedDataParallel=DistributedDataParallel)
    _module("apex.fp16_utils", FP16_Optimizer=_absent("apex.fp16_utils"), network_to_half=not_here, to_python_float=lambda tensor: tensor.item())


def _dali():
    for name in ("nvidia", "nvidia.dali", "nvidia.dali.plugin", "nvidia.dali.ops", "nvidia.dali.types"):
        _module(name)
    _module("nvidia.dali.plugin.pytorch", DALIClassificationIterator=_absent("DALI"))
    _module("nvidia.dali.pipeline", Pipeline=_absent("DALI"))


if os.environ.get("REPERF_DEVICE") == "cpu":
    _on_the_cpu()
    _apex()
    _dali()
