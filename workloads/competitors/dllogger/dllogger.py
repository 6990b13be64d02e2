# SPDX-License-Identifier: Apache-2.0
"""The part of DLLogger that DeepLearningExamples' two ResNet-50 call, with the lines that the published logs have; NVIDIA's own is in no package index."""
import datetime
import json
import sys


class Verbosity:
    OFF, DEFAULT, VERBOSE = -1, 0, 1


class _Backend:
    def __init__(self, verbosity):
        self.verbosity = verbosity
        self.metadata = {}


class StdOutBackend(_Backend):
    """`DLL DATE TIME - STEP NAME : VALUE UNIT ...`, one line."""

    def __init__(self, verbosity, step_format=str):
        super().__init__(verbosity)
        self.step_format = step_format

    def _metric(self, name, value):
        known = self.metadata.get(name, {})
        text = ("{" + known["format"] + "}").format(value) if known.get("format") and value is not None else str(value)
        return f"{name} : {text} {known.get('unit') or ''}"

    def log(self, now, step, data):
        print(f"DLL {now} - {self.step_format(step)} " + " ".join(self._metric(*item) for item in data.items()))

    def flush(self):
        sys.stdout.flush()


class JSONStreamBackend(_Backend):
    def __init__(self, verbosity, filename):
        super().__init__(verbosity)
        self.file = open(filename, "w")

    def log(self, now, step, data):
        self.file.write("DLLL " + json.dumps({"datetime": str(now), "step": step, "data": data}) + "\n")

    def flush(self):
        self.file.flush()


_backends = []


def init(backends):
    _backends[:] = backends


def metadata(name, of_it):
    for backend in _backends:
        backend.metadata[name] = of_it


def log(step, data, verbosity=Verbosity.DEFAULT):
    now = datetime.datetime.now()
    for backend in _backends:
        if backend.verbosity >= verbosity:
            backend.log(now, step, data)


def flush():
    for backend in _backends:
        backend.flush()
