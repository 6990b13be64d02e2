#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_ranks.py REPORT.json EVIDENCE: how every rank of a rehearsal was started, by its own words in the raw logs, held against the report: its number
and its node's, that it met all others, the program's words, the stack's environment, its GPU, its data, and the container's limits. One line a fault; the
last line counts."""
import glob
import json
import os
import re
import shlex
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing is left in the checkout
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "published"))
from option_value import batch, value  # noqa: E402

report = json.load(open(sys.argv[1]))
evidence = sys.argv[2]
plan = json.load(open(os.path.join(evidence, "manifest/plan.json")))
stacks = {stack["id"]: stack for stack in report["stacks"]}
cases = {case["id"]: case for case in report["cases"]}
faults, n_cases, n_processes, n_gpus = [], 0, 0, 0


def gpus_of(words, per_node):
    """Of a process that has all of its node; one that measures several counts in one go, the most."""
    counts = value(words, "-n")
    return list(range(max(map(int, counts.split(","))) if counts else per_node))


def command_of(stack, recipe, case_id):
    _, _, precision, size, bs = case_id.split("/")[:5]
    nodes, gpus = (int(part) for part in size[1:].split("g"))
    for command in recipe.get("commands") or stack["commands"]:
        if command["purpose"] == "run" and command["nodes"] in (0, nodes) and command["gpus"] in (0, nodes * gpus) and \
                command["precision"] in (None, precision) and command.get("batch") in (None, int(bs[2:])):
            return command["works"] if command["works"] is not None else command["printed"]
    return None


def typed(text, env):
    """The words after the training program's name, as a shell expands the report's own line."""
    stubs = "sed() { :; }\ncd() { :; }\n" + "".join('%s() { printf "%%s\\n" %s "$@" ; }\n' % (name, name) for name in ("python", "python3", "mpiexec", "fleetrun", "bash"))
    stubs += "alias python3.7=python\n"
    done = subprocess.run(["/bin/sh", "-c", "set -e\n" + stubs + text], env=dict(env, PATH="/usr/bin:/bin"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    return done.stdout.split("\n")[:-1]


def check_case(step, note):
    case_id = step["case"]
    stack = stacks[cases[case_id]["stack"]]
    recipe = next(recipe for recipe in stack["full"] if recipe["title"] == step["recipe"])
    nodes, per_node = (int(part) for part in case_id.split("/")[3][1:].split("g"))
    fault = lambda what: note("%s: %s" % (case_id, what))
    found = []
    logs = sorted(glob.glob(os.path.join(evidence, "logs/raw", case_id, "repeat-1*.log")))
    for path in logs:
        lines = open(path).read().split("\n")
        container = [json.loads(line) for line in lines if line.startswith('{"event":"container"')]
        if len(container) != 1 or not container[0]["holds"] or container[0]["gpus"] != 8 or (nodes > 1 and not container[0]["is_host_net"]):
            fault("%s: container is %s" % (os.path.basename(path), container))
        found += [json.loads(line.split(" ", 2)[2]) for line in lines if line.startswith("STAND-IN rank ")]
    if len(logs) != nodes or len({rank["host"] for rank in found}) != nodes:
        fault("%d logs of %d nodes, expected %d" % (len(logs), len({rank["host"] for rank in found}), nodes))
    # A process may have several GPUs: one a node, then.
    is_one = (bool(found) and len(found[0]["devices"]) > 1) or len(found) == nodes != nodes * per_node
    world = nodes if is_one else nodes * per_node
    if sorted(rank["rank"] for rank in found) != list(range(world)):
        fault("ranks %s, expected 0 to %d" % (sorted(rank["rank"] for rank in found), world - 1))
        return found
    first = sorted(found, key=lambda rank: rank["rank"])[0]
    own_words = lambda rank: [word for word in rank["argv"] if not word.startswith("--local_rank=") and not word.startswith("--params_override=")]
    for rank in found:
        here = "rank %d" % rank["rank"]
        if rank["world"] != world or sorted(rank["met"]) != list(range(world)):
            fault("%s of %d met %s" % (here, rank["world"], rank["met"]))
        if world > nodes and rank["rank"] != int(rank["node"]) * per_node + rank["local"]:
            fault("%s is the %dth of node %s" % (here, rank["local"], rank["node"]))
        if rank["devices"] != (gpus_of(rank["argv"], per_node) if is_one else [rank["local"]]):
            fault("%s computes on %s" % (here, rank["devices"]))
        if own_words(rank) != own_words(first):
            fault("%s has other words than rank 0: %s" % (here, rank["argv"]))
        if nodes > 1 and rank["master"].rsplit(":", 1)[0] != rank["env"]["NODE_IPS"].split(",")[0]:
            fault("%s meets at %s" % (here, rank["master"]))
        if not rank["data"]:
            fault("%s sees no data in %s" % (here, rank["cwd"]))
        dropped = {name for name, text in (recipe.get("env") or {}).items() if text is None}
        for name, text in dict(stack["env"], **(recipe.get("env") or {})).items():
            if rank["env"].get(name) != (None if name in dropped else text):
                fault("%s: %s is %s, expected %s" % (here, name, rank["env"].get(name), text))
        if batch(rank["argv"]) and batch(rank["argv"]) != int(case_id.split("/")[4][2:]):
            fault("%s has batch %d" % (here, batch(rank["argv"])))
    words = typed(command_of(stack, recipe, case_id), first["env"])
    program = [idx for idx, word in enumerate(words) if word.endswith(".py") and os.path.basename(word) == os.path.basename(first["argv"][0])]
    if program and words[program[-1] + 1:] != [word for word in first["argv"][1:] if not word.startswith("--local_rank=")]:
        fault("rank 0 has %s, the report says %s" % (first["argv"][1:], words[program[-1] + 1:]))
    if not program and not any(word.startswith("scripts/") for word in words):
        fault("the report's command names no such program as %s: %s" % (first["argv"][0], shlex.join(words)))
    return found


for step in plan["steps"]:
    if step["cause"] is None:
        n_cases += 1
        found = check_case(step, faults.append)
        n_processes += len(found)
        n_gpus += sum(len(rank["devices"]) for rank in found)
print("\n".join(faults + ["%d cases, %d processes on %d GPUs" % (n_cases, n_processes, n_gpus)]))
sys.exit(1 if faults else 0)
