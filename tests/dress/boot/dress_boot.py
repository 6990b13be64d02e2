# SPDX-License-Identifier: Apache-2.0
"""What every Python of a dress rehearsal starts with (dress.pth). A framework's modules are answered from the tables in answers/: of each name, whether it is
a module, a class, a function that does nothing, a record, a value, or the first call of a device, at which the program has come as far as it can without one:
it is noted, and the process ends well. A name that no table has ends the process as stopped early, with file and line of who asked."""
import abc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NOTES = os.environ.get("DRESS_NOTES", "/dress/notes")
# What a table's value may be; everything else is the answer itself.
MODULE, CLASS, NOTHING, RECORD, DEVICE, BUILDS = ("<%s>" % kind for kind in ("module", "class", "nothing", "record", "device", "builds"))
# Of "*." and a name: no module has it, and who asks is told so.
ABSENT = "<absent>"
# Of a module's name and ".*": what is in it and in no table is a layer or computes.
LAYERS = "<layers>"
ANSWERS = {}


def program_frames():
    """The calls that lead here, the innermost first, without this file's own."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((HERE, "<frozen")):
            yield frame
        frame = frame.f_back


def asked_by():
    for frame in program_frames():
        if "/importlib/" not in frame.f_code.co_filename:
            return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)
    return "?"


def lacks(*paths):
    """The first of these files and folders that is not there, or is a folder with nothing in it."""
    for path in paths:
        if not os.path.exists(path) or (os.path.isdir(path) and not os.listdir(path)):
            return path
    return ""


def understood():
    """By the expressions of DRESS_ASKS, what the program made of its words: each in the innermost call that knows its names."""
    found = {}
    for name, text in json.loads(os.environ.get("DRESS_ASKS", "{}")).items():
        for frame in program_frames():
            try:
                found[name] = eval(text, dict(frame.f_globals, lacks=lacks), dict(frame.f_locals))  # the test's own text
                break
            except (NameError, AttributeError, KeyError, IndexError):
                continue
    return json.loads(json.dumps(found, default=str))


def end(status, **what):
    """Notes how the process ended, in a file of its own, and ends it: no handler of the program's is to make something else of it."""
    what.update(argv=sys.argv, cwd=os.getcwd(), env=dict(os.environ), pid=os.getpid(), python=sys.version.split()[0])
    path = os.path.join(NOTES, "%s-%d" % (os.environ.get("NODE_RANK", "0"), os.getpid()))
    with open(path + ".new", "w") as note:
        json.dump(what, note)
    os.rename(path + ".new", path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def device(name):
    end(0, device=name, at=asked_by(), rank=identity(), understood=understood())


def early(name):
    at = asked_by()
    sys.stderr.write("stopped early at %s: nothing is known of %s\n" % (at, name))
    end(3, early=at, asked=name)


def identity():
    """(rank, world, rank on its node, where rank 0 is) by the variables of whoever started it."""
    env = os.environ
    for rank, world, local, master in (("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM", "PADDLE_RANK_IN_NODE", "PADDLE_MASTER"),
                                       ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_MCA_orte_hnp_uri"),
                                       ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_GLOO_RENDEZVOUS_ADDR"),
                                       ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")):
        if rank in env:
            return [int(env[rank]), int(env[world]), int(env.get(local, 0)), env.get(master)]
    return [0, 1, 0, None]


class Record(object):
    """A message of settings: whatever is asked of it is another, whatever is set stays."""

    def __init__(self, *args, **kwargs):
        self.__dict__.update(kwargs)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = self.__dict__[name] = Record()
        return value

    def __call__(self, *args, **kwargs):
        return Record()

    def __setitem__(self, key, value):
        self.__dict__[key] = value

    def __getitem__(self, key):
        return self.__dict__.setdefault(key, Record())


def nothing(*args, **kwargs):
    return None


def answer(full):
    """What the table says of a name; a class's attributes are asked by their own names."""
    kind = ANSWERS.get(full)
    if kind is None and full not in ANSWERS:
        parent, _, name = full.rpartition(".")
        if ANSWERS.get(parent + ".*") != LAYERS:
            early(full)
        kind = BUILDS if name.lstrip("_")[:1].isupper() else DEVICE
    if kind == MODULE:
        return importlib.import_module(full)
    if kind in (CLASS, BUILDS):
        return made_class(full, kind == BUILDS)
    if kind == NOTHING:
        return nothing
    if kind == RECORD:
        return Record
    if kind == DEVICE:
        return lambda *args, **kwargs: device(full)
    return kind


class Asked(abc.ABCMeta):
    # An abstract base's own, so that a class may be both.
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return answer(cls.dress_name + "." + name)


MADE = {}


def importing():
    """A layer that is made while a module is imported, as a default of an argument, is none of the model's."""
    return any(frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__" for frame in program_frames())


def made_class(full, builds):
    """A class to derive from. One that builds is a device's when it is made; another's objects answer by the table."""
    if full not in MADE:
        def init(self, *args, **kwargs):
            if builds and not importing():
                device(full)

        def ask(self, name):
            if name.startswith("__"):
                raise AttributeError(name)
            return answer("%s.%s" % (full, name))

        MADE[full] = Asked(str(full.rsplit(".", 1)[-1]), (object,), {"dress_name": full, "__init__": init, "__getattr__": ask, "__module__": full.rsplit(".", 1)[0]})
    return MADE[full]


class Module(type(sys)):
    def __getattr__(self, name):
        if name.startswith("__") and name != "__version__" and self.__name__ + "." + name not in ANSWERS:
            raise AttributeError(name)
        if ANSWERS.get("*." + name) == ABSENT:
            raise AttributeError(name)
        value = answer(self.__name__ + "." + name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Of the frameworks that have a table, every module; what the table does not call one is a question that is not known."""

    def find_spec(self, name, path=None, target=None):
        if name in PROGRAMS:
            return importlib.util.spec_from_file_location(name, os.path.join(HERE, "programs", PROGRAMS[name]))
        if name.split(".")[0] not in TOP and ANSWERS.get(name) != MODULE:
            return None
        if ANSWERS.get(name) != MODULE:
            early("module " + name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def own_module():
    """What this Python was told to run by -m."""
    with open("/proc/self/cmdline", "rb") as line:
        words = line.read().decode().split("\0")
    while words[1:] and words[1].startswith("-") and words[1] != "-m":
        words.pop(1)
    return words[2] if words[1:2] == ["-m"] else None


def torch_launcher():
    """PyTorch's own launcher, with nothing stood in for: PyTorch 1.13 loses the value 0 of its flags under Python 3.11, and then starts nothing."""
    TOP.clear()
    from torch.distributed.elastic.multiprocessing import api
    of_text = api.Std.from_str
    api.Std.from_str = classmethod(lambda cls, text: of_text(text) or api.Std.NONE)


def start():
    sys.path.insert(0, HERE)
    sys.modules.setdefault("dress_boot", sys.modules[__name__])
    for name in sorted(os.listdir(os.path.join(HERE, "answers"))):
        if name.endswith(".py") and name != "__init__.py":
            ANSWERS.update(importlib.import_module("answers." + name[:-3]).TABLE)
    sys.path.remove(HERE)
    TOP.update(name for name in ANSWERS if "." not in name)
    if (own_module() or "").startswith("torch.distributed."):
        torch_launcher()
    sys.meta_path.insert(0, Finder())


TOP = set()
# What is run by -m, and is no module of a framework.
PROGRAMS = {"pip": "pip.py", "pip.__main__": "pip.py", "paddle.distributed.launch.__main__": "paddle_launch.py",
            "oneflow.distributed.launch.__main__": "oneflow_launch.py"}
start()
