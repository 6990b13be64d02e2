#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A made-up round of MLPerf Training: make_round.py FOLDER. FOLDER/training_results_v9.9 is a repository, FOLDER/results.csv its table."""
import json
import pathlib
import subprocess
import sys

HEAD = "round,division,availability,submitter,system,benchmark,result_min,accelerators,accelerator,framework"
START_MS = 1650000000000


def line(ms, key, value, **metadata):
    body = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key, "value": value, "metadata": {"file": "train.py", "lineno": 7, **metadata}}
    return ":::MLLOG " + json.dumps(body) + "\n"


def log(benchmark, platform, seed, minutes, status="success", accuracy=0.76):
    stop = START_MS + round(minutes * 60000)
    return "".join([
        line(START_MS - 900, "submission_benchmark", benchmark), line(START_MS - 800, "submission_platform", platform),
        line(START_MS - 700, "seed", seed), line(START_MS - 600, "global_batch_size", 512), line(START_MS, "run_start", None),
        "Speed: 512 samples/s\n", line(stop - 20, "eval_accuracy", accuracy, epoch_num=4), line(stop, "run_stop", None, status=status),
    ])


def submission(root, submitter, folder, name, nodes, per_node, benchmark, minutes, failed=(), factor=None, seeds=None):
    system = root / submitter / "systems" / f"{folder}.json"
    system.parent.mkdir(parents=True, exist_ok=True)
    system.write_text(json.dumps({"submitter": submitter, "system_name": name, "number_of_nodes": str(nodes), "accelerators_per_node": per_node,
                                  "accelerator_model_name": "A1", "host_processor_model_name": "C1", "operating_system": "OS 1"}))
    runs = root / submitter / "results" / folder / benchmark
    runs.mkdir(parents=True)
    for idx, took in enumerate(minutes):
        status = "aborted" if idx in failed else "success"
        seed = seeds[idx] if seeds else 100 + idx
        (runs / f"result_{idx}.txt").write_text(log(benchmark, f"{nodes}x{name}", seed, took, status))
    if factor:
        (runs / "scaling.json").write_text(json.dumps({"scaling_factor": factor}))
    kept = sorted((float("inf") if idx in failed else took) for idx, took in enumerate(minutes))[1:-1]
    return sum(kept) / len(kept) * (factor or 1)


def main(folder):
    folder = pathlib.Path(folder)
    root = folder / "training_results_v9.9"
    root.mkdir(parents=True)
    (root / "LICENSE.md").write_text("free\n")
    plain = submission(root, "Acme", "a 8x", "Acme 8", 1, 8, "resnet", [10, 11, 12, 13, 14])
    failed = submission(root, "Acme", "a16", "Acme 16", 2, 8, "resnet", [6, 5, 7, 5.5, 6.5], failed=[1])
    scaled = submission(root, "Acme", "a16s", "Acme 16", 2, 8, "ssd", [20, 21, 22, 23, 24], factor=1.25)
    first = submission(root, "Bolt_Co", "b1", "Bolt", 1, 4, "bert", [30 + idx / 8 for idx in range(10)])
    second = submission(root, "Bolt_Co", "b2", "Bolt", 1, 4, "bert", [40 + idx / 8 for idx in range(10)])
    renamed = submission(root, "Acme", "a4", "Acme four", 1, 4, "resnet", [50, 51, 52, 53, 54.5])
    submission(root, "Acme", "a2", "Acme 2", 1, 2, "resnet", [90, 91, 92, 93, 94])
    submission(root, "Acme", "gone", "Gone", 1, 8, "ssd", [1, 2, 3, 4, 5])
    rows = [("Acme", "Acme 8", "resnet", plain, 8), ("Acme", "Acme 16", "resnet", failed, 16), ("Acme", "Acme 16", "ssd", scaled, 16),
            ("Bolt+Co", "Bolt", "bert", second, 4), ("Bolt+Co", "Bolt", "bert", first, 4), ("Acme", "Acme IV", "resnet", renamed, 4),
            ("Acme", "Acme 2", "resnet", 77.25, 2), ("Acme", "Gone", "ssd", 3.0, 8), ("Nobody", "None", "resnet", 1.5, 8)]
    (folder / "results.csv").write_text(HEAD + "\n" + "".join(f'9.9,closed,available,{s},{n},{b},{m!r},{a},A1,"F 1, G 2"\n' for s, n, b, m, a in rows))
    git = ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@x", "-c", "init.defaultBranch=main"]
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "round"], ["remote", "add", "origin", "https://example.org/training_results_v9.9.git"]):
        subprocess.run(git + args, check=True)
    for gone in (root / "Acme/results/gone/ssd").iterdir():
        gone.unlink()


main(sys.argv[1])
