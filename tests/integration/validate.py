#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Validates JSON documents against a JSON Schema with python3-jsonschema: validate.py SCHEMA FILE...

Prints FILE:$.path: message for everything that is wrong. Exit 0: all valid; 1: some are not; 2: it could not be judged.
validate.py --each, for many: each line of standard input is SCHEMA, a tab and FILE; the exit status of each is printed instead."""
import contextlib
import functools
import io
import json
import sys

import jsonschema


def unique(pairs):
    keys = [k for k, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"duplicate key {key!r}")
    return dict(pairs)


def refuse(word):
    raise ValueError(f"{word} is not JSON")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file, object_pairs_hook=unique, parse_constant=refuse)


def main(args):
    if args == ["--each"]:
        for line in sys.stdin:
            with contextlib.redirect_stdout(io.StringIO()):
                status = judge(line.rstrip("\n").split("\t"))
            print(status, flush=True)
        return 0
    return judge(args)


@functools.cache
def validator_of(path):
    schema = load(path)
    validator_class = jsonschema.validators.validator_for(schema, default=None)
    if validator_class is not jsonschema.Draft202012Validator:
        raise ValueError("$schema is not JSON Schema 2020-12")
    validator_class.check_schema(schema)
    return validator_class(schema, format_checker=validator_class.FORMAT_CHECKER)


def judge(args):
    if len(args) < 2:
        print("usage: validate.py SCHEMA FILE...", file=sys.stderr)
        return 2
    try:
        validator = validator_of(args[0])
    except (OSError, ValueError, jsonschema.SchemaError) as error:
        print(f"{args[0]}: {error}", file=sys.stderr)
        return 2
    bad = 0
    for path in args[1:]:
        try:
            errors = list(validator.iter_errors(load(path)))
        except OSError as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 2
        except ValueError as error:
            print(f"{path}: {error}")
            bad += 1
            continue
        for error in sorted(errors, key=lambda e: (e.json_path, e.message)):
            best = jsonschema.exceptions.best_match([error])
            print(f"{path}:{best.json_path}: {best.message[:300]}")
        bad += bool(errors)
    return 1 if bad else 0


sys.exit(main(sys.argv[1:]))
