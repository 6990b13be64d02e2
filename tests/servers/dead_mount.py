#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dead_mount.py FOLDER COMMAND...: COMMAND in a mount namespace of its own, where FOLDER is a file system that answers nothing, as that of a
server that is gone (FUSE without anybody who reads its requests). Status 77: this machine does not allow it."""
import ctypes
import os
import sys

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
libc = ctypes.CDLL(None, use_errno=True)


def must(rc, what):
    if rc != 0:
        print("dead_mount: %s: %s" % (what, os.strerror(ctypes.get_errno())), file=sys.stderr)
        sys.exit(77)


folder, command = sys.argv[1], sys.argv[2:]
try:
    fd = os.open("/dev/fuse", os.O_RDWR)
except OSError as error:
    print("dead_mount: %s" % error, file=sys.stderr)
    sys.exit(77)
must(libc.unshare(CLONE_NEWNS), "unshare")
must(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
must(libc.mount(b"dead", folder.encode(), b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd), "mount")
child = os.fork()
if child == 0:
    os.close(fd)
    os.execvp(command[0], command)
status = os.waitpid(child, 0)[1]
os.close(fd)  # what still waits there gets an error, and ends
sys.exit(os.waitstatus_to_exitcode(status) % 256)
