#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The CI examples of a Markdown file, as what they run.

ci_steps.py FILE KIND: of the example of that kind (once, github, gitlab) one shell script on standard output, step by step as the service runs them;
what needs a network or a package (uses:, apt) is left out and named on standard error. Exit 1: the example is none of that service."""
import re
import sys

import yaml

NETWORK = re.compile(r"\b(apt|apt-get|pip|pip3|curl|wget)\b")
GITHUB_KEYS = {"name", True, "permissions", "jobs"}  # "on" is a truth value in YAML 1.1
GITHUB_STEP = {"name", "uses", "run", "if", "with"}
GITLAB_JOB = {"tags", "before_script", "script", "artifacts"}


def github(document):
    if set(document) != GITHUB_KEYS or len(document["jobs"]) != 1:
        raise ValueError(f"a workflow of {sorted(map(str, document))}")
    (job,) = document["jobs"].values()
    if set(job) != {"runs-on", "steps"}:
        raise ValueError(f"a job of {sorted(job)}")
    for step in job["steps"]:
        if not set(step) <= GITHUB_STEP or ("uses" in step) == ("run" in step) or ("with" in step and "uses" not in step):
            raise ValueError(f"a step of {sorted(step)}")
        yield step.get("run") or "uses: " + step["uses"]


def gitlab(document):
    (job,) = document.values()
    if not set(job) <= GITLAB_JOB or not all(isinstance(line, str) for line in job["script"]):
        raise ValueError(f"a job of {sorted(job)}")
    yield from job["before_script"] + job["script"]


def main(path, kind):
    text = open(path, encoding="utf-8").read().split("\n## In your own CI\n", 1)[1]
    blocks = re.findall(r"^```(sh|yaml)\n(.*?)^```$", text, re.S | re.M)
    if [language for language, _ in blocks] != ["sh", "yaml", "yaml"]:
        raise ValueError("expected one block of sh and two of YAML")
    block = blocks[["once", "github", "gitlab"].index(kind)][1]
    steps = [block] if kind == "once" else {"github": github, "gitlab": gitlab}[kind](yaml.safe_load(block))
    for step in steps:
        if step.startswith("uses: ") or NETWORK.search(step):
            print("left out: " + step.strip(), file=sys.stderr)
        else:
            print(step.rstrip("\n"))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (ValueError, KeyError, TypeError, yaml.YAMLError) as fault:
        sys.exit(f"{sys.argv[1]}: {fault}")
