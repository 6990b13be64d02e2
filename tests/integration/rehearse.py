#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rehearse.py ROOT < COMMANDS...: runs the script that each container of a run would run (tests/servers/plan_commands.c), in the folder ROOT as its file system, where the frameworks
are stood in for by stubs that note how they are called; then holds number of ranks, number of the node and batch against the case. One line a
fault; the last line counts."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys

sys.dont_write_bytecode = True  # nothing is left in the checkout
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../cluster/published"))
from option_value import batch, value  # noqa: E402

root = sys.argv[1]
NOTE = os.path.join(root, "note")
OWN = ("workspace", "data", "datasets", "imagenet", "ILSVRC2012", "tmp", "results", "root")


def inside(words):
    words = words[words.index("docker") + 1:]
    env = dict(word.partition("=")[::2] for before, word in zip(words, words[1:]) if before == "--env")
    return env, words[-1]


def ranks(words, hosts):
    gpus = value(words, "--devices", "--gpus")
    if "mpiexec" in words:
        return int(value(words, "-np"))
    if "paddle.distributed.launch" in words or words[0] == "fleetrun":
        ips = value(words, "--ips")
        return len(gpus.split(",")) * (len(ips.split(",")) if ips else int(value(words, "--nnodes") or 1))
    over = value(words, "--params_override")
    if over:
        return int(re.search(r"num_gpus=(\d+)", over).group(1)) * max(hosts, 1)
    return int(value(words, "--nproc_per_node") or 1) * int(value(words, "--nnodes") or 1)


HOSTS = os.path.join(root, "etc/hosts")


def address():
    """What the host's name resolves to."""
    return next(line.split()[0] for line in open(HOSTS) if socket.gethostname() in line.split()[1:])


def run(env, script):
    with open(HOSTS, "w") as hosts:
        hosts.write("127.0.1.1 %s\n" % socket.gethostname())
    for name in OWN:
        shutil.rmtree(os.path.join(root, name), ignore_errors=True)
        if name in ("tmp", "root"):
            os.mkdir(os.path.join(root, name))
    # What its image holds, and the data that it asks for.
    if "cd /workspace/mmsegmentation" in script:
        shutil.copytree(os.path.join(root, "mmsegmentation"), os.path.join(root, "workspace/mmsegmentation"))
    for sign, place in (("--data_dir=/data/tfrecords", "data/tfrecords"), ("RN50v1.5", "data/imagenet/train-val-recordio-passthrough")):
        if sign in script:
            os.makedirs(os.path.join(root, place))
    data = os.path.join(root, "reperf/data")
    os.path.islink(data) and os.unlink(data)
    os.symlink("cityscapes-data" if "/cityscapes" in script else "bert-data", data)
    open(NOTE, "w").close()
    env = dict(env, PATH="/stubs:/usr/bin:/bin", HOME="/root")
    done = subprocess.run([shutil.which("chroot") or "/usr/sbin/chroot", root, "/bin/sh", "-c", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, done.stdout, [json.loads(line) for line in open(NOTE)]


def faults_of(command, node_rank):
    model, _, _, size, bs = command["case"].split("/")[:5]
    nodes, gpus = (int(part) for part in size[1:].split("g"))
    env, script = inside(command["argv"])
    status, log, calls = run(env, script)
    if status != 0 or len(calls) != 1:
        yield "status %d, %d launches: %s" % (status, len(calls), log[-300:])
        return
    installs = re.search(r"^would .*pip.* install .*", log, re.M)
    if installs:
        yield "what its image should hold is installed in each container: %s" % installs.group()
    words = calls[0]["words"]
    if value(words, "-n") == "1,8": # measures both in one go
        found = gpus * nodes if str(gpus * nodes) in ("1", "8") else 0
    else:
        found = ranks(words, calls[0]["hosts"])
    if found != nodes * gpus:
        yield "%d ranks, expected %d: %s" % (found, nodes * gpus, words)
    asked = value(words, "--rank", "--node_rank") or (re.findall(r"task_index=(\d+)", " ".join(words)) or [None])[0]
    if asked is not None and int(asked) != node_rank:
        yield "node %d says that it is %s" % (node_rank, asked)
    own = env["NODE_IPS"].split(",")[node_rank]
    if nodes > 1 and ("paddle.distributed.launch" in words or words[0] == "fleetrun") and (value(words, "--host", "--node_ip") or address()) != own:
        yield "Paddle's launcher takes %s for the node's address, which is %s" % (address(), own)
    if batch(words) and batch(words) != int(bs[2:]):
        yield "batch %d, expected %s: %s" % (batch(words), bs, words)
    if not batch(words) and not {"tools/train.py", "classifier_trainer.py"} & set(words):
        yield "no batch in %s" % words
    stated, steps = command["conditions"].get("global_batch"), value(words, "--gradient_accumulation_steps", "--num_accumulation_steps")
    if stated and steps and batch(words) * int(steps) * found != int(stated):
        yield "%d steps of accumulation on %d ranks are no batch of %s" % (int(steps), found, stated)
    if calls[0]["absent"]:
        yield "told to read %s, which is not there" % calls[0]["absent"]
    if calls[0]["data"] < 1:
        yield "started in %s, where no data are found" % calls[0]["cwd"]


def main():
    seen, n, n_faults = {}, 0, 0
    for command in json.load(sys.stdin):
        if "/reperf/" in command["case"]:
            continue
        key = command["case"]
        node_rank = seen.get(key, 0)
        seen[key] = node_rank + 1
        if 0 < node_rank < int(key.split("/")[3][1:].split("g")[0]) - 1:
            continue  # as the first and the last
        n += 1
        for fault in faults_of(command, node_rank):
            n_faults += 1
            print("%s, node %d: %s" % (key, node_rank, fault))
    print("%d scripts of %d cases, %d faults" % (n, len(seen), n_faults))
    return 1 if n_faults else 0


sys.exit(main())
