#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check_golden.py NAME DOCUMENT [KEPT]: every key that tests/golden/keys has for NAME is in the document, with values of the types that it had.
check_golden.py NAME DOCUMENT --write: the lines of that file for a document: NAME PLACE.KEY, whether each object there has it, its types.

All items of a list count as one place: a key that each item had, each has; a key that some had, some have. Exit 0: it holds."""
import json
import sys


def kind(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def walk(value, place, objects, keys):
    if isinstance(value, dict):
        objects[place] = objects.get(place, 0) + 1
        for key, child in value.items():
            seen = keys.setdefault((place, key), [0, set()])
            seen[0] += 1
            seen[1].add(f"version-{child}" if key == "schema_version" else kind(child))
            walk(child, f"{place}.{key}", objects, keys)
    elif isinstance(value, list):
        for child in value:
            walk(child, place + "[]", objects, keys)


def shape(path):
    """What stands at each place of a document: {PLACE.KEY: (each or some, types)}."""
    objects, keys = {}, {}
    with open(path, encoding="utf-8") as file:
        walk(json.load(file), "$", objects, keys)
    return {f"{place}.{key}": ("each" if n == objects[place] else "some", types) for (place, key), (n, types) in keys.items()}


def main(name, path, kept="tests/golden/keys"):
    today = shape(path)
    if kept == "--write":
        print("\n".join(f"{name} {at} {how} {'|'.join(sorted(types))}" for at, (how, types) in today.items()))
        return 0
    n, n_changed = 0, 0
    for line in open(kept, encoding="utf-8"):
        of, at, how, was = line.split()
        if of != name:
            continue
        n += 1
        now, found = today.get(at, ("", set()))
        if not now or (how, now) == ("each", "some") or (was != "null" and not found - {"null"} <= set(was.split("|"))):
            n_changed += 1
            print(f"{at} was in {how}, {was}; is in {now or 'none'}, {'|'.join(sorted(found))}")
    print(f"{n} keys, {n_changed} changed")
    return 1 if n_changed or n == 0 else 0


if len(sys.argv) not in (3, 4):
    sys.exit(__doc__)
sys.exit(main(*sys.argv[1:]))
