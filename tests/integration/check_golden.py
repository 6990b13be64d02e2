#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_golden.py KEPT TODAY: every key of the kept document is in today's, with values of the types that it had there.

All items of a list count as one place: a key that each item had, each has; a key that some had, some have. Exit 0: it holds."""
import json
import sys


class Shape:
    """What stands at each place of a document."""

    def __init__(self, document):
        self.objects = {}  # place: how many objects
        self.keys = {}  # (place, key): [how many have it, types of its values]
        self.walk(document, "$")

    def walk(self, value, place):
        if isinstance(value, dict):
            self.objects[place] = self.objects.get(place, 0) + 1
            for key, child in value.items():
                seen = self.keys.setdefault((place, key), [0, set()])
                seen[0] += 1
                seen[1].add(kind(child))
                self.walk(child, f"{place}.{key}")
        elif isinstance(value, list):
            for child in value:
                self.walk(child, place + "[]")

    def is_in_each(self, at):
        return self.keys[at][0] == self.objects[at[0]]


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def changes(kept, today):
    for at, (_, types) in kept.keys.items():
        name = ".".join(at)
        if at not in today.keys:
            yield f"{name} is gone"
            continue
        if kept.is_in_each(at) and not today.is_in_each(at):
            yield f"{name} was always there, and is not"
        found = today.keys[at][1] - {"null"}
        if types != {"null"} and not found <= types:
            yield f"{name} was {sorted(types)}, is {sorted(found)}"


def main(kept_path, today_path):
    documents = []
    for path in (kept_path, today_path):
        with open(path, encoding="utf-8") as file:
            documents.append(json.load(file))
    kept, today = documents
    if kept["schema_version"] != today["schema_version"]:
        found = [f"schema_version was {kept['schema_version']}, is {today['schema_version']}"]
    else:
        found = list(changes(Shape(kept), Shape(today)))
    print("\n".join(found + [f"{len(Shape(kept).keys)} keys, {len(found)} changed"]))
    return 1 if found else 0


if len(sys.argv) != 3:
    sys.exit(__doc__)
sys.exit(main(*sys.argv[1:]))
