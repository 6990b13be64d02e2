#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""edit_leaves.py MOST RUN COMMAND...: edits every leaf of every file of a run's folder, one at a time, and prints those with which COMMAND does not end with
status 5; then "N leaves of M files". A leaf is a value of a JSON document or of a line that is one, else a line of text. Of a file that has more than MOST
(0: all) as many are taken, evenly. Each file is put back."""
import json
import os
import subprocess
import sys

# Events and metrics are for people, a run that is over holds no lock, and sealing writes its own files anew.
UNREAD = ("events.jsonl", "run.lock", "SHA256SUMS", "provenance.dsse.json", "statement.dsse.json", "ro-crate-metadata.json")


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key in value:
            yield from leaves(value[key], path + (key,))
    elif isinstance(value, list) and value:
        for idx, item in enumerate(value):
            yield from leaves(item, path + (idx,))
    else:
        yield path


def edited(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return "x"


def with_edit(document, path):
    copy = json.loads(json.dumps(document))
    at = copy
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = edited(at[path[-1]])
    return copy


def edits_of(text):
    """Each leaf of the text: where it is, and a function that makes the text with another one in its place."""
    try:
        document = json.loads(text)
        for path in leaves(document):
            yield "$" + "".join(f"[{part!r}]" for part in path), lambda path=path: json.dumps(with_edit(document, path), indent=2) + "\n"
        return
    except ValueError:
        pass
    lines = text.splitlines(keepends=True)
    for idx, line in enumerate(lines):
        def with_line(changed, idx=idx):
            return "".join(lines[:idx] + [changed] + lines[idx + 1:])
        try:
            document = json.loads(line)
        except ValueError:
            yield f"line {idx + 1}", lambda line=line, with_line=with_line: with_line("x" + line)
            continue
        for path in leaves(document):
            yield f"line {idx + 1} {path}", lambda document=document, path=path, with_line=with_line: with_line(
                json.dumps(with_edit(document, path), separators=(",", ":"), ensure_ascii=False) + "\n")


def main():
    most, folder, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    n = n_files = 0
    for top, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            path = os.path.join(top, name)
            if name in UNREAD or name.endswith(".tar.zst"):
                continue
            with open(path, encoding="utf-8") as file:
                whole = file.read()
            n_files += 1
            edits = list(edits_of(whole))
            step = max(1, -(-len(edits) // most)) if most else 1
            for where, edit in edits[n_files % step::step]:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(edit())
                status = subprocess.run(command, capture_output=True, check=False).returncode
                n += 1
                if status != 5:
                    print(f"{os.path.relpath(path, folder)} {where}: status {status}")
            with open(path, "w", encoding="utf-8") as file:
                file.write(whole)
    print(f"{n} leaves of {n_files} files")


main()
