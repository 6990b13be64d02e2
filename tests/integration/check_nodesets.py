#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Node sets against ClusterShell's own NodeSet: check_nodesets.py PROGRAM SEED COUNT

PROGRAM (tests/servers/nodeset_lines.c) reads sets a line. COUNT random ones, and some that are wrong, go to it and to NodeSet: both must refuse, or
name the same nodes; names with one number must fold to the same text or a shorter one, others to a text of the same nodes.
Prints what differs; exit 0: nothing."""
import random
import subprocess
import sys

from ClusterShell.NodeSet import NodeSet, NodeSetException

WRONG = ["n[01-100]", "n[1-010]", "n[5-3]", "n[]", "n[1,]", "n[a-b]", "n[1", "a,,b", ",a", "a,", "n[-]", "n[1-2"]
NOT_OURS = ["n[0-10/2]", "a!b", "a[1-3]&a2", "a^b", "a,!b", "@g", "gpu*", "n?"]


def ranges(rng):
    parts = []
    for _ in range(rng.randint(1, 3)):
        first = rng.randint(0, 30)
        last = first + rng.choice([0, 0, 1, 2, 5, 12, 90])
        width = rng.choice([0, 0, 0, 2, 3])
        if len(str(last)) > max(width, len(str(first))) and width:
            width = len(str(last))
        part = f"{first:0{width}d}" if last == first else f"{first:0{width}d}-{last:0{width}d}"
        parts.append(part)
    return "[" + ",".join(parts) + "]"


def term(rng):
    stem = rng.choice(["n", "gpu", "node-", "a.b", "r1n"])
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(["login", "head", "n", "gpu1"])
    if kind < 0.3:
        return stem + str(rng.randint(0, 12))
    if kind < 0.85:
        return stem + ranges(rng) + rng.choice(["", "", "", "-ib", "x"])
    return rng.choice(["r", "rack"]) + ranges(rng) + rng.choice(["n", "-n"]) + f"[{rng.randint(0, 3)}-{rng.randint(3, 6)}]"


def expression(rng):
    text = term(rng)
    for _ in range(rng.randint(0, 4)):
        text += "," + term(rng)
    return text


def theirs(text):
    try:
        return NodeSet(text, resolver=None)
    except NodeSetException:
        return None


def differs(text, line):
    if text in NOT_OURS:
        return None if "is not understood" in line else f"expected that it is not understood, found {line[:200]}"
    want = theirs(text)
    if want is not None and len(want) > 4096:
        return None if line.startswith("error") else "expected a refusal: more than 4096 names"
    if want is None:
        return None if line.startswith("error ") else f"expected a refusal, found {line[:200]}"
    if not line.startswith("ok"):
        return f"expected {want}, found {line[:200]}"
    folded, *names = line[3:].split(" ") if len(line) > 3 else ("",)
    if sorted(names) != sorted(want):
        return f"expected {sorted(want)[:20]}, found {sorted(names)[:20]}"
    if str(NodeSet(folded, resolver=None)) != str(want):
        return f"folded {folded} is not {want}"
    simple = all(sum(c.isdigit() and (i == 0 or not n[i - 1].isdigit()) for i, c in enumerate(n)) <= 1 for n in names)
    if simple and folded != str(want):
        # With padded numbers ClusterShell splits 98-101 into 98-99,100-101.
        if len(folded) >= len(str(want)):
            return f"folded to {folded}, expected {want}"
        SHORTER.append(folded)
    return None


SHORTER = []


def main(args):
    program, seed, count = args[0], int(args[1]), int(args[2])
    rng = random.Random(seed)
    texts = NOT_OURS + WRONG + [expression(rng) for _ in range(count)]
    done = subprocess.run([program], input="".join(t + "\n" for t in texts), capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    if len(lines) != len(texts):
        print(f"{len(texts)} lines asked, {len(lines)} answered")
        return 1
    bad = 0
    named = 0
    for text, line in zip(texts, lines):
        named += line.startswith("ok ")
        message = differs(text, line)
        if message:
            bad += 1
            print(f"{text}: {message}")
    print(f"# {len(texts)} sets, {named} not refused, {len(SHORTER)} folded shorter")
    return 1 if bad or named * 2 < len(texts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
