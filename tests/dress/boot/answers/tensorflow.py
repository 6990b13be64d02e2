# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1 and 2, Horovod: settings, flags and files, until an estimator or a strategy is to train."""
import glob
import os
import sys

from dress_boot import CLASS, DEVICE, MODULE, NOTHING, RECORD


class Flags(object):
    """absl's flags as these programs use them: --name=value, --name value, --name and --noname of a truth; a name that nobody has defined is an error."""

    def __init__(self):
        self.__dict__["kinds"], self.__dict__["values"], self.__dict__["needed"] = {}, {}, []
        self.__dict__["__flags"] = self.values

    def define(self, kind):
        def define(name, default=None, help=None, *rest, **more):
            self.kinds[name], self.values[name] = kind, default
        return define

    def parse(self, argv):
        rest, words = [argv[0]], list(argv[1:])
        while words:
            word = words.pop(0)
            if not word.startswith("--"):
                rest.append(word)
                continue
            name, has_value, value = word[2:].partition("=")
            if name not in self.kinds and name.startswith("no") and self.kinds.get(name[2:]) is bool and not has_value:
                name, has_value, value = name[2:], "=", "false"
            if name not in self.kinds:
                sys.exit("FATAL Flags parsing error: Unknown command line flag '%s'" % name)
            if not has_value:
                value = "true" if self.kinds[name] is bool else words.pop(0)
            kind = self.kinds[name]
            self.values[name] = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}[value.lower()] if kind is bool else kind(value)
        for name in self.needed:
            if self.values[name] is None:
                sys.exit("FATAL Flags parsing error: flag --%s must have a value other than None" % name)
        return rest

    def __call__(self, argv):
        return self.parse(argv)

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name)

    def __setattr__(self, name, value):
        self.values[name] = value


FLAGS = Flags()


def run(main=None, argv=None):
    sys.exit((main or sys.modules["__main__"].main)(FLAGS.parse(sys.argv)))


class Writer(object):
    """TFRecordWriter: a file that holds nothing."""

    def __init__(self, path):
        open(path, "w").close()

    def write(self, record):
        pass

    def close(self):
        pass


def records(path):
    """As many as a file of ImageNet's has when it is cut into 1024: the synthetic one would be less than a batch."""
    os.stat(path)
    return iter([b""] * 1252)


class HParams(object):
    def __init__(self, **values):
        self.__dict__.update(values)

    def values(self):
        return dict(self.__dict__)

    def get(self, name):
        return self.__dict__[name]

    def add_hparam(self, name, value):
        if name in self.__dict__:
            raise ValueError(name)
        self.__dict__[name] = value


def makedirs(path):
    os.makedirs(path, exist_ok=True)


def world(name, default):
    return lambda: int(os.environ.get("OMPI_COMM_WORLD_" + name, os.environ.get("HOROVOD_" + name, default)))


flags = {"flags": MODULE, "flags.FLAGS": FLAGS, "flags.mark_flag_as_required": FLAGS.needed.append}
for spelling, kind in (("string", str), ("integer", int), ("float", float), ("bool", bool), ("boolean", bool)):
    flags["flags.DEFINE_" + spelling] = FLAGS.define(kind)
gfile = {"gfile": MODULE, "gfile.makedirs": makedirs, "gfile.glob": glob.glob, "gfile.GFile": open, "gfile.exists": os.path.exists, "gfile.Exists": os.path.exists,
         "gfile.MakeDirs": makedirs, "gfile.Glob": glob.glob}
logging = {"logging": MODULE, "logging.set_verbosity": NOTHING, "logging.info": NOTHING, "logging.warning": NOTHING, "logging.INFO": 20, "logging.ERROR": 40}
horovod = {"init": NOTHING, "size": world("SIZE", 1), "rank": world("RANK", 0), "local_rank": world("LOCAL_RANK", 0), "local_size": world("LOCAL_SIZE", 1), "BroadcastGlobalVariablesHook": CLASS}

