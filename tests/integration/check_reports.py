#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the reports against each other, against the files they name, and against a list of published numbers.

check_reports.py references ROOT: ids are unique, and what a report names (stack, environment, cell, image, dataset, format, rule) is there.
check_reports.py numbers ROOT CSV: every row of CSV is a throughput cell of its report, with the same log.
Prints one line for each thing that is wrong, then a count. Exit 0: none."""
import csv
import decimal
import json
import os
import pathlib
import re
import subprocess
import sys

CASE = re.compile(r"([^/]+)/([^/]+)/([^/]+)/n(\d+)g(\d+)/bs(\d+)(?:/([^/]+))?")


def reports(root):
    for path in sorted((root / "manifests/reports").glob("*.json")):
        text = path.read_text(encoding="utf-8")
        if '"schema_version": 2' in text.partition("\n")[2].partition("\n")[0]:
            text = subprocess.run([os.environ["B"] + "/servers/spell_out", root, path], check=True, capture_output=True, text=True).stdout
        yield path, json.loads(text)


def rules(root):
    known = {}
    for path in (root / "manifests/formats").glob("*.json"):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        known[document["id"]] = {f"{document['id']}/{rule['name']}" for rule in document["rules"]}
    return known


def unique(bad, what, ids):
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        bad.append(f"{what} {name}: more than once")


def check_case(bad, report, case, known):
    name = f"{report['id']}: {case['id']}"
    stacks = {stack["id"]: stack for stack in report["stacks"]}
    environments = {environment["id"]: environment for environment in report["environments"]}
    model, framework, precision, nodes, gpus, _, _ = CASE.fullmatch(case["id"]).groups()
    stack = stacks.get(case["stack"])
    if stack is None or stack["framework"] != framework:
        bad.append(f"{name}: stack {case['stack']} is not there or has another framework")
    if case["environment"] is not None:
        environment = environments.get(case["environment"])
        if environment is None or int(nodes) > environment["nodes"] or int(gpus) > environment["gpus_per_node"]:
            bad.append(f"{name}: environment {case['environment']} is not there or is smaller")
    for form, rule in [(case["format"], case["rule"])] + [(cell["format"], cell["rule"]) for cell in case["cells"]]:
        if form is not None and form not in known:
            bad.append(f"{name}: no format {form}")
        elif rule is not None and rule not in known.get((form or case["format"]), ()):
            bad.append(f"{name}: no rule {rule}")
    for cell in case["cells"]:
        if not cell["cell"].startswith(case["id"] + "#"):
            bad.append(f"{name}: cell {cell['cell']} is not its own")
    return f"{model}/{precision}/n{nodes}g{gpus}", framework


def references(root):
    bad, known, n = [], rules(root), 0
    for path, report in reports(root):
        if path.stem != report["id"]:
            bad.append(f"{path.name}: its id is {report['id']}")
        cells = [cell["cell"] for case in report["cases"] for cell in case["cells"]]
        cases = [case["id"] for case in report["cases"]]
        for what, ids in (("case", cases), ("cell", cells), ("stack", [stack["id"] for stack in report["stacks"]])):
            unique(bad, f"{report['id']}: {what}", ids)
        rows, own = set(), set()
        for case in report["cases"]:
            row, framework = check_case(bad, report, case, known)
            if CASE.fullmatch(case["id"])[6] != "0":  # a batch that is not printed is nothing to run
                (own if framework == "reperf" else rows).add(row)
            if case["baseline"] is not None and case["baseline"] not in cases:
                bad.append(f"{report['id']}: {case['id']}: no baseline {case['baseline']}")
            for cell in case["cells"]:
                bad += [f"{report['id']}: {cell['cell']}: no cell {of}" for of in (cell["derive"] or {"of": []})["of"] if of not in cells]
        bad += [f"{report['id']}: {row}: {'no' if row in rows else 'only a'} case of framework reperf" for row in sorted(rows ^ own) if not report.get("unpublished")]
        for stack in report["stacks"]:
            for folder, name in (("images", stack["image"]), ("datasets", stack["dataset"])):
                if name is not None and not (root / folder / name / f"{folder[:-1]}.json").is_file():
                    bad.append(f"{report['id']}: {stack['id']}: no {folder}/{name}")
        n += len(cells)
    return bad, f"{n} cells"


def numbers(root, path):
    bad, have, n = [], {}, 0
    for _, report in reports(root):
        labels = {stack["id"]: stack["label"] for stack in report["stacks"]}
        for case in report["cases"]:
            model, _, precision, nodes, gpus, batch, _ = CASE.fullmatch(case["id"]).groups()
            for cell in case["cells"]:
                if cell["metric"] == "throughput":
                    key = (report["id"], model, labels[case["stack"]], precision, int(nodes) * int(gpus), int(batch),
                           decimal.Decimal(cell["printed"]), cell["unit"])
                    folder = report["logs"]["path"] if report["logs"] else ""
                    have[key] = {f"{folder}/{log}" for log in case["logs"]}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            n += 1
            key = (row["report"], row["model"], row["framework"], row["precision"], int(row["gpus"]), int(row["batch_per_gpu"]),
                   decimal.Decimal(row["published"]), row["unit"])
            if key not in have:
                bad.append(f"{', '.join(map(str, key))}: no such cell")
            elif not any(log == row["log"] or log.startswith(row["log"] + "/") for log in have[key]):
                bad.append(f"{', '.join(map(str, key))}: another log than {row['log']}")
    if n == 0:
        bad.append(f"{path}: no rows")
    return bad, f"{n} rows"


def main(args):
    root = pathlib.Path(args[1])
    bad, count = references(root) if args[0] == "references" else numbers(root, args[2])
    for line in bad:
        print(line)
    print(f"{count}, {len(bad)} wrong")
    return 1 if bad else 0


sys.exit(main(sys.argv[1:]))
