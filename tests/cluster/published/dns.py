# SPDX-License-Identifier: Apache-2.0
"""dns.py ADDRESS NAME...: answers for these names with that address, at its port 53; there are no others."""
import socket
import struct
import sys

address, names = sys.argv[1], {name.lower() for name in sys.argv[2:]}
A, IN, NO_SUCH_NAME = 1, 1, 3
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((address, 53))
while True:
    query, peer = sock.recvfrom(512)
    try:
        number, flags, n_questions = struct.unpack("!HHH", query[:6])
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii"))
            at += 1 + query[at]
        kind, family = struct.unpack("!HH", query[at + 1:at + 5])
    except (struct.error, IndexError, UnicodeDecodeError):
        continue
    is_known = ".".join(labels).lower() in names
    answer = b""
    if is_known and (kind, family) == (A, IN):
        answer = struct.pack("!HHHIH", 0xc00c, A, IN, 60, 4) + socket.inet_aton(address)
    # A response with recursion, as it was asked for.
    header = struct.pack("!HHHHHH", number, 0x8080 | flags & 0x0100 | (0 if is_known else NO_SUCH_NAME), 1, 1 if answer else 0, 0, 0)
    sock.sendto(header + query[12:at + 5] + answer, peer)
