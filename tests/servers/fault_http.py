#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that misbehaves on demand: `fault_http.py FILE` says its port on stdout and serves FILE at /FAULT/NUMBER/any/name until it gets TERM or its parent ends.
/stats gives the requests and the bytes sent, /reset clears them.

ok       as it should be                      cut      closes after NUMBER bytes of each body
corrupt  flips a bit of byte NUMBER, once     corrupt_always  each time
stall    silent after NUMBER bytes, once      mute     likewise, each time
drip     request NUMBER gives 1000 bytes a second
lie      says that the file is NUMBER longer  long     sends NUMBER bytes more than the file has, in chunks
norange  the whole to a range                 chunked  likewise, and without a length
chunkcut chunks, cut after NUMBER bytes       open     HTTP/1.0, without a length
opencut  likewise, cut after NUMBER bytes     shift    a Content-Range NUMBER further on
busy     503 to the first NUMBER requests     toomany  429 with Retry-After: 1, likewise
circle   redirects to itself                  redirect to /ok/0/
change   another ETag and other bytes after NUMBER requests
etags    another ETag at each request, the same bytes and time
garbage  no header at all                     gone     404        login  401        gzip  Content-Encoding: gzip
toll     407, as a proxy's
limit    503 beyond NUMBER connections        rate     NUMBER bytes a second and connection, few of them under way
part     at most NUMBER bytes of a range"""
import collections
import ctypes
import re
import socket
import socketserver
import sys
import threading
import time

PIECE = 65536
REFUSALS = {
    "gone": "404 Gone",
    "login": '401 Who\r\nWWW-Authenticate: Basic realm="x"',
    "toll": '407 Pay\r\nProxy-Authenticate: Basic realm="x"',
    "busy": "503 Later",
    "toomany": "429 Less\r\nRetry-After: 1",
    "circle": "302 There\r\nLocation: /circle/0/f",
    "redirect": "302 There\r\nLocation: /ok/0/f",
    "limit": "503 Full\r\nConnection: close",
}
file = open(sys.argv[1], "rb").read()
lock = threading.Lock()
counts = collections.Counter()


def count(name, more=1):
    """As it was before."""
    with lock:
        counts[name] += more
        return counts[name] - more


class Over(Exception):
    """The connection is to be closed."""


class Client(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        n_open = count("open") + 1
        received = b""
        try:
            while True:
                head, end, rest = received.partition(b"\r\n\r\n")
                if end:
                    self.answer(head.decode("latin-1"), n_open)
                    received = rest
                    continue
                got = self.request.recv(16384)
                if not got:
                    return
                received += got
        except (Over, ConnectionError):
            pass
        finally:
            count("open", -1)

    def say(self, text):
        self.request.sendall(text.encode("latin-1"))

    def answer(self, head, n_open):
        fault, number = re.match(r"\S* /(\w*)/?(\d*)", head).groups()
        number = int(number or 0)
        if fault in ("stats", "reset"):
            text = f"{counts['requests']} {counts['bytes']}\n"
            if fault == "reset":
                for name in ("requests", "bytes", "corrupted", "stalled"):
                    counts[name] = 0
            self.say(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}")
            return
        nth = count("requests")
        if fault == "garbage":
            self.say("\x01\x02\x7f nothing of the kind\r\n\r\n")
            raise Over
        if fault in REFUSALS and (fault not in ("busy", "toomany") or nth < number) and (fault != "limit" or n_open > number):
            self.say(f"HTTP/1.1 {REFUSALS[fault]}\r\nContent-Length: 0\r\n\r\n")
            if fault == "limit":
                raise Over
            return
        self.send_file(fault, number, nth, re.search(r"(?i)\r\nRange: bytes=(\d+)-(\d*)", head))

    def send_file(self, fault, number, nth, asked):
        total = len(file) + (number if fault == "lie" else 0)
        first, last = 0, len(file) - 1
        is_other = fault == "change" and nth >= number
        etag = f'ETag: "v{nth if fault == "etags" else int(is_other)}"'
        if fault in ("open", "opencut"):
            self.say("HTTP/1.0 200 OK\r\n\r\n")
        elif fault in ("chunked", "chunkcut", "long"):
            self.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        elif not asked or fault in ("norange", "gzip"):
            encoding = "Content-Encoding: gzip\r\n" if fault == "gzip" else ""
            self.say(f"HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n{etag}\r\n{encoding}\r\n")
        elif int(asked[1]) >= total:
            self.say(f"HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\n\r\n")
            return
        else:
            first, last = int(asked[1]), min(int(asked[2] or total), total - 1)
            last = min(last, first + number - 1) if fault == "part" else last
            shift = number if fault == "shift" else 0
            self.say(
                f"HTTP/1.1 206 Part\r\nContent-Length: {last - first + 1}\r\n{etag}\r\nLast-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\n"
                f"Content-Range: bytes {first + shift}-{last + shift}/{total + shift}\r\n\r\n"
            )
        self.send_body(fault, number, nth, range(first, last + 1 + (number if fault == "long" else 0)), is_other)
        if fault in ("open", "opencut"):
            raise Over  # the end of the connection is the end of the body

    def send_body(self, fault, number, nth, places, is_other):
        stalls = fault == "mute" or (fault == "stall" and count("stalled") == 0)
        cut_at = places.start + (number if stalls or fault in ("cut", "chunkcut", "opencut") else len(places) + 1)
        rate = {"rate": number, "limit": 20000000, "drip": 1000 if nth == number else 0}.get(fault, 0)
        step = max(rate // 250, 1) if rate else PIECE  # 4 ms: what was sent is soon there, or is not sent
        is_chunked = fault in ("chunked", "chunkcut", "long")
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, step)
        begin = time.monotonic()
        for at in range(places.start, places.stop, step):
            piece = places[at - places.start : min(at + step, cut_at) - places.start]
            if rate:
                time.sleep(max(begin + (at - places.start + len(piece)) / rate - time.monotonic(), 0))
            self.send_piece(fault, number, piece, is_other, is_chunked)
            if cut_at <= at + step and cut_at < places.stop:
                while stalls and self.request.recv(PIECE):
                    pass
                raise Over
        if is_chunked:
            self.say("0\r\n\r\n")

    def send_piece(self, fault, number, piece, is_other, is_chunked):
        if not piece:
            return
        data = bytearray(file[piece.start : piece.stop].ljust(len(piece), b"\x5a"))
        if is_other:
            data = data.translate(bytes(range(255, -1, -1)))
        if number in piece and (fault == "corrupt_always" or (fault == "corrupt" and count("corrupted") == 0)):
            data[number - piece.start] ^= 1
        self.request.sendall(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
        count("bytes", len(data))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64


ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
with Server(("127.0.0.1", 0), Client) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
