#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""split.py FROM TO: what commands printed, each as two files that golden.sh compares with kept ones. FROM has NAME.json (a document) or NAME.text,
and NAME.err with what is to be added to its words. TO/NAME.facts has the numbers, statuses, verdicts and names, TO/NAME.words the sentences, so that a
change of wording changes no fact.

A document's facts are its members in order. In an array an object omits what it has in common with the one before it, and names as absent what that one
has beyond it, so equal files come from equal documents alone. A sentence shows there as "..."; the words have each once per place, with how often it
occurs. Of a text the facts are the numbers and verdicts line by line, the words the lines without them."""
import collections
import hashlib
import json
import pathlib
import re
import sys

COLUMNS_MAX = 150  # bytes of a value on one line
LIST_MAX = 600  # bytes of a list of files; a longer one is told by its ends and its digest
SENTENCES = {"message", "note", "why", "what", "words", "says", "text", "title", "help"}
# In a text; verdicts that are words of every day are in documents alone.
VERDICTS = set(
    "exact differs no_log reproduced faster slower not_comparable failed not_run no_metric incomplete nan ambiguous truncated proposed ok two_levels partial".split()
)
FACT = re.compile(r"(\d(?:\.*\d)*+)(?!\w)|\w+", re.ASCII)


def literal(at, key, place, words):
    """The document with its scalars as they are written, and its sentences as dots, which are counted in words."""
    if isinstance(at, dict):
        return {name: literal(value, name, f"{place}.{name}", words) for name, value in at.items()}
    if isinstance(at, list):
        return [literal(value, None, place, words) for value in at]
    if isinstance(at, str):
        text = json.dumps(at, ensure_ascii=False)
        if key in SENTENCES:
            words[f"{place}: {text}"] += 1
            return "..."
        return text
    return json.dumps(at) if at is None or isinstance(at, bool) else at.decode()


def items(at, before, depth):
    if isinstance(at, list):
        for last, item in zip([None] + at, at):
            yield facts(item, last, depth)
        return
    for key, value in at.items():
        if key not in before or before[key] != value:
            yield f"{key}: {facts(value, before.get(key), depth)}"
    yield from (f"{key}: absent" for key in before if key not in at)


def facts(at, before, depth):
    """Depth -1: on one line."""
    if isinstance(at, str):
        return at
    before = before if isinstance(before, dict) and isinstance(at, dict) else {}
    first, last = "{}" if isinstance(at, dict) else "[]"
    line = (first + ", ".join(items(at, before, -1)) + last).encode()
    if depth < 0 or len(line) <= COLUMNS_MAX:
        return line.decode()
    is_files = isinstance(at, list) and len(at) > 1 and all(isinstance(item, dict) and "path" in item for item in at) and "sha256" in at[0]
    if is_files and len(line) > LIST_MAX:
        return f"[{len(at)} from {at[0]['path']} to {at[-1]['path']}, {hashlib.sha256(line).hexdigest()[:16]}]"
    return first + "".join(f"\n{' ' * (depth + 1)}{item}" for item in items(at, before, depth + 1)) + last


def split_document(text):
    words = collections.Counter()
    document = literal(json.loads(text, parse_int=str.encode, parse_float=str.encode), None, "$", words)
    return facts(document, None, 0) + "\n", "".join(f"{n} {sentence}\n" for sentence, n in sorted(words.items()))


def split_text(text):
    of_facts, of_words = "", ""
    for line in text.split("\n"):
        found = []

        def take(match, found=found):
            is_fact = match[1] or match[0] in VERDICTS
            if is_fact:
                found.append(" " + match[0])
            return "#" if is_fact else match[0]

        of_words += FACT.sub(take, line) + "\n"
        of_facts += "".join(found) + "\n" if found else ""
    return of_facts, of_words


def main(source, target):
    def read(path):
        return path.read_bytes().decode(errors="surrogateescape")

    for path in sorted(pathlib.Path(source).iterdir()):
        if path.suffix != ".err":
            of_facts, of_words = (split_document if path.suffix == ".json" else split_text)(read(path))
            of_words += read(path.with_suffix(".err"))
            for name, text in (("facts", of_facts), ("words", of_words)):
                pathlib.Path(target, f"{path.stem}.{name}").write_bytes(text.encode(errors="surrogateescape"))


if __name__ == "__main__":
    main(*sys.argv[1:])
