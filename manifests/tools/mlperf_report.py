#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Room: judge
"""The report of a round of MLPerf Training, from what `reperf measure CHECKOUT --results CSV --json` says of it.

    reperf measure training_results_v1.0 --results results.csv --json |
        manifests/tools/mlperf_report.py training_results_v1.0 results.csv >manifests/reports/mlperf-training-1.0.json

README.md beside this file has the whole way. The checkout is a git clone: its commit, its remote and the list of its files are asked of
git; SUBMITTER/systems/SYSTEM.json describes a row's machine where the row's folder has one."""
import csv
import hashlib
import json
import pathlib
import re
import subprocess
import sys

RULE = "mlperf-training/result"
SLUG_BYTES = 56
SAID = {"cpu": "host_processor_model_name", "interconnect": "accelerator_interconnect", "os": "operating_system"}
SAID_OF_STACK = {"cuda": "cuda_version", "cudnn": "cudnn_version", "driver": "cuda_driver_version", "nccl": "nccl_version"}


def one_line(value):
    return re.sub(r"[\x00-\x1f]", " ", str(value).strip())[:512] if isinstance(value, (str, int, float)) else ""


def leading_int(value):
    digits = re.match(r"\d+", str(value if value is not None else "").strip())
    return int(digits.group()) if digits else 0


class Ids:
    """Slugs of names, each given once: NAME, NAME-2, ..."""

    def __init__(self):
        self.used = set()

    def slug(self, text):
        text = re.sub(r"[^a-z0-9]+", lambda m: "." if m.group()[0] == "." else "-", text.lower()).strip("-.")
        return text[:SLUG_BYTES].rstrip("-.") or "unnamed"

    def unique(self, kind, name):
        taken = (f"{name}-{n}" if n > 1 else name for n in range(1, sys.maxsize))
        name = next(each for each in taken if (kind, each) not in self.used)
        self.used.add((kind, name))
        return name


