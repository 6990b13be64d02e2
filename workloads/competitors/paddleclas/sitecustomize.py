# SPDX-License-Identifier: Apache-2.0
"""What PaddleClas of 2020 asks of paddle.fluid and of a GPU, answered by PaddlePaddle 2.6 on a CPU."""
import logging
import os
import sys
import types


def _module(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    vars(module).update(members)
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    setattr(sys.modules[parent], leaf, module)
    return module


def _fluid():
    import cv2  # noqa: F401  before paddle, which brings an older zlib that cannot read every PNG
    import paddle
    import paddle.nn.functional as functional
    from paddle import base, static

    class Momentum(paddle.optimizer.Momentum):
        def __init__(self, *args, regularization=None, parameter_list=None, **kwargs):
            super().__init__(*args, weight_decay=regularization, parameters=parameter_list, **kwargs)

    def of_base(name):
        return getattr(base if hasattr(base, name) else static, name)

    on_cpu = paddle.set_device
    paddle.set_device = lambda _device: on_cpu("cpu")
    paddle.is_compiled_with_cuda = lambda: True
    base.cuda_places = lambda *_ids: [paddle.CPUPlace()]
    fluid = _module("paddle.fluid", is_compiled_with_cuda=paddle.is_compiled_with_cuda, cuda_places=base.cuda_places)
    fluid.__getattr__ = of_base
    for name in ("layers", "contrib", "contrib.mixed_precision", "dygraph"):
        _module("paddle.fluid." + name)
    _module("paddle.fluid.layers.utils", map_structure=paddle.utils.map_structure)
    _module("paddle.fluid.contrib.mixed_precision.fp16_utils", cast_parameters_to_fp16=None, cast_model_to_fp16=None)
    _module("paddle.fluid.contrib.optimizer", Momentum=Momentum)
    _module("paddle.fluid.dygraph.parallel", ParallelEnv=paddle.distributed.ParallelEnv)
    for module in (functional, functional.activation):
        module.hard_sigmoid, module.hard_swish = functional.hardsigmoid, functional.hardswish
    static.CompiledProgram.with_data_parallel = lambda self, *_args, **_kwargs: self
    logging.root.handlers.clear()  # paddle's own lets nothing below WARNING through


if os.environ.get("REPERF_DEVICE") == "cpu":
    _fluid()
