import ctypes, errno, fcntl, json, mmap, os, platform, resource, signal, socket, struct, subprocess, sys

aim = json.loads(aim)
told = []
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
outside, host = aim["outside"], aim["host"]
secret = os.path.join(outside, "secret")
intel = platform.machine() == "x86_64"


def attempt(name, act):
    try:
        told.append({"attempt": name, "prevented": False, "detail": str(act())})
    except Exception as err:
        told.append({"attempt": name, "prevented": True, "detail": f"{type(err).__name__}: {err}"})


# The numbers of system calls: those of x86_64 and of arm64. From 424 on they are the same.
NUMBERS = {
    "ioctl": (16, 29), "ptrace": (101, 117), "personality": (135, 92), "mount": (165, 40), "init_module": (175, 105), "keyctl": (250, 219),
    "add_key": (248, 217), "setns": (308, 268), "process_vm_readv": (310, 270), "kcmp": (312, 272), "bpf": (321, 280), "userfaultfd": (323, 282),
    "kexec_load": (246, 104), "perf_event_open": (298, 241), "setpriority": (141, 140), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "shmat": (30, 196), "unshare": (272, 97), "open_by_handle_at": (304, 265), "io_uring_setup": (425, 425), "clone3": (435, 435), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "fsopen": (430, 430), "swapon": (167, 224), "sethostname": (170, 161), "reboot": (169, 142), "clone": (56, 220),
    "listen": (50, 201),
}


def call(name, *args, fine=()):
    """Makes a system call. The errors in fine say that the kernel went further than a
    wall would have let it."""
    number = NUMBERS[name][0 if intel else 1]
    words = [a if isinstance(a, (ctypes._SimpleCData, ctypes.Array, bytes)) or a is None else ctypes.c_long(a) for a in args]
    got = libc.syscall(ctypes.c_long(number), *words)
    code = ctypes.get_errno()
    if got < 0 and code not in fine:
        raise OSError(code, os.strerror(code))
    return got if got >= 0 else errno.errorcode[code]


