# SPDX-License-Identifier: Apache-2.0
"""Small libraries beside the frameworks."""
import copy

from dress_boot import CLASS, LAYERS, MODULE, NOTHING, RECORD


class Version(object):
    """packaging's, of a release: its numbers."""
    is_prerelease = is_postrelease = False

    def __init__(self, text):
        self.release = tuple(int(part) for part in text.split("+")[0].split(".") if part.isdigit())


class Dict(dict):
    """addict's: a dictionary whose keys are attributes, too, and whose dictionaries are likewise."""

    def __init__(self, *args, **kwargs):
        super(Dict, self).__init__()
        for key, value in dict(*args, **kwargs).items():
            self[key] = self.hooked(value)

    @classmethod
    def hooked(cls, value):
        if isinstance(value, dict):
            return cls(value) if not isinstance(value, cls) else value
        return type(value)(map(cls.hooked, value)) if type(value) in (list, tuple) else value

    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value

    def __missing__(self, name):
        raise KeyError(name)

    def __deepcopy__(self, memo):
        return type(self)({key: copy.deepcopy(value, memo) for key, value in self.items()})

    def copy(self):
        return copy.copy(self)

    def to_dict(self):
        return {key: value.to_dict() if isinstance(value, Dict) else value for key, value in self.items()}


class Picture(object):
    """A picture's file, of which its kind alone is known; ofrecord.py keeps a JPEG of three channels as it is."""
    mode = "RGB"

    def __init__(self, file, *_):
        with (open(file, "rb") if isinstance(file, str) else file) as data:
            self.format = "JPEG" if data.read(2) == b"\xff\xd8" else "PNG"
        self.size = (1, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def convert(self, *_):
        return self

    def save(self, to, *_, **__):
        to.write(b"\xff\xd8")


TABLE = {
    "scipy": MODULE,
    "scipy.io": MODULE,
    "scipy.ndimage": MODULE,
    "scipy.ndimage.*": LAYERS,
    "scipy.ndimage.interpolation": MODULE,
    "scipy.ndimage.interpolation.*": LAYERS,
    "scipy.ndimage.morphology": MODULE,
    "scipy.ndimage.morphology.*": LAYERS,
    "scipy.optimize": MODULE,
    "scipy.optimize.*": LAYERS,
    "scipy.interpolate": MODULE,
    "scipy.interpolate.*": LAYERS,
    "scipy.stats": MODULE,
    "scipy.stats.beta": CLASS,
    "PIL": MODULE,
    "PIL.Image": MODULE,
    "PIL.Image.open": Picture,
    "PIL.Image.Resampling": MODULE,
    "PIL.Image.Resampling.*": LAYERS,
    "PIL.Image.*": LAYERS,
    "PIL.ImageEnhance": MODULE,
    "PIL.ImageOps": MODULE,
    "cv2": MODULE,
    "cv2.__version__": "4.5.5",
    "cv2.*": LAYERS,
    "cv2.setNumThreads": NOTHING,
    "sklearn": MODULE,
    "sklearn.metrics": MODULE,
    "visualdl": MODULE,
    "filelock": MODULE,
    "filelock.*": LAYERS,
    "addict": MODULE,
    "addict.Dict": Dict,
    "yapf": MODULE,
    "yapf.yapflib": MODULE,
    "yapf.yapflib.yapf_api": MODULE,
    "yapf.yapflib.yapf_api.FormatCode": lambda text, **_: (text, False),
    "matplotlib": MODULE,
    "matplotlib.pyplot": MODULE,
    "matplotlib.*": LAYERS,
    "terminaltables": MODULE,
    "terminaltables.AsciiTable": CLASS,
    "mmcv._ext": MODULE,
    "mmcv._ext.*": LAYERS,
    "mmcv._ext.get_compiler_version": lambda: "GCC 7.5",
    "mmcv._ext.get_compiling_cuda_version": lambda: "11.0",
    "packaging": MODULE,
    "packaging.version": MODULE,
    "packaging.version.parse": Version,
    "prettytable": MODULE,
    "prettytable.PrettyTable": CLASS,
    "jieba": MODULE,
    "colorlog": MODULE,
    "colorlog.ColoredFormatter": CLASS,
    "colorama": MODULE,
    "colorama.Fore": RECORD,
    "h5py": MODULE,
    "tqdm": MODULE,
    "tqdm.tqdm": CLASS,
    "tqdm.trange": NOTHING,
    "boto3": MODULE,
    "botocore": MODULE,
    "botocore.exceptions": MODULE,
    "botocore.exceptions.ClientError": Exception,
    "nvidia": MODULE,
    "nvidia.dali": MODULE,
    "nvidia.dali.ops": MODULE,
    "nvidia.dali.types": MODULE,
    "nvidia.dali.pipeline": MODULE,
    "nvidia.dali.pipeline.Pipeline": CLASS,
    "nvidia.dali.plugin": MODULE,
    "nvidia.dali.plugin.tf": MODULE,
    "nvidia.dali.plugin.mxnet": MODULE,
    "nvidia.dali.plugin.mxnet.DALIClassificationIterator": CLASS,
    "nvidia.dali.types.NCHW": "NCHW",
    "nvidia.dali.plugin.pytorch": MODULE,
    "nvidia.dali.plugin.pytorch.DALIClassificationIterator": CLASS,
    "dllogger": MODULE,
    "dllogger.init": NOTHING,
    "dllogger.log": NOTHING,
    "dllogger.metadata": NOTHING,
    "dllogger.JSONStreamBackend": RECORD,
    "dllogger.StdOutBackend": RECORD,
    "dllogger.Logger": RECORD,
    "dllogger.Verbosity": MODULE,
    "dllogger.Verbosity.VERBOSE": 1,
    "dllogger.Verbosity.DEFAULT": 0,
}
