# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle and PaddleNLP, until a device is set or a model is built."""
import os

from dress_boot import BUILDS, CLASS, DEVICE, LAYERS, MODULE, NOTHING, RECORD


def itself(function=None, **_):
    """A decorator, with or without its brackets: the function itself."""
    return function if callable(function) else itself


def number(name, default):
    return lambda *_: int(os.environ.get(name, default))


class ParallelEnv(object):
    nranks = world_size = property(lambda self: int(os.environ.get("PADDLE_TRAINERS_NUM", 1)))
    rank = local_rank = property(lambda self: int(os.environ.get("PADDLE_TRAINER_ID", 0)))


TABLE = {
    "paddle": MODULE,
    "paddle.__version__": "2.0.0",
    "paddle.version": MODULE,
    "paddle.version.full_version": "0.0.0",
    "paddle.version.commit": "unknown",
    "paddle.dataset": MODULE,
    "paddle.dataset.common": MODULE,
    "paddle.dataset.common.md5file": NOTHING,
    "paddle.dataset.common.DATA_HOME": "/root/.cache/paddle/dataset",
    "paddle.nn.utils": MODULE,
    "paddle.nn.utils.*": LAYERS,
    "paddle.metric": MODULE,
    "paddle.metric.*": LAYERS,
    "paddle.tensor": MODULE,
    "paddle.nn.decode": MODULE,
    "paddle.nn.decode.*": LAYERS,
    "paddle.fluid.layers": MODULE,
    "paddle.fluid.layers.utils": MODULE,
    "paddle.fluid.layers.utils.map_structure": NOTHING,
    "paddle.utils": MODULE,
    "paddle.utils.try_import": NOTHING,
    "paddle.utils.download": MODULE,
    "paddle.utils.download.get_path_from_url": DEVICE,
    "paddle.distributed": MODULE,
    "paddle.distributed.launch": MODULE,
    "paddle.distributed.fleet": MODULE,
    "paddle.distributed.fleet.init": NOTHING,
    "paddle.distributed.fleet.worker_num": number("PADDLE_TRAINERS_NUM", 1),
    "paddle.distributed.fleet.worker_index": number("PADDLE_TRAINER_ID", 0),
    "paddle.distributed.get_world_size": number("PADDLE_TRAINERS_NUM", 1),
    "paddle.distributed.get_rank": number("PADDLE_TRAINER_ID", 0),
    "paddle.distributed.ParallelEnv": ParallelEnv,
    "paddle.distributed.init_parallel_env": NOTHING,
    "paddle.distributed.fleet.DistributedStrategy": CLASS,
    "paddle.is_compiled_with_cuda": lambda: True,
    "paddle.enable_static": NOTHING,
    "paddle.set_device": NOTHING,
    "paddle.seed": NOTHING,
    "paddle.profiler": MODULE,
    "paddle.get_cudnn_version": lambda: 8200,
    "paddle.get_device": lambda: "gpu:%s" % os.environ.get("FLAGS_selected_gpus", "0"),
    "paddle.device": MODULE,
    "paddle.device.cuda": MODULE,
    "paddle.device.cuda.device_count": lambda: 8,
    "paddle.no_grad": itself,
    "paddle.jit": MODULE,
    "paddle.jit.to_static": itself,
    "paddle.jit.not_to_static": itself,
    "paddle.io": MODULE,
    "paddle.io.DataLoader": CLASS,
    "paddle.io.Dataset": CLASS,
    "paddle.nn": MODULE,
    "paddle.nn.Layer": BUILDS,
    "paddle.nn.*": LAYERS,
    "paddle.nn.functional": MODULE,
    "paddle.nn.functional.*": LAYERS,
    "paddle.nn.functional.activation": MODULE,
    "paddle.nn.functional.activation.*": LAYERS,
    "paddle.nn.initializer": MODULE,
    "paddle.nn.initializer.*": LAYERS,
    "paddle.ParamAttr": CLASS,
    "paddle.reshape": DEVICE,
    "paddle.transpose": DEVICE,
    "paddle.concat": DEVICE,
    "paddle.split": DEVICE,
    "paddle.regularizer": MODULE,
    "paddle.regularizer.L2Decay": CLASS,
    "paddle.optimizer": MODULE,
    "paddle.optimizer.Optimizer": CLASS,
    "paddle.optimizer.*": LAYERS,
    "paddle.optimizer.lr": MODULE,
    "paddle.optimizer.lr.LRScheduler": CLASS,
    "paddle.optimizer.lr.LinearWarmup": CLASS,
    "paddle.optimizer.lr.PiecewiseDecay": CLASS,
    "paddle.optimizer.lr.CosineAnnealingDecay": CLASS,
    "paddle.optimizer.lr.ExponentialDecay": CLASS,
    "paddle.io.DistributedBatchSampler": CLASS,
    "paddle.static": MODULE,
    "paddle.static.Program": RECORD,
    "paddle.static.default_main_program": NOTHING,
    "paddle.static.default_startup_program": NOTHING,
    "paddle.static.data": DEVICE,
    "paddle.static.program_guard": DEVICE,
    "paddle.static.load_program_state": DEVICE,
    "paddle.fluid": MODULE,
    "paddle.fluid.set_flags": NOTHING,
    "paddle.fluid.contrib": MODULE,
    "paddle.fluid.contrib.mixed_precision": MODULE,
    "paddle.fluid.contrib.mixed_precision.fp16_utils": MODULE,
    "paddle.fluid.contrib.mixed_precision.fp16_utils.cast_parameters_to_fp16": NOTHING,
    "paddle.fluid.contrib.mixed_precision.fp16_utils.cast_model_to_fp16": NOTHING,
}
