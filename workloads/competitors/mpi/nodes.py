#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nodes.py MPIRUN...: one MPI job over the containers of all nodes, none of which has an sshd. Started once a node with NODE_RANK, NODE_IPS,
NPROC_PER_NODE and MASTER_PORT. Node 0 runs the command with itself as MPI's remote shell; each other node waits until node 0, and nobody else,
asks it to start MPI's daemon, and ends when node 0 does. With Open MPI's options in the environment: the command stays as the report prints it.
MPI and NCCL are told to talk over the network of NODE_IPS: docker0, say, has one address on all nodes, and whoever takes it waits for ever. The
report's own NCCL_IB_GID_INDEX, IBV_DRIVERS and name of an interface hold for its site alone, as it says, and are not set here."""
import fcntl
import ipaddress
import os
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LINE_MAX = 1 << 20
WAIT_S = 600  # for the other nodes' containers, which install first


def port():
    return int(os.environ["MASTER_PORT"]) + 1


def receive(sock, size):
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def receive_text(sock):
    size, = struct.unpack("!I", receive(sock, 4))
    if size > LINE_MAX:
        sys.exit("nodes.py: a command of %d bytes" % size)
    return receive(sock, size).decode()


def ask(ip, text):
    """The status of `text` on that node; empty: whether anybody is there."""
    data = text.encode()
    with socket.create_connection((ip, port()), timeout=10) as sock:
        sock.settimeout(None)
        sock.sendall(struct.pack("!I", len(data)) + data)
        return struct.unpack("!i", receive(sock, 4))[0]


def end_with(sock, child):
    """Where node 0 hangs up first, its daemon is to end too."""
    try:
        receive(sock, 1)
    except (EOFError, OSError):
        pass
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGTERM)


def answer(sock, ended):
    with sock:
        text = receive_text(sock)
        if text.startswith("end "):
            ended.append(int(text[4:]))
            status = 0
        elif text:
            child = subprocess.Popen(["/bin/sh", "-c", text], stdin=subprocess.DEVNULL, start_new_session=True)
            threading.Thread(target=end_with, args=(sock, child), daemon=True).start()
            status = child.wait()
        else:
            status = 0
        try:
            sock.sendall(struct.pack("!i", status))
        except OSError:
            pass


def serve(own, head):
    """Ends with node 0's own status."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((own, port()))
    listener.listen(16)
    listener.settimeout(1)
    ended = []
    while not ended:
        try:
            sock, peer = listener.accept()
        except socket.timeout:
            continue
        if peer[0] != head:
            sock.close()
            continue
        sock.settimeout(None)
        threading.Thread(target=answer, args=(sock, ended), daemon=True).start()
    return ended[0]


def wait_for(ip):
    until = time.monotonic() + WAIT_S
    while True:
        try:
            return ask(ip, "")
        except OSError as why:
            if time.monotonic() > until:
                sys.exit("nodes.py: %s does not answer: %s" % (ip, why))
            time.sleep(1)


def write_agent():
    """MPI takes its remote shell's words apart at blanks, which this file's own path may have; and each of its daemons looks for that shell, so
    that it is at one path on all nodes."""
    folder = "/tmp/reperf-mpi-%d" % port()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.stat(folder).st_uid != os.geteuid():
        sys.exit("nodes.py: %s is somebody else's" % folder)
    path = os.path.join(folder, "agent")
    with open("%s.%d" % (path, os.getpid()), "w") as agent:
        agent.write("#!/bin/sh\nexec %s %s --agent \"$@\"\n" % (shlex.quote(sys.executable), shlex.quote(os.path.abspath(__file__))))
    os.chmod(agent.name, 0o700)
    os.rename(agent.name, path)
    return path


def interface_of(ip):
    """(name, network) of this node's interface with that address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _, name in socket.if_nameindex():
            ask = struct.pack("256s", name.encode()[:15])
            try:
                address, mask = (socket.inet_ntoa(fcntl.ioctl(sock, call, ask)[20:24]) for call in (0x8915, 0x891b))  # SIOCGIFADDR, SIOCGIFNETMASK
            except OSError:
                continue  # has no address
            network = ipaddress.ip_network("%s/%s" % (address, mask), strict=False)
            if address == ip or (name == "lo" and ipaddress.ip_address(ip) in network):
                return name, network
    sys.exit("nodes.py: no interface of this node has the address %s" % ip)


def use_network(ips, own):
    """MPI's connections, and NCCL's that are no InfiniBand, take the interface of this node's address; of networks that differ, each node its own."""
    name, network = interface_of(own)
    if all(ipaddress.ip_address(ip) in network for ip in ips):
        allowed = str(network)
    else:
        allowed = ",".join(ip + "/32" for ip in ips)
    for option in ("btl_tcp_if_include", "oob_tcp_if_include"):
        os.environ.setdefault("OMPI_MCA_" + option, allowed)
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "=" + name)
    print("nodes.py: %s, MPI over %s, NCCL_SOCKET_IFNAME %s" % (own, os.environ["OMPI_MCA_btl_tcp_if_include"], os.environ["NCCL_SOCKET_IFNAME"]), file=sys.stderr)


def lead(ips, agent, argv):
    with tempfile.TemporaryDirectory() as folder:
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w") as out:
            out.write("".join("%s slots=%s\n" % (ip, os.environ["NPROC_PER_NODE"]) for ip in ips))
        for ip in ips[1:]:
            wait_for(ip)
        env = dict(os.environ, OMPI_MCA_orte_default_hostfile=hosts, OMPI_MCA_plm="rsh", OMPI_MCA_plm_rsh_no_tree_spawn="1",
                   OMPI_MCA_plm_rsh_agent=agent)
        status = 70
        try:
            status = subprocess.call(argv, env=env)
        finally:
            for ip in ips[1:]:
                ask(ip, "end %d" % status)
    return status


def main():
    if sys.argv[1] == "--agent":  # HOST COMMAND..., as MPI calls its remote shell
        return ask(sys.argv[2], " ".join(sys.argv[3:]))
    ips, rank = os.environ["NODE_IPS"].split(","), int(os.environ["NODE_RANK"])
    # To end is to clean up, by either way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    use_network(ips, ips[rank])
    agent = write_agent()
    try:
        return lead(ips, agent, sys.argv[1:]) if rank == 0 else serve(ips[rank], ips[0])
    finally:
        shutil.rmtree(os.path.dirname(agent), ignore_errors=True)


sys.exit(main() & 0xff)
