#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Computes each explained cell again from what the explanation says, and holds it against what the audit says.

check_explain.py cells AUDIT: "REPORT CELL" of every cell of `audit --json`, one a line.
check_explain.py again AUDIT EXPLAINED RULES: of every cell of `explain --json`, the samples that count give the log's number by the rule (of
`explain --json` of the rules), the logs' numbers the recomputed one, and that is the audit's; the row's proof is the audit's.
check_explain.py lines EXPLAINED FOLDER: every sample's text is that line of the raw log below FOLDER, and holds the value as it is printed.
Exit 0: all holds."""
import json
import math
import statistics
import sys


def near(a, b):
    return a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


def cells_of(path):
    return {(r["report"], c["cell"]): c for r in json.load(open(path, encoding="utf-8"))["reports"] for c in r["cells"]}


def weighted(samples, is_seconds):
    """Each sample counts for the steps since its rank's previous sample; the first for as many as the second."""
    by_rank = {}
    for s in samples:
        by_rank.setdefault(s["rank"], []).append(s)
    top = bottom = 0.0
    for own in by_rank.values():
        steps = [b["step"] - a["step"] for a, b in zip(own, own[1:])]
        steps = [steps[0] if steps else 1] + steps
        if min(steps) <= 0:
            return None
        for weight, s in zip(steps, own):
            top += weight * s["value"] if is_seconds else weight
            bottom += weight if is_seconds else weight / s["value"]
    return top / bottom


def statistic(rule, samples, unit):
    values = [s["value"] for s in samples]
    times = [s["time_s"] for s in samples]
    name = rule["statistic"]
    if name in ("mean", "trimmed_mean", "olympic_mean", "tool", "last"):
        return math.fsum(values) / len(values)
    if name == "median":
        return statistics.median(values)
    if name == "harmonic_mean":
        return len(values) / math.fsum(1 / v for v in values)
    if name == "time_weighted_mean":
        return weighted(samples, unit == "s")
    if name in ("min", "max"):
        return (min if name == "min" else max)(values)
    if name == "first":
        return values[0]
    if name == "elapsed":
        return times[-1] - times[0]
    return None  # timestamps needs the batch: its steps say it


def again(audit, explained, rules):
    audited = cells_of(audit)
    rules = {r["rule"]: r for r in json.load(open(rules, encoding="utf-8"))["items"]}
    bad, n_logs, n_cells = [], 0, 0
    items = json.load(open(explained, encoding="utf-8"))["items"]
    for cell in items:
        place = f"{cell['report']} {cell['cell']}"
        a = audited[cell["report"], cell["cell"]]
        for key in ("verdict", "proof", "log_state", "recomputed", "rel_diff", "rule", "printed"):
            if cell[key] != a[key]:
                bad.append(f"{place}: {key} is {cell[key]}, and of the audit {a[key]}")
        unproven = sorted(f["fact"] for f in a["unproven"])
        if a["proof"] != "contradicted" and sorted(f["fact"] for f in cell["row"] if f["state"] == "unproven") != unproven:
            bad.append(f"{place}: not proven are {unproven}")
        rule = rules.get(cell["rule"])
        n_cells += cell["recomputed"] is not None
        for log in cell["logs"]:
            counted = [s for s in log["samples"] if s["use"] == "counted"]
            if not log["steps"]:
                continue
            n_logs += 1
            got = statistic(rule, counted, log["unit"])
            if got is not None and rule["statistic"] == "elapsed":
                got = round(got * 1e6) / 1e6 / {"s": 1, "min": 60, "h": 3600}[a["unit"] if a["unit"] in ("s", "min", "h") else "s"]
            if got is not None and not near(got, log["steps"][0]["value"]):
                bad.append(f"{place}: {len(counted)} samples give {got}, and the first step says {log['steps'][0]['value']}")
            if not near(log["steps"][-1]["value"], log["value"]):
                bad.append(f"{place}: the last step is not the log's number")
        if cell["recomputed"] is None:
            if cell["steps"]:
                bad.append(f"{place}: steps, and no number")
            continue
        values = [log["value"] for log in cell["logs"] if not log["is_left_out"]]
        how = rule["repeats"] if rule else None
        whole = {"single": lambda v: v[0], "mean": statistics.fmean, "median": statistics.median, "olympic": statistics.fmean}
        if how and not near(whole[how](values) * a.get("factor", 1), cell["recomputed"]):
            bad.append(f"{place}: the logs' numbers give {whole[how](values)}, recomputed is {cell['recomputed']}")
        decimals = len(cell["printed"].partition(".")[2])
        is_printed = near(cell["steps"][-1]["value"], float(cell["printed"]))
        if cell["verdict"] == "exact" and decimals < 9 and not is_printed:
            bad.append(f"{place}: exact, and the last step is {cell['steps'][-1]['value']}, printed {cell['printed']}")
        if cell["verdict"] == "differs" and is_printed and cell["proof"] != "contradicted":
            bad.append(f"{place}: differs, and the last step is the printed number")
    print("\n".join(bad) or f"{len(items)} cells, {n_cells} with a number, {n_logs} logs computed again")
    return bool(bad) or n_logs == 0


def lines(explained, folder):
    bad, n = [], 0
    for cell in json.load(open(explained, encoding="utf-8"))["items"]:
        for log in cell["logs"]:
            raw = open(f"{folder}/{log['address']['path']}", "rb").read().split(b"\n")
            for s in log["samples"]:
                n += 1
                text = raw[s["line"] - 1].decode("utf-8", "replace")[:400]
                if s["text"] != text or (s["value"] is not None and f"{s['value']:g}" not in text):
                    bad.append(f"{cell['cell']}: line {s['line']} is {text!r}, value {s['value']}")
    print("\n".join(bad) or f"{n} samples stand on their lines")
    return bool(bad) or n == 0


if __name__ == "__main__":
    if sys.argv[1] == "cells":
        print("\n".join(f"{r} {c}" for r, c in cells_of(sys.argv[2])))
        sys.exit(0)
    sys.exit({"again": again, "lines": lines}[sys.argv[1]](*sys.argv[2:]))
