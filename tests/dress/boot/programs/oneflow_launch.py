# SPDX-License-Identifier: Apache-2.0
"""As oneflow.distributed.launch of 0.9.0 (python/oneflow/distributed/launch.py) starts ranks: its options, its environment, the first failure's status."""
import argparse
import os
import subprocess
import sys

parser = argparse.ArgumentParser(allow_abbrev=False)
for option, default in (("--nnodes", 1), ("--node_rank", 0), ("--nproc_per_node", 1), ("--master_port", 29500)):
    parser.add_argument(option, type=int, default=default)
parser.add_argument("--master_addr", default="127.0.0.1")
parser.add_argument("words", nargs=argparse.REMAINDER)
args = parser.parse_args()
ranks = []
for local in range(args.nproc_per_node):
    env = dict(os.environ, MASTER_ADDR=args.master_addr, MASTER_PORT=str(args.master_port), WORLD_SIZE=str(args.nproc_per_node * args.nnodes),
               RANK=str(args.nproc_per_node * args.node_rank + local), LOCAL_RANK=str(local))
    ranks.append(subprocess.Popen([sys.executable, "-u"] + args.words, env=env))
sys.exit(next((status for status in [rank.wait() for rank in ranks] if status), 0))
