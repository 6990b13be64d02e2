# SPDX-License-Identifier: Apache-2.0
"""rechain.py JOURNAL OLD NEW: replaces a text in a journal and writes its chain of digests anew, as an owner could."""
import hashlib
import sys

path, old, new = sys.argv[1:]
last = ''
lines = []
for line in open(path, encoding='utf-8').read().splitlines():
    body = line.rpartition(',"check":"')[0].replace(old, new)
    last = hashlib.sha256((last + body).encode()).hexdigest()
    lines.append(f'{body},"check":"{last}"}}\n')
open(path, 'w', encoding='utf-8').write(''.join(lines))
