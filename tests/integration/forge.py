#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""forge.py IN OUT CASE KEY=VALUE...: a report whose one case CASE is not what it was. Keys: log (its only log), printed, unit, format, rule (of the
case and its throughput), printed+ (0.05 more in the last place but one). The other cases and all derived cells are left out."""
import json
import sys


def main():
    source, out, case_id = sys.argv[1:4]
    changes = dict(pair.split("=", 1) for pair in sys.argv[4:])
    report = json.load(open(source, encoding="utf-8"))
    case = next(c for c in report["cases"] if c["id"] == case_id)
    cell = next(c for c in case["cells"] if c["metric"] == "throughput")
    case["cells"] = [cell]
    case["baseline"] = None
    report["cases"] = [case]
    if "log" in changes:
        case["logs"] = [changes["log"]]
    if "folder" in changes:
        report["logs"]["path"] = changes["folder"]
    for key in ("printed", "unit"):
        cell[key] = changes.get(key, cell[key])
    for key in ("format", "rule"):
        case[key] = changes.get(key, case[key])
    cell["also_printed"] = []
    with open(out, "w", encoding="utf-8") as file:
        json.dump(report, file)


main()
