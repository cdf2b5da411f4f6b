"""Run a program as on a kernel that does not have some system calls.

    python without.py NAME[,NAME...] PROGRAM [ARGUMENT ...]

A filter answers ENOSYS, as a kernel does that is older than the call, to the program and to
all that it starts. The name cgroup is none of a call: without it, the program sees no folder
of control groups, which takes root. It uses the standard library alone, and works on Linux on
amd64 and arm64.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

# Calls that were added since Linux 5.1 have the same number everywhere.
NUMBERS = {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "pidfd_open": 434, "clone3": 435, "close_range": 436, "openat2": 437, "pidfd_getfd": 438,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
    "memfd_create": {"x86_64": 319, "aarch64": 279}, "seccomp": {"x86_64": 317, "aarch64": 277},
}
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CGROUP = "cgroup"
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x00020000, 0x4000, 0x40000, 2
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of 32 bits at a place; jump if equal to a constant
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def number(name: str) -> int:
    """The number of a system call on this machine."""
    known = NUMBERS[name]
    return known if isinstance(known, int) else known[platform.machine()]


def program(names) -> bytes:
    """The filter: each of the calls is answered with ENOSYS, all others are allowed."""
    numbers = [number(name) for name in names]
    code = [
        (LOAD, 0, 0, 4),  # the architecture; another one is left alone
        (EQUAL, 0, len(numbers) + 1, ARCHES[platform.machine()]),
        (LOAD, 0, 0, 0),  # the number of the call
        *((EQUAL, len(numbers) - i, 0, n) for i, n in enumerate(numbers)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, ERRNO | errno.ENOSYS),
    ]
    return b"".join(struct.pack("=HBBI", *c) for c in code)


def checked(libc, what: str, result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def hide_groups(libc) -> None:
    """Take the folder of control groups out of what this process and all that it starts see."""
    checked(libc, "unshare", libc.unshare(CLONE_NEWNS))
    checked(libc, "mount", libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    checked(libc, "umount", libc.umount2(b"/sys/fs/cgroup", MNT_DETACH))


def restrict(names) -> None:
    """Take the calls from this process and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if CGROUP in names:
        hide_groups(libc)
    code = program([name for name in names if name != CGROUP])
    text = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    given = Program(len(code) // 8, ctypes.addressof(text))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0) == 0:
        return  # root needs no more
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(given), 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "seccomp")


if __name__ == "__main__":
    restrict(sys.argv[1].split(","))
    os.execvp(sys.argv[2], sys.argv[2:])
