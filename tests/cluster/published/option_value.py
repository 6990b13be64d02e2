# SPDX-License-Identifier: Apache-2.0
"""An option of a command line, for what stands in for a framework and what reads how it was started."""
import re


def value(words, *names):
    """Of --name=VALUE or --name VALUE; else None."""
    for idx, word in enumerate(words):
        for name in names:
            if word == name and idx + 1 < len(words):
                return words[idx + 1]
            if word.startswith(name + "="):
                return word.split("=", 1)[1]
    return None


def batch(words):
    """Of one rank's one pass."""
    config = value(words, "-c")
    if config:
        return int(re.search(r"_bs(\d+)\.yaml$", config).group(1))
    size = int(value(words, "--batch_size", "-b", "--train_batch_size") or 0)
    steps = value(words, "--gradient_accumulation_steps")
    return size // int(steps) if steps else size
