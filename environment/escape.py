import json, os, socket

aim = json.loads(aim)
told = []


def attempt(name, act):
    try:
        told.append({"attempt": name, "prevented": False, "detail": str(act())})
    except Exception as err:
        told.append({"attempt": name, "prevented": True, "detail": f"{type(err).__name__}: {err}"})


def write():
    with open(os.path.join(aim["outside"], "written"), "w") as f:
        f.write("x")
    return "written"


def read():
    with open(os.path.join(aim["outside"], "secret")) as f:
        return f.read()


def remove():
    os.remove(os.path.join(aim["outside"], "secret"))
    return "removed"


def connect():
    with socket.create_connection(("127.0.0.1", aim["port"]), 5):
        return "connected"


def signal():
    os.kill(aim["host"], 0)
    return "it could be signalled"


def environment():
    with open(f"/proc/{aim['host']}/environ", "rb") as f:
        return f"{len(f.read())} bytes"


def gain():
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("NoNewPrivs:"):
                if line.split()[1] == "1":
                    raise PermissionError("no_new_privs is set")
    return "no_new_privs is not set"


def child():
    # What a program that is started may do is what the session may do.
    if os.system(f"echo x > '{aim['outside']}/by-a-child' 2>/dev/null") != 0:
        raise PermissionError("the shell could not write")
    return "written"


attempt("gain rights by a setuid program", gain)
attempt("read a file outside", read)
attempt("write a file outside", write)
attempt("write a file outside by a program", child)
attempt("remove a file outside", remove)
attempt("connect to a port of this machine", connect)
attempt("signal the host", signal)
attempt("read the environment of the host", environment)
display({"application/json": told}, raw=True)