class Round:
    def __init__(self, checkout, table, measured):
        self.checkout, self.measured, self.ids = pathlib.Path(checkout), measured, Ids()
        self.table_sha256 = hashlib.sha256(pathlib.Path(table).read_bytes()).hexdigest()
        with open(table, newline="", encoding="utf-8") as file:
            lines = {row["line"] for row in measured["rows"]}
            reader = csv.DictReader(file)
            self.printed, begin = [], 2
            for fields in reader:  # a row may take several lines, and is named by its first
                self.printed += [fields] if begin in lines else []
                begin = reader.line_num + 1
        if not measured["rows"] or len(self.printed) != len(measured["rows"]):
            sys.exit(f"{table}: not the table of these {len(measured['rows'])} rows")
        self.files = self.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
        url = self.git("config", "--get", "remote.origin.url").strip()
        self.name = url.rsplit("/", 1)[-1].removesuffix(".git")
        self.source = {"repository": url, "commit": self.git("rev-parse", "HEAD").strip(),
                       "path": "LICENSE.md" if "LICENSE.md" in self.files else self.files[0],
                       "date": self.git("show", "-s", "--format=%cs", "HEAD").strip()}
        self.id = "mlperf-training-" + self.name.removeprefix("training_results_v")
        self.environments, self.stacks = {}, {}

    def git(self, *args):
        return subprocess.run(["git", "-C", self.checkout, *args], check=True, capture_output=True, text=True).stdout

    def system(self, folder):
        """The path of its description and what that says, or None and nothing."""
        if not folder:
            return None, {}
        submitter, _, system, _ = folder.split("/")
        path = f"{submitter}/systems/{system}.json"
        try:
            said = json.loads((self.checkout / path).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None, {}
        return (path, said) if isinstance(said, dict) else (None, {})

    def environment(self, row, printed):
        count = int(printed["accelerators"])
        path, said = self.system(row["folder"])
        key = path or (row["submitter"], row["system"], count)
        nodes, per_node = leading_int(said.get("number_of_nodes")), leading_int(said.get("accelerators_per_node"))
        nodes = nodes if nodes > 0 and nodes * per_node == count else 1
        if key not in self.environments:
            stack = said.get("other_software_stack")
            stack = stack if isinstance(stack, dict) else {}
            words = {name: one_line(said.get(of)) for name, of in SAID.items()}
            words |= {name: one_line(stack.get(of)) for name, of in SAID_OF_STACK.items()} | {"gpu": one_line(printed["accelerator"])}
            name = self.ids.slug(f"{row['submitter']}-{row['system']}")
            self.environments[key] = {
                "id": self.ids.unique("environment", name), "title": f"{row['submitter']}: {row['system']}", "nodes": nodes,
                "gpus_per_node": count // nodes, "conditions": {name: words[name] for name in sorted(words) if words[name]},
                **({"source": {"path": path}} if path else {})}
        return self.environments[key]["id"], nodes

    def stack(self, framework):
        if framework not in self.stacks:
            name = self.ids.unique("stack", self.ids.slug(framework))
            self.stacks[framework] = {"id": name, "label": framework or "not stated",
                                      **({"conditions": {"framework_version": one_line(framework)}} if framework else {})}
        return self.stacks[framework]["id"]

    def absent_folder(self, row):
        """The first folder of the commit, by names, none of whose logs is in the checkout: nothing could be measured there."""
        measured = {each["folder"] for each in self.measured["results"]}
        for path in self.files:
            folder, parts = path.rpartition("/")[0], path.split("/")
            names = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in (row["submitter"], parts[0], row["system"], *parts[2:3])]
            if (len(parts) == 5 and parts[1] == "results" and parts[3] == row["benchmark"] and names[0] == names[1] and
                    names[3].startswith(names[2]) and f"{self.checkout}/{folder}" not in measured):
                return folder
        return None

    def logs(self, row):
        """A folder some of whose logs are not in the checkout cannot be judged."""
        folder = row["folder"]
        held = [path for path in self.files if folder and re.fullmatch(re.escape(folder) + r"/result_[^/]*\.txt", path)]
        absent = [path for path in held if not (self.checkout / path).exists()]
        if absent:
            return [], f"{folder}; {len(absent)} of its {len(held)} logs are absent from the stored copy"
        return held, f"{folder}, {row['matched']}" if folder else row["matched"]

    def case(self, row, printed):
        row = row | {"folder": row["folder"] or self.absent_folder(row)}
        environment, nodes = self.environment(row, printed)
        stack = self.stack(printed["framework"])
        variant = self.ids.slug(f"{row['submitter']}-{row['system']}")
        per_node = int(printed["accelerators"]) // nodes
        name = self.ids.unique("case", f"{row['benchmark']}/{stack}/unstated/n{nodes}g{per_node}/bs0/{variant}")
        logs, matched = self.logs(row)
        case = {"model": row["benchmark"], "stack": stack, "environment": environment, "precision": "unstated", "variant": name.split("/")[-1],
                "rule": RULE, "unit": "min", "table": f"{printed['division']}, {printed['availability']}", "time_to_train": printed["result_min"],
                "logs": logs}
        factor = self.checkout / (row["folder"] or "none") / "scaling.json"
        if factor.exists():
            text = factor.read_bytes()
            case["factor"] = {"value": json.loads(text)["scaling_factor"], "path": f"{row['folder']}/scaling.json",
                              "sha256": hashlib.sha256(text).hexdigest()}
        return case | {"matched": matched}

    def report(self):
        cases = [self.case(row, printed) for row, printed in zip(self.measured["rows"], self.printed)]
        version = self.id.removeprefix("mlperf-training-")
        return {"schema_version": 2, "id": self.id,
                "title": f"MLPerf Training {version}: {len(cases)} results of the table with sha256 {self.table_sha256}",
                "source": self.source, "logs": {"path": self.name},
                "environments": list(self.environments.values()), "stacks": list(self.stacks.values()), "cases": cases}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: reperf measure CHECKOUT --results CSV --json | mlperf_report.py CHECKOUT CSV >REPORT.json")
    print(json.dumps(Round(sys.argv[1], sys.argv[2], json.load(sys.stdin)).report(), indent=2, ensure_ascii=False))