def in_child(act):
    """Does what changes a process in one of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
            os._exit(0)
        except OSError as err:
            os._exit(min(err.errno or 255, 255))
        except BaseException:
            os._exit(255)
    _, status = os.waitpid(pid, 0)
    if status:
        code = os.waitstatus_to_exitcode(status)
        raise OSError(code, os.strerror(code) if code > 0 else f"ended by signal {-code}")
    return "done"


# Files.


def write():
    with open(os.path.join(outside, "written"), "w") as f:
        f.write("x")
    return "written"


def read():
    with open(secret) as f:
        return f.read()


def read_of_system():
    # A file that root keeps from others: whoever is root without its rights still owns it.
    with open(aim["closed"], "rb") as f:
        return f"{len(f.read())} bytes"


def remove():
    os.remove(os.path.join(outside, "spare"))
    return "removed"


def rename():
    os.rename(os.path.join(outside, "other"), os.path.join(outside, "renamed"))
    return "renamed"


def child():
    # What a program that is started may do is what the session may do.
    if os.system(f"echo x > '{outside}/by-a-child' 2>/dev/null") != 0:
        raise PermissionError("the shell could not write")
    return "written"


def mode():
    os.chmod(secret, 0o606)
    return oct(os.stat(secret).st_mode)


def mode_by_shell():
    if subprocess.run(["chmod", "0604", secret], stderr=subprocess.DEVNULL).returncode != 0:
        raise PermissionError("chmod could not")
    return "changed"


def mode_of_readable():
    # What the rules let be read can be opened, and a descriptor is enough.
    fd = os.open(os.path.realpath(sys.executable), os.O_RDONLY)
    try:
        os.fchmod(fd, os.fstat(fd).st_mode & 0o7777)
    finally:
        os.close(fd)
    return "changed"


def owner():
    st = os.stat(secret)
    os.chown(secret, st.st_uid, st.st_gid)
    return "changed"


def times():
    os.utime(secret, (1, 1))
    return "changed"


def attribute():
    os.setxattr(secret, "user.coppice", b"x")
    return "set"


def watch():
    queue = libc.inotify_init1(os.O_NONBLOCK)
    if queue < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        # IN_OPEN: who opens what there, by its name.
        if libc.inotify_add_watch(queue, outside.encode(), 0x20) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    finally:
        os.close(queue)
    return "it hears who opens what"


# The network.


def connect():
    with socket.create_connection(("127.0.0.1", aim["port"]), 5):
        return "connected"


def multipath():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as s:
        s.settimeout(5)
        s.connect(("127.0.0.1", aim["port"]))
    return "connected"


def fast():
    with socket.socket() as s:
        s.sendto(b"x", 0x20000000, ("127.0.0.1", aim["port"]))
    return "connected"


def listen():
    with socket.socket() as s:
        s.listen(1)
        return f"listens on {s.getsockname()[1]}"


def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", aim["udp"]))
    return "sent"


def family(name, kind):
    def act():
        with socket.socket(getattr(socket, name), getattr(socket, kind)):
            return "open"

    return act


def family_in_disguise():
    # The kernel reads the lower half of the family alone.
    number = 41 if intel else 198
    fd = libc.syscall(ctypes.c_long(number), ctypes.c_long(1 << 32 | socket.AF_INET), ctypes.c_long(socket.SOCK_DGRAM), ctypes.c_long(0))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.close(fd)
    return "open"


# Sockets and memory of this machine.


def path_socket():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(aim["socket"])
    return "connected"


def abstract_socket():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + aim["abstract"])
    return "connected"


def shared_memory():
    with open(aim["shm"]) as f:
        return f.read()


def system_v():
    return f"attached {call('shmat', aim['sysv'], None, 0)}"


def new_system_v(name, *args):
    # A key of its own: whatever it makes is gone with the attempt, or was refused.
    def act():
        made = call(name, 0, *args)
        remove = {"semget": ("semctl", (66, 191)), "msgget": ("msgctl", (71, 187))}[name]
        NUMBERS[remove[0]] = remove[1]
        call(remove[0], made, 0, 0) if name == "msgget" else call(remove[0], made, 0, 0, 0)
        return "made"

    return act


# Processes.


def kill():
    os.kill(host, 0)
    return "it could be signalled"


def environment():
    with open(f"/proc/{host}/environ", "rb") as f:
        return f"{len(f.read())} bytes"


def command_line():
    with open(f"/proc/{host}/cmdline", "rb") as f:
        found = f.read()
    if not found:
        raise PermissionError("it is empty")
    return f"{len(found)} bytes"


def limits():
    now = resource.prlimit(host, resource.RLIMIT_CORE)
    resource.prlimit(host, resource.RLIMIT_CORE, now)
    return "set"


def priority():
    os.setpriority(os.PRIO_PROCESS, host, os.getpriority(os.PRIO_PROCESS, host))
    return "set"


def affinity():
    os.sched_setaffinity(host, os.sched_getaffinity(host))
    return "set"


def trace():
    # The end of the child lets go of it again.
    return in_child(lambda: call("ptrace", 0x4206, host, 0, 0))


def trace_child():
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        call("ptrace", 0x4206, pid, 0, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return "traced"


def memory():
    buf, local, remote = ctypes.create_string_buffer(8), (ctypes.c_size_t * 2)(), (ctypes.c_size_t * 2)(0x1000, 8)
    local[0], local[1] = ctypes.addressof(buf), 8
    return call("process_vm_readv", host, local, 1, remote, 1, 0, fine=(errno.EFAULT,))


def memory_file():
    with open(f"/proc/{host}/mem", "rb"):
        return "open"


def take_descriptor():
    fd = call("pidfd_open", host, 0)
    try:
        os.close(call("pidfd_getfd", fd, 0, 0, fine=(errno.EBADF,)))
    except TypeError:
        pass
    finally:
        os.close(fd)
    return "taken"


def compare():
    return call("kcmp", os.getpid(), host, 0, 0, 0)


# The kernel.


def gain():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("NoNewPrivs:"):
                if line.split()[1] == "1":
                    raise PermissionError("no_new_privs is set")
    return "no_new_privs is not set"


def rights():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("CapEff:"):
                if int(line.split()[1], 16) == 0:
                    raise PermissionError("there are none")
                return line.split()[1]


def other_architecture():
    # getpid by the calls of 32 bits: mov eax, 20; int 0x80; ret
    if not intel:
        raise NotImplementedError("there is one architecture")

    def act():
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        got = run()
        if got < 0:
            raise OSError(-got, os.strerror(-got))

    return in_child(act)


def keyring():
    return call("keyctl", 0, -3, 0)


def add_key():
    return call("add_key", b"user", b"coppice", b"x", 1, -2)


def io_uring():
    fd = call("io_uring_setup", 1, ctypes.create_string_buffer(120))
    os.close(fd)
    return "made"


def page_faults():
    os.close(call("userfaultfd", 1))
    return "made"


def perf():
    attr = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 9) + bytes(24) + struct.pack("Q", 0x61), 112)  # software, exclude the kernel
    os.close(call("perf_event_open", attr, 0, -1, -1, 0))
    return "made"


def program_of_kernel():
    attr = ctypes.create_string_buffer(struct.pack("IIII", 1, 4, 4, 1), 128)
    os.close(call("bpf", 0, attr, 128))
    return "made"


def new_namespace():
    return in_child(lambda: call("unshare", 0x10000000))


def new_namespace_by_clone3():
    def act():
        args = (ctypes.c_uint64 * 11)()
        args[0], args[4] = 0x10000000, signal.SIGCHLD
        pid = call("clone3", args, ctypes.sizeof(args))
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

    return in_child(act)


def mount():
    return call("mount", b"none", b"/", b"coppice-none", 0, None, fine=(errno.ENODEV,))  # of a kind that there is not


def foreign_namespace():
    def act():
        fd = os.open("/proc/self/ns/uts", os.O_RDONLY)
        call("setns", fd, 0)

    return in_child(act)


def randomness():
    return in_child(lambda: call("personality", 0x0040000))


def terminal():
    primary, secondary = os.openpty()
    try:
        fcntl.ioctl(secondary, 0x5412, b"x")
    finally:
        os.close(primary)
        os.close(secondary)
    return "typed"


def terminal_in_disguise():
    # The kernel reads the lower half of the request alone. What is no terminal says so.
    r, w = os.pipe()
    try:
        return call("ioctl", r, 1 << 32 | 0x5412, b"x", fine=(errno.ENOTTY,))
    finally:
        os.close(r)
        os.close(w)


def by_handle():
    return call("open_by_handle_at", -100, ctypes.create_string_buffer(struct.pack("Ii", 8, 1), 136), 0, fine=(errno.ESTALE, errno.EBADF, errno.EINVAL, errno.EOPNOTSUPP))


def module():
    return call("init_module", None, 0, b"", fine=(errno.ENOEXEC, errno.EFAULT, errno.EINVAL))


def other_kernel():
    return call("kexec_load", 0, 17, None, 0, fine=(errno.EINVAL, errno.EADDRNOTAVAIL, errno.EBUSY))


attempt("gain rights by a setuid program", gain)
attempt("have rights beyond other users", rights)
attempt("read a file outside", read)
attempt("read a file of the system that is closed to others", read_of_system)
attempt("write a file outside", write)
attempt("write a file outside by a program", child)
attempt("remove a file outside", remove)
attempt("rename a file outside", rename)
attempt("change the owner of a file outside", owner)
attempt("change the times of a file outside", times)
attempt("change the attributes of a file outside", attribute)
attempt("change the permissions of a file outside", mode)
attempt("change the permissions of a file outside by a program", mode_by_shell)
attempt("change the permissions of a file that may be read", mode_of_readable)
attempt("watch a folder outside", watch)
attempt("connect to a port of this machine", connect)
attempt("connect to a port by multipath TCP", multipath)
attempt("connect to a port by a message", fast)
attempt("listen on a port", listen)
attempt("send a datagram", datagram)
attempt("open a socket of the kernel", family("AF_NETLINK", "SOCK_RAW"))
attempt("open a socket to virtual machines", family("AF_VSOCK", "SOCK_STREAM"))
attempt("open a socket of the kernel's ciphers", family("AF_ALG", "SOCK_SEQPACKET"))
attempt("open a socket by a number in disguise", family_in_disguise)
attempt("connect to a socket outside", path_socket)
attempt("connect to an abstract socket", abstract_socket)
attempt("read shared memory of the host", shared_memory)
attempt("attach System V memory of the host", system_v)
attempt("make System V semaphores", new_system_v("semget", 1, 0o600))
attempt("make a System V queue", new_system_v("msgget", 0o600))
attempt("signal the host", kill)
attempt("read the environment of the host", environment)
attempt("read the command line of the host", command_line)
attempt("set limits of the host", limits)
attempt("set the priority of the host", priority)
attempt("choose the processors of the host", affinity)
attempt("trace the host", trace)
attempt("trace a process of its own", trace_child)
attempt("read the memory of the host", memory)
attempt("open the memory of the host", memory_file)
attempt("take a descriptor of the host", take_descriptor)
attempt("compare itself with the host", compare)
attempt("make calls of another architecture", other_architecture)
attempt("use the keys of the kernel", keyring)
attempt("add a key to the kernel", add_key)
attempt("use io_uring", io_uring)
attempt("handle page faults", page_faults)
attempt("count the events of a processor", perf)
attempt("make a table of a kernel program", program_of_kernel)
attempt("make a namespace", new_namespace)
attempt("make a namespace by clone3", new_namespace_by_clone3)
attempt("enter a namespace", foreign_namespace)
attempt("mount a file system", mount)
attempt("turn off the randomness of addresses", randomness)
attempt("type into a terminal", terminal)
attempt("type into a terminal in disguise", terminal_in_disguise)
attempt("open a file by its handle", by_handle)
attempt("load a module into the kernel", module)
attempt("load another kernel", other_kernel)
display({"application/json": told}, raw=True)
