#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what audit and lint print against libraries that others made, and against lists.

check_output.py sarif FILE: every object fits the class that python3-sarif-python-om generated from the SARIF 2.1.0 schema,
    and has what GitHub's code scanning needs.
check_output.py junit FILE: python3-junitparser reads it, and its counts are those of its cases.
check_output.py numbers JSON CSV LIST: every row of CSV is judged in JSON; those that differ are exactly those that LIST names.
check_output.py defects README LINT AUDIT: every finding that the list of defects names fires on the report it names.
check_output.py findings JSON: the ids of all findings, sorted.
Exit 0: all holds."""
import csv
import decimal
import gzip
import json
import re
import sys
import urllib.parse


def place_faults(run, place):
    """A base that is named, and no path of a machine; or a whole address."""
    artifact = place["artifactLocation"]
    is_relative = re.fullmatch(r"[A-Za-z0-9._~/%-]+", artifact["uri"])
    if artifact.get("uriBaseId") not in (run["originalUriBaseIds"] if is_relative else [None]) or artifact["uri"].startswith("/"):
        yield f"{artifact['uri']} and its base"
    if place.get("region", {"startLine": 1})["startLine"] < 1:
        yield "a region before the first line"


def region_faults(location):
    """What the region holds of a file of this checkout is what is named."""
    place = location["physicalLocation"]
    if place["artifactLocation"].get("uriBaseId") != "%SRCROOT%":
        return
    region = place["region"]
    line = open(urllib.parse.unquote(place["artifactLocation"]["uri"]), encoding="utf-8").read().split("\n")[region["startLine"] - 1]
    text = line[region["startColumn"] - 1:region["endColumn"] - 1]
    name = location["logicalLocations"][0]["fullyQualifiedName"]
    if region["endLine"] != region["startLine"] or not text.strip() or text != text.strip():
        yield f"its region is {text!r}"
    elif text.startswith("[") and set(re.findall(r"[0-9]+|[a-z][a-z0-9.-]+", text)) & set(re.findall(r"[0-9]+", name) + name.split("/")):
        return  # the row of a table, which has a part of the case's name
    elif not name.startswith("$") and text != json.dumps(name):
        yield f"{name} is not its region: {text[:80]!r}"


# What GitHub's code scanning needs, each not empty. Source: https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/
# sarif-support-for-code-scanning, "Supported SARIF output file properties" and its limits, read 2026-11-24.
NEEDED_RULE = ("id", "shortDescription.text", "fullDescription.text", "help.text")
NEEDED_RESULT = ("message.text", "locations.0.physicalLocation.artifactLocation.uri", "partialFingerprints.primaryLocationLineHash")
NEEDED_REGION = ("startLine", "startColumn", "endLine", "endColumn")
RESULTS_MAX, DESCRIPTION_MAX, PACKED_MAX = 25000, 1024, 10 << 20


def get(value, path):
    for key in path.split("."):
        value = value[int(key)] if key.isdigit() and value else value.get(key) if value else None
    return value


def scanning_faults(document):
    if document.get("$schema") != "https://json.schemastore.org/sarif-2.1.0.json":
        yield "$schema"
    if len(gzip.compress(json.dumps(document).encode())) > PACKED_MAX:
        yield "too large to upload"
    seen = set()
    for run in document["runs"]:
        if not get(run, "tool.driver.name") or len(run["results"]) > RESULTS_MAX:
            yield "a tool without a name, or too many results"
        for rule in run["tool"]["driver"]["rules"]:
            yield from (f"rule {rule['id']}: {need}" for need in NEEDED_RULE if not get(rule, need) or len(get(rule, need)) > DESCRIPTION_MAX)
        for idx, result in enumerate(run["results"]):
            place = result["locations"][0]["physicalLocation"]
            yield from (f"results[{idx}]: {need}" for need in NEEDED_RESULT if not get(result, need))
            if place["artifactLocation"].get("uriBaseId") == "%SRCROOT%":
                yield from (f"results[{idx}]: region.{need}" for need in NEEDED_REGION if not get(place, "region." + need))
            if result["level"] not in ("error", "warning", "note"):
                yield f"results[{idx}]: level"
            key = get(result, "partialFingerprints.primaryLocationLineHash")
            if key in seen:
                yield f"results[{idx}]: its fingerprint is another's"
            seen.add(key)


def sarif(path):
    import sarif_om as om

    classes = {
        "runs": om.Run, "tool": om.Tool, "driver": om.ToolComponent, "rules": om.ReportingDescriptor, "results": om.Result,
        "message": om.Message, "locations": om.Location, "physicalLocation": om.PhysicalLocation,
        "artifactLocation": om.ArtifactLocation, "region": om.Region, "logicalLocations": om.LogicalLocation,
        "shortDescription": om.MultiformatMessageString, "fullDescription": om.MultiformatMessageString, "help": om.MultiformatMessageString,
        "defaultConfiguration": om.ReportingConfiguration, "relatedLocations": om.Location, "description": om.Message,
    }
    maps = {"originalUriBaseIds": om.ArtifactLocation, "partialFingerprints": None}  # whose keys are free
    bad = []

    def check(kind, value, place):
        names = {a.metadata["schema_property_name"]: a for a in kind.__attrs_attrs__}
        for key in value:
            if key not in names:
                bad.append(f"{place}.{key}: no such property of {kind.__name__}")
        for key, attribute in names.items():
            if attribute.default.__class__.__name__ == "_Nothing" and key not in value:
                bad.append(f"{place}: {kind.__name__} needs {key}")
        for key, child in value.items():
            if key in maps and isinstance(child, dict):
                for name, item in child.items():
                    if maps[key] and isinstance(item, dict):
                        check(maps[key], item, f"{place}.{key}.{name}")
                    elif maps[key] or not isinstance(item, str):
                        bad.append(f"{place}.{key}.{name}: not what SARIF has there")
                continue
            children = child if isinstance(child, list) else [child]
            for idx, item in enumerate(children):
                if isinstance(item, dict):
                    if key not in classes:
                        bad.append(f"{place}.{key}: an object where none was expected")
                    else:
                        check(classes[key], item, f"{place}.{key}[{idx}]")

    document = json.load(open(path, encoding="utf-8"))
    check(om.SarifLog, document, "$")
    for run in document["runs"]:
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        if len(set(rules)) != len(rules) or rules != sorted(rules):
            bad.append("rules are not unique and sorted")
        for idx, result in enumerate(run["results"]):
            if rules[result["ruleIndex"]] != result["ruleId"]:
                bad.append(f"results[{idx}]: ruleIndex is not the one of {result['ruleId']}")
            for kind in ("locations", "relatedLocations"):
                for place in result.get(kind, []):
                    bad += [f"results[{idx}]: {fault}" for fault in place_faults(run, place["physicalLocation"])]
            bad += [f"results[{idx}]: {fault}" for fault in region_faults(result["locations"][0])]
    bad += scanning_faults(document)
    if document["version"] != "2.1.0":
        bad.append("version")
    return bad


def junit(path):
    import junitparser

    bad = []
    total = junitparser.JUnitXml.fromfile(path)
    all_cases = 0
    for suite in total:
        cases = list(suite)
        all_cases += len(cases)
        kinds = [type(r).__name__ for case in cases for r in case.result]
        for count, kind in ((suite.failures, "Failure"), (suite.errors, "Error"), (suite.skipped, "Skipped")):
            if count != kinds.count(kind):
                bad.append(f"{suite.name}: says {count} and has {kinds.count(kind)} {kind}")
        if suite.tests != len(cases):
            bad.append(f"{suite.name}: says {suite.tests} tests and has {len(cases)}")
        if len({case.name for case in cases}) != len(cases):
            bad.append(f"{suite.name}: a case twice")
    if total.tests != all_cases or all_cases == 0:
        bad.append(f"says {total.tests} tests and has {all_cases}")
    return bad


def numbers(output, table, listed):
    bad = []
    cells = {}
    for report in json.load(open(output, encoding="utf-8"))["reports"]:
        for cell in report["cells"]:
            if cell["metric"] == "throughput":
                key = (report["report"], cell["model"], cell["precision"], cell["gpus"], cell["batch_per_gpu"])
                cells.setdefault(key, []).append(cell)
    differs = set()
    rows = 0
    for row in csv.DictReader(open(table, encoding="utf-8")):
        rows += 1
        key = (row["report"], row["model"], row["precision"], int(row["gpus"]), int(row["batch_per_gpu"]))
        own = [c for c in cells.get(key, ()) if any(log["path"].startswith(row["log"]) for log in c["logs"])]
        own = [c for c in own if decimal.Decimal(c["printed"]) == decimal.Decimal(row["published"])]
        if len(own) != 1:
            bad.append(f"{key}: {len(own)} cells for {row['log']}")
        elif own[0]["framework_label"] != row["framework"] or own[0]["unit"] != row["unit"]:
            bad.append(f"{own[0]['cell']}: another framework or unit than {row['framework']}, {row['unit']}")
        elif own[0]["verdict"] == "no_log":
            bad.append(f"{own[0]['cell']}: not judged")
        elif own[0]["verdict"] == "differs":
            differs.add(own[0]["cell"])
    wanted = {line.strip() for line in open(listed, encoding="utf-8") if line.strip()}
    bad += [f"{cell}: differs, and should hold" for cell in sorted(differs - wanted)]
    bad += [f"{cell}: holds, and should differ" for cell in sorted(wanted - differs)]
    print(f"{rows} rows, {len(differs)} differ")
    return bad


def fired(path):
    by_report = {}
    for report in json.load(open(path, encoding="utf-8"))["reports"]:
        by_report.setdefault(report["report"], set()).update(f["id"] for f in report["findings"])
    return by_report


def defects(readme, lint, audit):
    bad = []
    found = fired(lint)
    for report, ids in fired(audit).items():
        found.setdefault(report, set()).update(ids)
    numbers_seen = set()
    text = " ".join(open(readme, encoding="utf-8").read().split())
    for number, item in re.findall(r"- \*\*E\.(\d+)\*\* (.*?)(?= - \*\*E\.|$)", text):
        numbers_seen.add(int(number))
        reason, _, rest = item.partition(" Found by ")
        ids, _, reports = (re.findall(r"`([a-z0-9-]+)`", part) for part in rest.partition(" in "))
        if not ids and not reason.strip():
            bad.append(f"E.{number}: neither a finding nor a reason")
        for one in ids:
            if not any(one in found.get(report, ()) for report in reports):
                bad.append(f"E.{number}: {one} does not fire on {reports}")
        for report in reports:
            if report not in found:
                bad.append(f"E.{number}: no report {report}")
            elif not set(ids) & found[report]:
                bad.append(f"E.{number}: none of {ids} fires on {report}")
    if numbers_seen != set(range(1, 34)):
        bad.append(f"not in the list: {sorted(set(range(1, 34)) - numbers_seen)}")
    return bad


def findings(path):
    for report, ids in sorted(fired(path).items()):
        print(" ".join(sorted(ids)))
    return []


def main(args):
    commands = {"sarif": sarif, "junit": junit, "numbers": numbers, "defects": defects, "findings": findings}
    if len(args) < 2 or args[0] not in commands:
        print("usage: check_output.py sarif|junit|numbers|defects|findings FILE...", file=sys.stderr)
        return 2
    bad = commands[args[0]](*args[1:])
    for line in bad:
        print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
