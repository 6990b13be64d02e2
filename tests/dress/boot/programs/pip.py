# SPDX-License-Identifier: Apache-2.0
"""pip install and freeze, of which a dress rehearsal has neither an index nor a network: lists and folders must be there, and each name is noted."""
import os
import sys

words = sys.argv[1:]
if words[:1] == ["freeze"]:
    print("standin==0")
elif words[:1] == ["install"]:
    for before, word in zip(words, words[1:]):
        if before in ("-r", "--requirement"):
            open(word).close()
        if before in ("-e", "--editable"):
            os.stat(os.path.join(word, "setup.py"))
    print("would install " + " ".join(words[1:]))
else:
    sys.exit("pip %s: not known here" % words)
