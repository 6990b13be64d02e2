# SPDX-License-Identifier: Apache-2.0
"""PyTorch and apex, until a model is built or a process group is asked to compute."""
import os

from dress_boot import BUILDS, CLASS, DEVICE, LAYERS, MODULE, NOTHING, RECORD


def script(function=None, **_):
    """torch.jit.script: the function itself."""
    return function


def number(name):
    return lambda *_: int(os.environ[name])


TABLE = {
    "torch": MODULE,
    "torch.__version__": "1.6.0",
    "torch.nn": MODULE,
    "torch.nn.Module": BUILDS,
    "torch.nn.*": LAYERS,
    "torch.nn.init": MODULE,
    "torch.nn.init.*": LAYERS,
    "torch.nn.functional": MODULE,
    "torch.nn.functional.*": LAYERS,
    "torch.nn.modules": MODULE,
    "torch.nn.parameter": MODULE,
    "torch.nn.parameter.Parameter": CLASS,
    "torch.nn.Parameter": CLASS,
    "torch.utils": MODULE,
    "torch.utils.checkpoint": MODULE,
    "torch.utils.data": MODULE,
    "torch.utils.data.DataLoader": CLASS,
    "torch.utils.data.Dataset": CLASS,
    "torch.utils.data.RandomSampler": CLASS,
    "torch.utils.data.SequentialSampler": CLASS,
    "torch.utils.data.distributed": MODULE,
    "torch.utils.data.distributed.DistributedSampler": CLASS,
    "torch.optim": MODULE,
    "torch.optim.Optimizer": CLASS,
    "torch.optim.optimizer": MODULE,
    "torch.optim.optimizer.Optimizer": CLASS,
    "torch.optim.optimizer.required": object(),
    "torch.optim.lr_scheduler": MODULE,
    "torch.optim.lr_scheduler._LRScheduler": CLASS,
    "torch.jit": MODULE,
    "torch.jit.script": script,
    "torch.jit.unused": script,
    "torch._C": MODULE,
    "torch._C._jit_set_profiling_mode": NOTHING,
    "torch._C._jit_set_profiling_executor": NOTHING,
    "torch.cuda": MODULE,
    "torch.cuda.is_available": lambda: True,
    "torch.cuda.device_count": lambda: 8,
    "torch.cuda.set_device": NOTHING,
    "torch.device": RECORD,
    "torch.contiguous_format": "contiguous_format",
    "torch.channels_last": "channels_last",
    "torch.distributed": MODULE,
    "torch.distributed.init_process_group": NOTHING,
    "torch.distributed.is_available": lambda: True,
    "torch.distributed.is_initialized": lambda: "RANK" in os.environ,
    "torch.distributed.get_rank": number("RANK"),
    "torch.distributed.get_world_size": number("WORLD_SIZE"),
    "torch.autograd": MODULE,
    "torch.autograd.Variable": CLASS,
    "torch.nn.parallel": MODULE,
    "torch.backends": MODULE,
    "torch.backends.cudnn": MODULE,
    "torchvision": MODULE,
    "torchvision.transforms": MODULE,
    "torchvision.datasets": MODULE,
    "torchvision.models": MODULE,
    "torch.manual_seed": NOTHING,
    "torch.cuda.manual_seed": NOTHING,
    "torch.Tensor": CLASS,
    "torch.tensor": DEVICE,
    "apex": MODULE,
    "apex.amp": MODULE,
    "apex.amp._amp_state": RECORD,
    "apex.optimizers": MODULE,
    "apex.optimizers.FusedLAMB": CLASS,
    "apex.parallel": MODULE,
    "apex.parallel.DistributedDataParallel": CLASS,
    "apex.parallel.distributed": MODULE,
    "apex.parallel.distributed.flat_dist_call": NOTHING,
    "apex.fp16_utils": MODULE,
    "apex.normalization": MODULE,
    "apex.normalization.fused_layer_norm": MODULE,
    "apex.normalization.fused_layer_norm.FusedLayerNormAffineFunction": CLASS,
    "amp_C": MODULE,
    "apex_C": MODULE,
}
