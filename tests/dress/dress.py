#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dress.py WORK SOURCES DATA COMMANDS...: runs the script of each container of a run of the full profile over the real upstream repositories, on up to four
nodes that nodes.sh has made, until each rank's program comes to its first call of a device; then holds what the program understood against the case. One line
a case: `ok`, `not ok`, `skip`; and one a program of where it came to. In the namespaces of nodes.sh; see README.md."""
import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASE_S = 600
# What is not text is left out of a checkout: it may be absent from a mirror, and no program reads it before a device.
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".mp4", ".pdf", ".pptx", ".svg", ".ico", ".woff", ".ttf")
# The condition that each of a program's values is held against.
HELD = (("batch", "batch_per_gpu"), ("accumulation", "grad_accumulation"), ("iterations", "iterations"), ("precision_mode", "precision_mode"), ("xla", "xla"),
        ("workers", "workers"), ("log_interval", "log_interval"), ("epochs", "epochs"), ("warmup", "warmup"), ("data_loader", "data_loader"), ("global_batch", "global_batch"))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# ---- code ----

def mirror_of(sources, url, commit):
    """The bare repository of a mirror (reperf data fetch --mirror) that has this commit, by whatever spelling of its address."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", re.sub(r"^[a-z]+://", "", url[:-4] if url.endswith(".git") else url))
    for path in sorted(glob.glob(os.path.join(sources, "sources", name + "[-.]*.git"))) if sources else []:
        found = subprocess.run(["git", "--git-dir", path, "rev-parse", "--verify", "-q", (commit or "HEAD") + "^{commit}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if found.returncode == 0:
            return path, found.stdout.decode().strip()
    return None, None


def check_out(repo, commit, folder, paths):
    """All files of a commit, or those below paths, but pictures and what the mirror lacks."""
    git = ["git", "--git-dir", repo]
    rows = subprocess.run(git + ["ls-tree", "-r", "-z", commit, "--"] + list(paths or []), stdout=subprocess.PIPE, check=True).stdout.split(b"\0")[:-1]
    files = []
    for row in rows:
        head, path = row.split(b"\t", 1)
        mode, kind, name = head.decode().split(" ")
        if kind == "blob" and not path.decode().lower().endswith(PICTURES):
            files.append((mode, name, path.decode()))
    cat = subprocess.Popen(git + ["cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ, GIT_NO_LAZY_FETCH="1"))
    for mode, name, path in files:
        cat.stdin.write(name.encode() + b"\n")
        cat.stdin.flush()
        head = cat.stdout.readline().split()
        if head[1:2] == [b"missing"]:
            continue
        data = cat.stdout.read(int(head[2]) + 1)[:-1]
        out = os.path.join(folder, path)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        if mode == "120000":
            os.symlink(data.decode(), out)
            continue
        with open(out, "wb") as file:
            file.write(data)
        os.chmod(out, int(mode[-3:], 8))
    cat.stdin.close()
    cat.wait()


# ---- a case ----

class Case(object):
    def __init__(self, step, report, stack, recipe, commands):
        self.id, self.step, self.report, self.stack, self.recipe, self.commands = step["case"], step, report, stack, recipe, commands
        self.nodes, self.per_node = (int(part) for part in self.id.split("/")[3][1:].split("g"))
        self.asks = load(os.environ.get("DRESS_ASKS_OF", os.path.join(HERE, "asks.json"))).get("%s/%s" % (report["id"], stack["id"]))

    def commit_of(self, mount):
        own = [source for source in self.stack["sources"] if source["repository"] == mount["name"]]
        return mount.get("commit") or (own[0]["commit"] if own else None), (own[0]["ref"] if own else None)


def script_of(command):
    """(variables, script): the container's own, without what the product puts around it."""
    words = command["argv"]
    words = words[words.index("docker") + 1:] if "docker" in words else words
    env = dict(word.partition("=")[::2] for before, word in zip(words, words[1:]) if before == "--env" and "=" in word)
    return env, words[-1]


def lists_of(image):
    """(repository, commit, path) of each list of packages that the image's Dockerfile installs from a clone."""
    path = os.path.join(os.environ.get("DRESS_IMAGES", os.path.join(ROOT, "images")), image, "Dockerfile")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    pins = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.M))
    for url, folder, pin, rest in re.findall(r"git clone (\S+) (\S+) +&& git -C \S+ checkout \$\{(\w+)\}(.*)", text):
        for listed in re.findall(r"-r %s/(\S+)" % re.escape(folder), rest):
            yield url, pins[pin], listed


class Stage(object):
    """Where cases play: checkouts that they share, and for each a root of its own on each node."""

    def __init__(self, work, sources, data, nodes):
        self.work, self.sources, self.data, self.nodes = work, sources, data, nodes
        self.checkouts = {}

    def code(self, case, mount):
        commit, ref = case.commit_of(mount)
        repo, found = mirror_of(self.sources, mount["name"], commit or ref)
        if repo is None:
            return None
        key = (repo, found, tuple(mount.get("paths") or ()))
        if key not in self.checkouts:
            folder = os.path.join(self.work, "code", str(len(self.checkouts)))
            os.makedirs(folder)
            check_out(repo, found, folder, mount.get("paths"))
            self.checkouts[key] = folder
        return self.checkouts[key]

    def mounts(self, case):
        """(what, where) of a recipe; or None and what this machine lacks, or () and what cannot be right, in words."""
        found = []
        for mount in case.recipe["mounts"]:
            if mount["kind"] == "source":
                path = self.code(case, mount)
                if path is None:
                    return None, "no mirror of %s@%s" % (mount["name"], (case.commit_of(mount)[0] or case.commit_of(mount)[1] or "?")[:12])
            elif mount["kind"] == "overlay":
                path = os.path.join(ROOT, "workloads/competitors", mount["name"])
            else:
                name = mount["name"] + ("" if mount.get("original") else ".synthetic")
                path = os.path.join(self.data, "trees", name)
                if not os.path.isdir(path):
                    return None, "the dataset %s is not here" % name
            found.append((path, mount["inside"], "mounted"))
        image = case.recipe["image"]
        for url, commit, path in lists_of(image):
            repo, full = mirror_of(self.sources, url, commit)
            if repo is None:
                return None, "no mirror of %s@%s, whose list of packages the image installs" % (url, commit[:12])
            if subprocess.run(["git", "--git-dir", repo, "cat-file", "-e", "%s:%s" % (full, path)], stderr=subprocess.DEVNULL).returncode != 0:
                return (), "the image installs what %s lists, which %s does not have at %s" % (path, url, commit[:12])
        if image in IMAGE_CODE:
            for where, url, commit, paths in IMAGE_CODE[image]:
                path = self.code(case, {"name": url, "commit": commit, "paths": paths})
                if path is None:
                    return None, "no mirror of %s@%s, which the image has" % (url, commit[:12])
                found.append((path, where, "installed"))
        return found, None

    def run(self, case, mounts):
        """Every node's script at once. Returns its notes, and each node's status and last words."""
        folder = os.path.join(self.work, "case")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "notes"))
        children = []
        for command, pid in zip(case.commands, self.nodes):
            env, script = script_of(command)
            here = os.path.join(folder, command["node"])
            os.makedirs(here)
            with open(os.path.join(here, "script"), "w") as file:
                file.write(script)
            with open(os.path.join(here, "mounts"), "w") as file:
                file.write("".join("%s\t%s\t%s\n" % row for row in mounts))
            env.update(DRESS_ASKS=json.dumps(case.asks or {}), DRESS_NOTES="/dress/notes", DRESS_CASE=case.id, HOME="/root", LANG="C.UTF-8",
                       PATH="/dress/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", PYTHONDONTWRITEBYTECODE="1")
            log = open(os.path.join(here, "log"), "wb")
            children.append((here, subprocess.Popen(["nsenter", "-t", str(pid), "-n", "-u", "--", "unshare", "-m", "--propagation", "private",
                                                     "/bin/sh", os.path.join(HERE, "root.sh"), here, os.path.join(folder, "notes"), HERE],
                                                    env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)))
        until = time.monotonic() + CASE_S
        ended = []
        for here, child in children:
            try:
                status = child.wait(timeout=max(1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = None
            ended.append((here, child, status))
        for here, child, status in ended:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        said = []
        for here, child, status in ended:
            with open(os.path.join(here, "log"), "rb") as log:
                text = log.read().decode("utf-8", "replace")
            said.append((os.path.basename(here), status, text))
        notes = [load(path) for path in sorted(glob.glob(os.path.join(folder, "notes", "*"))) if not path.endswith(".new")]
        return notes, said


# What an image of ours holds of upstream's, at the commits of its Dockerfile, where a Python finds it. The release of
# upstream that the fork merges is in no mirror; without it the fork takes the mmcv of the report's text, and no later one.
MMCV = "https://github.com/open-mmlab/mmcv.git"
FORK = "https://github.com/sljlp/mmsegmentation.git"
IMAGE_CODE = {
    "mmseg-0.11.0": (("/workspace/mmcv", MMCV, "ca47ae1f87d16a9b8a9bd6cd910fef3ce5d0306b", ["mmcv", "setup.py"]),
                     ("/workspace/mmsegmentation", FORK, "d0a71c1509c2d9f4cecfd775c3fb0c1e625a2d38", ["configs", "mmseg", "tools", "setup.py"])),
    "mmseg-0.21.1": (("/workspace/mmcv", MMCV, "b4bfeb53c57f2c843cb5015f9c0a2d1689dba9c4", ["mmcv", "setup.py"]),
                     ("/workspace/mmsegmentation", FORK, "a00a3b652282a20bdf294206587b604a18fc0d43", ["configs", "mmseg", "tools", "setup.py"])),
    "mmseg-0.30.0": (("/workspace/mmcv", MMCV, "b4bfeb53c57f2c843cb5015f9c0a2d1689dba9c4", ["mmcv", "setup.py"]),
                     ("/workspace/mmsegmentation", FORK, "a00a3b652282a20bdf294206587b604a18fc0d43", ["configs", "mmseg", "tools", "setup.py"])),
}


def number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def same(found, stated):
    """A program's value and a condition: numbers by their value, words by theirs."""
    if number(found) is not None and number(stated) is not None:
        return number(found) == number(stated)
    return str(found).lower() == str(stated).lower()


def faults_of(case, notes, said):
    conditions = case.step["conditions"]
    ranks = [note for note in notes if "device" in note]
    for note in notes:
        if "early" in note:
            yield "stopped early at %s: nothing is known of %s" % (note["early"], note["asked"])
            return
    bad = [(node, status, text) for node, status, text in said if status != 0]
    if bad:
        node, status, text = bad[0]
        yield "%s: %s: %s" % (node, "status %d" % status if status is not None else "not at its end after %d s" % CASE_S, " | ".join(line for line in text.strip().split("\n")[-6:])[-700:])
        return
    world = case.nodes * case.per_node
    numbers = sorted(note["rank"][0] for note in ranks)
    wanted = case.asks.get("processes", "ranks") if case.asks else "ranks"
    n = world if wanted == "ranks" else case.nodes
    if case.asks and case.asks.get("counts"):
        n = sum(int(count) for count in case.asks["counts"].split(","))
    elif numbers != list(range(n)):
        yield "ranks %s came to a device, expected 0 to %d: %s" % (numbers, n - 1, " | ".join(said[0][2].strip().split("\n")[-4:])[-400:])
        return
    if len(ranks) != n:
        yield "%d programs came to a device, expected %d" % (len(ranks), n)
        return
    for note in ranks:
        rank = note["rank"]
        if not (case.asks or {}).get("counts") and rank[1] != n:
            yield "rank %d takes itself for one of %d" % (rank[0], rank[1])
            return
        if case.nodes > 1 and wanted == "ranks" and rank[0] != int(note["env"]["NODE_RANK"]) * case.per_node + rank[2]:
            yield "rank %d is the %dth of node %s" % (rank[0], rank[2], note["env"]["NODE_RANK"])
            return
        if case.nodes > 1 and rank[3] and note["env"]["NODE_IPS"].split(",")[0] not in rank[3]:
            yield "rank %d meets at %s" % (rank[0], rank[3])
            return
    first = ranks[0]
    if not case.asks:
        yield "nobody says what this program is to be asked (asks.json)"
        return
    lacking = [name for name in case.asks if name not in first["understood"] and name not in ("processes", "counts", "why_not_held")]
    if lacking:
        yield "the program has no %s where it stopped, at %s" % (", ".join(lacking), first["at"])
    for name, condition in HELD:
        if name in first["understood"] and conditions.get(condition) is not None and not same(first["understood"][name], conditions[condition]):
            yield "%s: the program has %s, the case says %s" % (condition, first["understood"][name], conditions[condition])
    if "amp" in first["understood"] and bool(first["understood"]["amp"]) != (case.id.split("/")[2] != "fp32"):
        yield "precision: the program computes %s" % ("mixed" if first["understood"]["amp"] else "in fp32")
    if first["understood"].get("missing"):
        yield "there is no %s" % first["understood"]["missing"]


def cases_of(path):
    dry = load(path)
    report = load(os.path.join(os.environ.get("DRESS_REPORTS", os.path.join(ROOT, "manifests/reports")), dry["report"] + ".json"))
    stacks = {stack["id"]: stack for stack in report["stacks"]}
    of_case = {case["id"]: case for case in report["cases"]}
    commands = collections.OrderedDict()
    for command in dry["commands"]:
        commands.setdefault(command["case"], []).append(command)
    for step in dry["steps"]:
        stack = stacks[of_case[step["case"]]["stack"]]
        if stack["framework"] == "reperf":
            continue
        recipe = next((recipe for recipe in stack["full"] if recipe["title"] == step["recipe"]), None)
        yield Case(step, report, stack, recipe, commands.get(step["case"], []))


def main():
    work, sources, data = sys.argv[1:4]
    pids = [int(pid) for pid in os.environ["DRESS_NODES"].split()]
    only = re.compile(os.environ.get("ONLY", ""))
    stage = Stage(work, sources if sources != "-" else None, data, pids)
    counts, came = collections.Counter(), collections.Counter()
    for path in sys.argv[4:]:
        for case in cases_of(path):
            name = "%s %s" % (case.report["id"], case.id)
            if not only.search(name):
                continue
            if not case.commands:
                verdict = "skip", case.step.get("why") or case.step.get("cause") or "nothing would be started"
            else:
                mounts, why = stage.mounts(case)
                if why:
                    verdict = "skip" if mounts is None else "not ok", why
                else:
                    notes, said = stage.run(case, mounts)
                    faults = list(faults_of(case, notes, said))
                    ranks = [note for note in notes if "device" in note]
                    if faults:
                        verdict = "not ok", "; ".join(faults)
                    else:
                        at = "%s at %s" % (ranks[0]["device"], re.sub(r"^/(workspace|reperf)/", "", ranks[0]["at"]))
                        verdict = "ok", "%d programs to %s, %s" % (len(ranks), at, json.dumps(ranks[0]["understood"], sort_keys=True))
                        came["%s/%s: %s" % (case.report["id"], case.stack["id"], at)] += 1
            counts[verdict[0]] += 1
            print("%s\t%s\t%s" % (verdict[0], name, verdict[1].replace("\n", " ")))
            sys.stdout.flush()
    for where, n in sorted(came.items()):
        print("came\t%d\t%s" % (n, where))
    print("counted\t%d ok, %d not ok, %d skipped" % (counts["ok"], counts["not ok"], counts["skip"]))
    return 1 if counts["not ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
