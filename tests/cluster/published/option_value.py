# SPDX-License-Identifier: Apache-2.0
"""An option of a command line, for what stands in for a framework and what reads how it was started."""


def value(words, *names):
    """Of --name=VALUE or --name VALUE; else None."""
    for idx, word in enumerate(words):
        for name in names:
            if word == name and idx + 1 < len(words):
                return words[idx + 1]
            if word.startswith(name + "="):
                return word.split("=", 1)[1]
    return None
