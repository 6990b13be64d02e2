# SPDX-License-Identifier: Apache-2.0
"""Of TensorFlow, what tfrecords.py asks of it; records are lines of text."""
import types
class Feature:
    def __init__(self, bytes_list=None, int64_list=None):
        self.text = repr(bytes_list or int64_list)
class Example:
    def __init__(self, features):
        self.features = features
    def SerializeToString(self):
        return " ".join("%s=%s" % (name, self.features[name].text) for name in sorted(self.features))
class Writer:
    def __init__(self, path):
        self.file = open(path, "w")
    def write(self, text):
        self.file.write(text + "\n")
    def close(self):
        self.file.close()
train = types.SimpleNamespace(Feature=Feature, Example=Example, BytesList=lambda value: value, Int64List=lambda value: value, Features=lambda feature: feature)
io = types.SimpleNamespace(TFRecordWriter=Writer)
