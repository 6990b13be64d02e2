#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A proxy for CONNECT only: prints its port on stdout, carries bytes both ways until it gets TERM or its parent ends. With an argument, that is what Proxy-Authorization
must be ("Basic ..."), else 407. Nobody gets to port 9: 403. One line on stderr a connection: the request."""
import ctypes
import select
import socket
import socketserver
import sys


def refusal(head):
    """A status line and headers, or None."""
    if len(sys.argv) > 1 and sys.argv[1] not in head:
        return '407 Login\r\nProxy-Authenticate: Basic realm="x"'
    return "403 No" if ":9 " in head else None


class Tunnel(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the tunnel
            byte = self.request.recv(1)
            if not byte:
                return
            head += byte
        head = head.decode()
        print(head.splitlines()[0], file=sys.stderr, flush=True)
        refused = refusal(head)
        if refused:
            self.request.sendall(f"HTTP/1.1 {refused}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        with socket.create_connection(("127.0.0.1", int(head.split()[1].rpartition(":")[2]))) as far:
            self.request.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            while True:
                for end in select.select([self.request, far], [], [])[0]:
                    got = end.recv(65536)
                    if not got:
                        return
                    (far if end is self.request else self.request).sendall(got)


ctypes.CDLL(None).prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
socketserver.ThreadingTCPServer.daemon_threads = True
with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
