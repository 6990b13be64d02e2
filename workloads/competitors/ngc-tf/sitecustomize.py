# SPDX-License-Identifier: Apache-2.0
"""DeepLearningExamples' ResNet-50 for TensorFlow 1 without Horovod and DALI, which nobody built here: Horovod's names are those of a job of one process, DALI's can be named and not used."""
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


class _Pipeline:
    def __init__(self, *_args, **_kwargs):
        raise RuntimeError("DALI is not here")


_module("horovod")
_module("horovod.tensorflow", init=lambda: None, rank=lambda: 0, local_rank=lambda: 0, size=lambda: 1)
for _name in ("nvidia", "nvidia.dali", "nvidia.dali.plugin", "nvidia.dali.plugin.tf", "nvidia.dali.ops", "nvidia.dali.types"):
    _module(_name)
_module("nvidia.dali.pipeline", Pipeline=_Pipeline)
