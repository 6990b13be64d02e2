# SPDX-License-Identifier: Apache-2.0
"""rechain.py JOURNAL [OLD NEW]: replaces a text in a journal, and numbers its records and writes its chain of digests anew, as an owner could."""
import hashlib
import re
import sys

path, old, new = (sys.argv[1:] + ['', ''])[:3]
last = ''
lines = []
for number, line in enumerate(open(path, encoding='utf-8').read().splitlines(), 1):
    body = re.sub('^{"seq":[0-9]+', f'{{"seq":{number}', line.rpartition(',"check":"')[0])
    body = body.replace(old, new) if old else body
    last = hashlib.sha256((last + body).encode()).hexdigest()
    lines.append(f'{body},"check":"{last}"}}\n')
open(path, 'w', encoding='utf-8').write(''.join(lines))
