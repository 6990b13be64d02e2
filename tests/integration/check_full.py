#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_full.py REPORT.json COMMANDS.json: what a run of the full profile would start (tests/servers/plan_commands.c), held against what the report's commands say: launcher,
world size, argv and environment of every node. Reads both documents for itself. One line a fault; the last line counts nodes and ranks."""
import json
import shlex
import subprocess
import sys

report, plan = (json.load(open(path)) for path in sys.argv[1:])
stacks = {stack["id"]: stack for stack in report["stacks"]}
commands = {}
for command in plan["commands"]:
    commands.setdefault(command["case"], []).append(command)
faults, n_nodes, n_ranks = [], 0, 0


def work(command):
    return command["works"] if command["works"] is not None else command["printed"]


def wanted(case, items):
    nodes, gpus = (int(part) for part in case["id"].split("/")[3][1:].split("g"))
    gpus *= nodes
    found = [c for c in items if c["purpose"] == "run" and c["nodes"] in (0, nodes) and c["gpus"] in (0, gpus)
             and c["precision"] in (None, case["id"].split("/")[2]) and c.get("batch") in (None, int(case["id"].split("/")[4][2:]))]
    return nodes, gpus, found[0]


def inside(words):
    """Of `docker run`: its options, the environment that it sets, and what runs in the container."""
    words = words[words.index("docker") + 1:]
    options, env, idx = [], {}, 0
    while words[idx].startswith("--"):
        if words[idx] == "--env":
            idx += 1
            name, _, value = words[idx].partition("=")
            env[name] = value
        elif words[idx] in ("--mount", "--ulimit", "--device"):
            idx += 1
            options.append((words[idx - 1], words[idx]))
        else:
            options.append(words[idx])
        idx += 1
    entry = [o.split("=", 1)[1] for o in options if isinstance(o, str) and o.startswith("--entrypoint=")]
    argv = entry + words[idx + 1:]
    return options, env, argv[argv.index("--") + 1:]


def typed(text, env):
    """What each line of the report's command calls, as a shell expands it: python and friends say their words instead of running."""
    stubs = "sed() { :; }\n" + "".join('%s() { printf "%%s\\n" %s "$@"; }\n' % (name, name) for name in ("python", "python3"))
    done = subprocess.run(["/bin/sh", "-c", "set -e\n" + stubs + text], env=env, stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return done.stdout


for case in report["cases"]:
    stack = stacks[case["stack"]]
    here = commands.get(case["id"], [])
    nodes, gpus, run = wanted(case, stack["commands"])
    per_node = gpus // nodes
    fault = lambda what: faults.append("%s: %s" % (case["id"], what))
    if len(here) != nodes or len({c["node"] for c in here}) != nodes:
        fault("%d commands, expected one on each of %d nodes" % (len(here), nodes))
        continue
    for rank, command in enumerate(here):
        options, env, argv = inside(command["argv"])
        for name, value in stack["env"].items():
            # The report's own mistake: the image's library path would be lost.
            if name != "LD_LIBRARY_PATH" and env.get(name) != value:
                fault("%s is %s, expected %s" % (name, env.get(name), value))
        if "LD_LIBRARY_PATH" in env:
            fault("LD_LIBRARY_PATH is set")
        if "--network=host" not in options or "--gpus=all" not in options:
            fault("without the host's network or its GPUs")
        if stack["framework"] == "reperf":
            first = argv.index("ranks") + 1 if per_node > 1 else None
            launch = argv[first + 3:] if first else argv
            if launch != shlex.split(work(run)) or env.get("WORLD_SIZE") != str(gpus) or env.get("LOCAL_WORLD_SIZE") != str(per_node):
                fault("another launch of %s ranks: %s" % (env.get("WORLD_SIZE"), launch))
            if first and argv[first:first + 2] != [str(rank * per_node), str(per_node)]:
                fault("ranks from %s, %s of them" % tuple(argv[first:first + 2]))
        else:
            if argv[:2] != ["/bin/sh", "-c"] or not argv[2].endswith("\n" + work(run)):
                fault("does not end in the report's command: %s" % argv[-1])
            world = {"NNODES": str(nodes), "NPROC_PER_NODE": str(per_node), "NODE_RANK": str(rank)}
            if {name: env.get(name) for name in world} != world or len(env["NODE_IPS"].split(",")) != nodes:
                fault("node %d is told %s" % (rank, {name: env.get(name) for name in world}))
            if env["MASTER_ADDR"] != env["NODE_IPS"].split(",")[0] or not env["MASTER_PORT"].isdigit():
                fault("the first node is at %s:%s" % (env["MASTER_ADDR"], env["MASTER_PORT"]))
            words = typed(work(run), env).split("\n")
            here_gpus = [w.split("=", 1)[1] for w in words if w.startswith("--devices=") or w.startswith("--gpus=")]
            n_here = len(here_gpus[0].split(",")) if here_gpus else int(([w.split("=")[1] for w in words if w.startswith("--nproc_per_node=")] or ["1"])[0])
            if n_here != per_node:
                fault("its launcher starts %d ranks a node, expected %d" % (n_here, per_node))
            if nodes > 1:
                asked = ["--nnodes=%d" % nodes]
                asked += ["--rank=%d" % rank, "--master=%s:%s" % (env["MASTER_ADDR"], env["MASTER_PORT"])] if stack["framework"] == "paddle" else \
                    ["--node_rank=%d" % rank, "--master_addr=" + env["MASTER_ADDR"], "--master_port=" + env["MASTER_PORT"]]
                missing = [word for word in asked if word not in words]
                if missing:
                    fault("node %d's launcher lacks %s" % (rank, " ".join(missing)))
        n_nodes, n_ranks = n_nodes + 1, n_ranks + per_node
print("\n".join(faults + ["%d nodes, %d ranks" % (n_nodes, n_ranks)]))
sys.exit(1 if faults else 0)
