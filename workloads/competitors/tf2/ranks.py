# SPDX-License-Identifier: Apache-2.0
"""Starts the workers of a node, each its own process: ranks.py PROGRAM OPTION.... The first worker of the job has the node's output, the others a file below
/tmp. One that fails ends the node."""
import json
import os
import subprocess
import sys
import time


def worker(argv, addresses, index):
    env = dict(os.environ, RANK=str(index), WORLD_SIZE=str(len(addresses)))
    if len(addresses) > 1:
        env["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
    output = None if index == 0 else open(f"/tmp/worker-{index}.log", "w")
    return subprocess.Popen([sys.executable, *argv], env=env, stdout=output, stderr=subprocess.STDOUT if output else None)


def main():
    here, each, port = (int(os.environ[name]) for name in ("NODE_RANK", "NPROC_PER_NODE", "MASTER_PORT"))
    addresses = [f"{ip}:{port + i}" for ip in os.environ["NODE_IPS"].split(",") for i in range(each)]
    indices = range(here * each, here * each + each)
    running = {index: worker(sys.argv[1:], addresses, index) for index in indices}
    while running:
        for index, process in list(running.items()):
            status = process.poll()
            if status:
                for other in running.values():
                    other.kill()
                if index:
                    sys.stderr.write(open(f"/tmp/worker-{index}.log", errors="replace").read()[-4000:])
                sys.exit(f"worker {index} ended with {status}")
            if status == 0:
                del running[index]
        time.sleep(0.1)


main()
