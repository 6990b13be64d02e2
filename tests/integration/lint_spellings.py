#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs lint over other spellings of its defects: lint_spellings.py REPERF REPORT TABLE FOLDER.

Each row of TABLE is put into the clean REPORT. A defect must be found by its rule; an innocent row must add no finding at all.
Prints what was missed and what was a false alarm, and the counts by rule. Exit 0: all right."""
import collections
import copy
import json
import os
import subprocess
import sys

COMMANDS = {"pull": 0, "container": 1, "data": 2, "log": 3, "run1": 4, "run8": 5}


def add(stack, purpose, text):
    command = dict(stack["commands"][0], purpose=purpose, printed=text)
    stack["commands"].append(command)


def planted(clean, where, text):
    """The report with the text in its place; text None: what the place itself changes, for comparison."""
    report = copy.deepcopy(clean)
    stack = report["stacks"][0]
    conditions = stack["conditions"]
    if where in COMMANDS:
        if text is not None:
            stack["commands"][COMMANDS[where]]["printed"] = text
    elif where in ("code", "install"):
        if text is not None:
            add(stack, where, text)
    elif where == "no-digest":
        stack["image_digest"] = None
        stack["commands"][0]["printed"] = text or "docker pull registry.example.org/alpha@" + clean["stacks"][0]["image_digest"]
    elif where == "no-seed":
        conditions["seed"] = None
        for command in stack["commands"]:
            command["printed"] = command["printed"].replace(" --seed 7", "")
        stack["commands"][5]["printed"] = text or "python train.py --seed 7"
    elif where == "version":
        conditions["framework_version"] = text or conditions["framework_version"]
        if text and not text[0].isdigit() and not text.startswith(("v1", "Alpha")) or text == "0.0.0":
            del conditions["framework_commit"]
            stack["image_tag"] = stack["image_tag"].replace(":1.2.3", ":x")
            for command in stack["commands"]:
                command["printed"] = command["printed"].replace("alpha:1.2.3", "alpha:x")
    elif where == "image-tag":
        if text:
            old, stack["image_tag"] = stack["image_tag"], text
            for command in stack["commands"]:
                command["printed"] = command["printed"].replace(old, text)
    elif where == "url":
        stack["sources"][0]["printed_url"] = text or stack["sources"][0]["printed_url"]
    elif where == "nodes":
        whole = json.dumps(report).replace("net/alpha/fp32/n1g8", "net/alpha/fp32/n2g4")
        report = json.loads(whole)
        report["environments"].append(dict(report["environments"][0], id="two", nodes=2, gpus_per_node=4))
        report["cases"][2]["environment"] = "two"
        command = report["stacks"][0]["commands"][5]
        command["nodes"], command["printed"] = 2, text or "python train.py"
    else:
        raise ValueError(f"no place {where}")
    return report


def lint(reperf, folder, reports):
    """The number of findings of each rule in each report: by one call, since most of a call is its start."""
    paths = []
    for report in reports:
        paths.append(os.path.join(folder, f"report-{len(paths)}.json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(report, file)
    done = subprocess.run([reperf, "lint", *paths, "--json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ValueError(done.stderr)
    answers = json.loads(done.stdout)["reports"]
    if len(answers) != len(reports):
        raise ValueError(f"{len(answers)} answers about {len(reports)} reports")
    return [collections.Counter(f["id"] for f in answer["findings"]) for answer in answers]


def main(reperf, clean_path, table, folder):
    clean = json.load(open(clean_path, encoding="utf-8"))
    clean["id"] = "report"
    counts = collections.defaultdict(lambda: [0, 0, 0, 0])
    bad = 0
    rows = [line.rstrip("\n").split("\t") for line in open(table, encoding="utf-8") if line.strip() and not line.startswith("#")]
    places = sorted({where for _, _, where, _ in rows})
    answers = lint(
        reperf, folder, [planted(clean, where, text.replace("~", "\n")) for _, _, where, text in rows] + [planted(clean, where, None) for where in places]
    )
    usual_of = dict(zip(places, answers[len(rows) :]))
    for (rule, sign, where, text), found in zip(rows, answers):
        usual = usual_of[where]
        right = found[rule] > usual[rule] if sign == "+" else not found - usual
        counts[rule][(0 if right else 1) if sign == "+" else (2 if right else 3)] += 1
        if not right:
            bad += 1
            print(f"{'missed' if sign == '+' else 'false alarm'}: {rule}: {where}: {text}: {dict(found - usual)}")
    for rule, (n_found, n_missed, n_quiet, n_false) in sorted(counts.items()):
        print(f"{rule}: {n_found} found, {n_missed} missed; {n_quiet} innocent, {n_false} false alarms")
        if n_found + n_missed < 6 or n_quiet + n_false < 3:
            bad += 1
            print(f"{rule}: too few rows")
    total = [sum(c[idx] for c in counts.values()) for idx in range(4)]
    print(f"all: {total[0]} found, {total[1]} missed; {total[2]} innocent, {total[3]} false alarms")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