TABLE = {
    "tensorflow": MODULE,
    "tensorflow.__version__": "1.15.2",
    "tensorflow.compat": MODULE,
    "tensorflow.compat.v1": MODULE,
    "tensorflow.compat.v1.ConfigProto": RECORD,
    "tensorflow.ConfigProto": RECORD,
    "tensorflow.compat.v1.OptimizerOptions": CLASS,
    "tensorflow.compat.v1.OptimizerOptions.ON_1": 1,
    "tensorflow.compat.v1.app": MODULE,
    "tensorflow.compat.v1.app.run": run,
    "tensorflow.estimator": MODULE,
    "tensorflow.estimator.RunConfig": RECORD,
    "tensorflow.estimator.SessionRunHook": CLASS,
    "tensorflow.estimator.Estimator": CLASS,
    "tensorflow.estimator.Estimator.train": DEVICE,
    "tensorflow.estimator.Estimator.get_variable_value": lambda name: 0,
    "tensorflow.io": MODULE,
    "tensorflow.io.TFRecordWriter": Writer,
    "tensorflow.train": MODULE,
    "tensorflow.train.SessionRunHook": CLASS,
    "tensorflow.train.Optimizer": CLASS,
    "tensorflow.python.training": MODULE,
    "tensorflow.python.training.moving_averages": MODULE,
    "tensorflow.python_io": MODULE,
    "tensorflow.python_io.tf_record_iterator": records,
    "tensorflow.uint8": "uint8",
    "tensorflow.variance_scaling_initializer": RECORD,
    "tensorflow.zeros_initializer": RECORD,
    "tensorflow.constant_initializer": RECORD,
    "tensorflow.OptimizerOptions": CLASS,
    "tensorflow.OptimizerOptions.ON_1": 1,
    "tensorflow.core": MODULE,
    "tensorflow.core.protobuf": MODULE,
    "tensorflow.core.protobuf.rewriter_config_pb2": MODULE,
    "tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig": CLASS,
    "tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig.NO_MEM_OPT": 1,
    "tensorflow.core.protobuf.rewriter_config_pb2.RewriterConfig.OFF": 2,
    "tensorflow.enable_resource_variables": NOTHING,
    "tensorflow.float32": "float32",
    "tensorflow.float16": "float16",
    "tensorflow.python": MODULE,
    "tensorflow.python.ops": MODULE,
    "tensorflow.python.ops.array_ops": MODULE,
    "tensorflow.python.ops.linalg_ops": MODULE,
    "tensorflow.python.ops.math_ops": MODULE,
    "tensorflow.compat.v1.train": MODULE,
    "tensorflow.compat.v1.train.Optimizer": CLASS,
    "tensorflow.contrib": MODULE,
    "tensorflow.contrib.training": MODULE,
    "tensorflow.contrib.training.HParams": HParams,
    "tensorflow.contrib.tpu": MODULE,
    "tensorflow.contrib.tpu.InputPipelineConfig": CLASS,
    "tensorflow.contrib.tpu.InputPipelineConfig.PER_HOST_V2": 4,
    "horovod.tensorflow.compression": MODULE,
    "horovod.tensorflow.compression.Compression": CLASS,
    "horovod": MODULE,
    "horovod.tensorflow": MODULE,
    "horovod.mxnet": MODULE,
}
TABLE.update({"tensorflow.train." + name: RECORD for name in ("Example", "Features", "Feature", "BytesList", "Int64List", "FloatList")})
for prefix in ("tensorflow.", "tensorflow.compat.v1.", "tensorflow.io."):
    for table in (flags, gfile, logging):
        TABLE.update({prefix + name: value for name, value in table.items()})
for framework in ("tensorflow", "mxnet"):
    TABLE.update({"horovod.%s.%s" % (framework, name): value for name, value in horovod.items()})
