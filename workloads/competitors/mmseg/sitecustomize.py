# SPDX-License-Identifier: Apache-2.0
"""mmcv's trainer on a machine without CUDA: what it asks of a GPU is answered for the CPU, and what nobody built says so when it is called."""
import os
import sys
import types


class _NotBuilt(types.ModuleType):
    """Stands for mmcv._ext, the compiled operators; the networks of the reports call none."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("get_compiler_version", "get_compiling_cuda_version"):
            return lambda: "not built"

        def missing(*_args, **_kwargs):
            raise RuntimeError(f"mmcv is here without its compiled operators: {name}")

        return missing


def _on_the_cpu():
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.nn.Module.cuda = lambda self, *_args, **_kwargs: self
    torch.cuda.set_device = lambda *_args: None
    torch.cuda.current_device = lambda: None
    torch.cuda.device_count = lambda: ranks
    of_ddp, of_group = DistributedDataParallel.__init__, torch.distributed.init_process_group

    def without_devices(self, module, device_ids=None, output_device=None, *args, **kwargs):
        of_ddp(self, module, None, None, *args, **kwargs)
        self.device_ids = [-1]

    def evaluated(self, *inputs, **kwargs):
        """Training does not come by here: train_step scatters by itself."""
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        return self.module(*inputs[0], **kwargs[0])

    def collected(part, size, _folder=None):
        """Of all ranks, which share no folder."""
        parts = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(parts, part)
        return [result for of_ranks in zip(*parts) for result in of_ranks][:size]

    import mmcv.engine.test

    mmcv.engine.collect_results_cpu = mmcv.engine.test.collect_results_cpu = collected  # mmseg takes the first, mmcls the second
    DistributedDataParallel.__init__, DistributedDataParallel.forward = without_devices, evaluated
    torch.distributed.init_process_group = lambda backend="gloo", *args, **kwargs: of_group("gloo", *args, **kwargs)


if os.environ.get("REPERF_DEVICE") == "cpu":
    sys.modules["mmcv._ext"] = _NotBuilt("mmcv._ext")
    _on_the_cpu()
