"""Calls every public method of E2B's SDK for Python once, with its result checked.

    python sandbox.py sync|async

A coppice serve --e2b is named by E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY, EXTRAS is a
folder with matplotlib and pandas, and KEEPS is 1 if the server keeps sessions on disk. The checks are the same for both forms of the SDK:
what one returns at once, the other returns later. A method that no check names fails, so
that a new version of the SDK brings no method that was not looked at.
"""

import asyncio
import inspect
import io
import json
import os
import sys
import time
import traceback

import httpx
from e2b import CommandExitException, FileNotFoundException, NotFoundException, PtySize, SandboxQuery, SandboxState, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox

LATER = sys.argv[1] == "async"
KEEPS = os.environ["KEEPS"] == "1"
S = AsyncSandbox if LATER else Sandbox
rows: list[tuple[str, str]] = []
seen: set[str] = set()


async def a(value):
    """What a method returns, at once or later."""
    return await value if inspect.isawaitable(value) else value


def check(name, refused=None):
    """Makes a check of a function, which runs at its place in main()."""

    def decorate(fn):
        async def run(*args):
            seen.add(name)
            try:
                await fn(*args)
                rows.append((name, "works" if refused is None else "FAILS: it was not refused"))
            except Exception as err:
                if refused is not None and refused in str(err) and type(err).__module__.startswith("e2b"):
                    rows.append((name, f"refused: {type(err).__name__}: {err}"))
                else:
                    rows.append((name, "FAILS: " + "".join(traceback.format_exception(err))[-1500:]))

        run.check = name
        checks.append(run)
        return run

    return decorate


checks: list = []
it: dict = {}


async def until(what, fn):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if await a(fn()):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("waited in vain: " + what)


async def raises(kind, fn):
    try:
        await a(fn())
    except kind as err:
        return err
    raise AssertionError(f"no {kind.__name__}")


async def stream(to, pid, *input):
    """Sends input piece by piece, as each form of the SDK takes it."""
    if not LATER:
        to.stream_input(pid, iter(input))
        return
    async with to.stream_input(pid) as handle:
        for piece in input:
            await handle.send(piece)


@check("Sandbox.create")
async def _():
    it["s"] = await a(S.create(timeout=300, metadata={"test": sys.argv[1], "a b": "c=d"}, envs={"WHERE": "sandbox"}))
    it["id"] = it["s"].sandbox_id


@check("Sandbox.connect")
async def _():
    assert (await a(S.connect(it["id"]))).sandbox_id == it["id"]
    assert (await a(it["s"].connect())).sandbox_id == it["id"]


@check("Sandbox.get_info")
async def _():
    assert (await a(S.get_info(it["id"]))).metadata["a b"] == "c=d"
    assert (await a(it["s"].get_info())).state == SandboxState.RUNNING


@check("Sandbox.list")
async def _():
    other = await a(S.create(metadata={"test": "other"}))
    mine = await a(S.list(query=SandboxQuery(metadata={"test": sys.argv[1], "a b": "c=d"}, state=[SandboxState.RUNNING])).next_items())
    assert [s.sandbox_id for s in mine] == [it["id"]]
    pages = S.list(limit=1)
    first = await a(pages.next_items())
    assert len(first) == 1 and pages.has_next
    assert (await a(pages.next_items()))[0].sandbox_id != first[0].sandbox_id
    assert await a(S.kill(other.sandbox_id))


@check("Sandbox.set_timeout")
async def _():
    await a(S.set_timeout(it["id"], 600))
    await a(it["s"].set_timeout(200))
    left = (await a(it["s"].get_info())).end_at.timestamp() - time.time()
    assert 100 < left < 250, left


@check("Sandbox.get_metrics")
async def _():
    assert (await a(S.get_metrics(it["id"])))[0].cpu_count > 0
    assert (await a(it["s"].get_metrics()))[-1].mem_total > 0


@check("Sandbox.is_running")
async def _():
    assert await a(it["s"].is_running())


@check("Sandbox.get_host")
async def _():
    assert it["s"].get_host(80).startswith("80-" + it["id"])


@check("Sandbox.get_mcp_url")
async def _():
    assert it["s"].get_mcp_url().endswith("/mcp")


@check("Sandbox.get_mcp_token", refused="")
async def _():
    await a(it["s"].get_mcp_token())


async def copied():
    """A sandbox whose copies are looked at."""
    s = await a(S.create(timeout=300, envs={"WHERE": "first"}))
    await a(s.files.write("f", "before"))
    if KEEPS:
        await a(s.run_code("kept = [1]"))
    return s


async def same(one, first):
    """A copy has what the first had, and is apart from it."""
    assert one.sandbox_id != first.sandbox_id and await a(one.is_running()) and await a(first.is_running())
    assert await a(one.files.read("f")) == "before"
    await a(one.files.write("f", "after"))
    assert await a(first.files.read("f")) == "before"
    if KEEPS:
        assert (await a(one.run_code("kept.append(2); kept"))).text == "[1, 2]"
        assert (await a(first.run_code("kept"))).text == "[1]"
    assert (await a(one.commands.run("echo $WHERE"))).stdout == "first\n"
    assert await a(one.kill())


async def memory(s, call):
    """What would be lost keeps a sandbox from being copied, and the sandbox goes on."""
    await a(s.run_code("lost = (i for i in [2])"))
    assert ("lost (generator" if KEEPS else "501") in str(await raises(Exception, call))
    assert (await a(s.run_code("next(lost)"))).text == "2"
    await a(s.run_code("del lost"))


@check("Sandbox.create_snapshot")
async def _():
    s = it["first"] = await copied()
    it["shot"] = await a(s.create_snapshot())
    for _ in range(2):
        await same(await a(S.create(it["shot"].snapshot_id)), s)
    named = it["named"] = await a(S.create_snapshot(s.sandbox_id, name="mine"))
    assert named.names == ["mine:default"]
    await same(await a(S.create("mine")), s)
    await memory(s, s.create_snapshot)


@check("Sandbox.list_snapshots")
async def _():
    s, ids = it["first"], [it["named"].snapshot_id, it["shot"].snapshot_id]
    assert [one.snapshot_id for one in await a(S.list_snapshots().next_items())] == ids
    assert [one.snapshot_id for one in await a(s.list_snapshots().next_items())] == ids
    assert [one.snapshot_id for one in await a(S.list_snapshots(name="mine").next_items())] == ids[:1]
    assert await a(S.list_snapshots(sandbox_id="none").next_items()) == []


@check("Sandbox.delete_snapshot")
async def _():
    await a(it["first"].kill())
    for shot in (it["shot"], it["named"]):
        assert [await a(S.delete_snapshot(shot.snapshot_id)) for _ in range(2)] == [True, False]
    assert await a(S.list_snapshots().next_items()) == []


@check("Sandbox.fork")
async def _():
    s = await copied()
    for one in await a(s.fork(count=2, timeout=60)):
        await same(one, s)
    (one,) = await a(S.fork(s.sandbox_id))
    await same(one, s)
    await memory(s, s.fork)
    await a(s.kill())


async def paused(name):
    """Pauses and resumes, if this server keeps memory. What would be lost keeps it from that."""
    s = await a(S.create(timeout=300))
    await a(s.run_code("kept, lost = [1], (i for i in [2])"))
    err = await raises(Exception, lambda: getattr(s, name)())
    if not KEEPS:
        raise err
    assert "lost (generator" in str(err), err
    assert (await a(s.run_code("kept, next(lost)"))).text == "([1], 2)"
    await a(s.run_code("del lost"))
    assert [await a(getattr(s, name)()) for _ in range(2)] == [True, False]
    assert (await a(s.get_info())).state == SandboxState.PAUSED and not await a(s.is_running())
    mine = await a(S.list(query=SandboxQuery(state=[SandboxState.PAUSED])).next_items())
    assert [one.sandbox_id for one in mine] == [s.sandbox_id]
    await a(S.connect(s.sandbox_id, timeout=200))
    assert await a(s.is_running())
    assert (await a(s.run_code("kept"))).text == "[1]"
    await a(s.kill())


for _name in ("pause", "beta_pause"):

    @check("Sandbox." + _name, refused=None if KEEPS else "501")
    async def _(name=_name):
        await paused(name)


@check("Sandbox.update_network", refused="501")
async def _():
    await a(it["s"].update_network(network={"allow_out": ["1.1.1.1"]}))


@check("files.write")
async def _():
    f = it["s"].files
    assert (await a(f.write("dir/a.txt", "hällo"))).name == "a.txt"
    assert (await a(f.write("b.bin", io.BytesIO(b"\0\xff"), gzip=True))).name == "b.bin"
    assert (await a(f.write("m.txt", "m", metadata={"Author": "Ann B"}))).metadata == {"author": "Ann B"}
    assert (await a(f.get_info("m.txt"))).metadata == {"author": "Ann B"}


@check("files.write_files")
async def _():
    made = await a(it["s"].files.write_files([{"path": "dir/1", "data": "one"}, {"path": "/home/user/dir/2", "data": b"two"}]))
    assert [m.name for m in made] == ["1", "2"]


@check("files.read")
async def _():
    f = it["s"].files
    assert await a(f.read("/home/user/dir/a.txt")) == "hällo"
    assert bytes(await a(f.read("b.bin", format="bytes"))) == b"\0\xff"
    stream, got = await a(f.read("dir/1", format="stream")), b""
    if LATER:
        async for chunk in stream:
            got += chunk
    else:
        for chunk in stream:
            got += chunk
    assert got == b"one"
    await raises(FileNotFoundException, lambda: f.read("none"))


@check("files.list")
async def _():
    assert [e.name for e in await a(it["s"].files.list("dir"))] == ["1", "2", "a.txt"]


@check("files.exists")
async def _():
    assert await a(it["s"].files.exists("dir/1")) and not await a(it["s"].files.exists("dir/9"))


@check("files.get_info")
async def _():
    info = await a(it["s"].files.get_info("dir/1"))
    assert (info.size, info.type.value, info.permissions) == (3, "file", "-rw-r--r--"), info


@check("files.make_dir")
async def _():
    assert [await a(it["s"].files.make_dir("new/er")) for _ in range(2)] == [True, False]


@check("files.rename")
async def _():
    assert (await a(it["s"].files.rename("dir/1", "new/one"))).name == "one"


@check("files.remove")
async def _():
    await a(it["s"].files.remove("new"))
    assert not await a(it["s"].files.exists("new"))


@check("files.watch_dir")
async def _():
    f, events = it["s"].files, []
    if LATER:
        handle = await f.watch_dir("dir", on_event=events.append, recursive=True, include_entry=True)
    else:
        handle = f.watch_dir("dir", recursive=True, include_entry=True)
    await a(f.write("dir/2", "changed"))

    def told():
        if not LATER:
            events.extend(handle.get_new_events())
        return any(e.type.value == "write" and e.name == "2" for e in events)

    await until("an event", told)
    await a(handle.stop())


@check("Sandbox.upload_url")
async def _():
    answer = httpx.post(it["s"].upload_url("up.txt", use_signature_expiration=60), files={"file": b"by address"})
    assert answer.status_code == 200, answer.text


@check("Sandbox.download_url")
async def _():
    assert httpx.get(it["s"].download_url("up.txt")).text == "by address"


@check("commands.run")
async def _():
    c, lines = it["s"].commands, []
    r = await a(c.run("echo $WHERE $HERE; echo e >&2; pwd", envs={"HERE": "command"}, cwd="/home/user/dir", on_stdout=lines.append))
    assert r.stdout.startswith("sandbox command\n") and r.stdout.endswith("dir\n") and r.stderr == "e\n" and "".join(lines) == r.stdout, r
    assert (await raises(CommandExitException, lambda: c.run("exit 7"))).exit_code == 7
    await raises(TimeoutException, lambda: c.run("sleep 60", timeout=0.3))


@check("commands.send_stdin")
async def _():
    it["script"] = "while read x; do echo got $x; done; echo over"
    it["h"] = await a(it["s"].commands.run(it["script"], background=True, stdin=True))
    await a(it["s"].commands.send_stdin(it["h"].pid, "one\n"))


@check("commands.stream_input")
async def _():
    await stream(it["s"].commands, it["h"].pid, "two\n", "three\n")


@check("commands.list")
async def _():
    assert [(p.cmd, p.args[-1]) for p in await a(it["s"].commands.list()) if p.pid == it["h"].pid] == [("/bin/bash", it["script"])]


@check("commands.connect")
async def _():
    again = await a(it["s"].commands.connect(it["h"].pid))
    assert again.pid == it["h"].pid
    await a(again.disconnect())


@check("commands.close_stdin")
async def _():
    await a(it["s"].commands.close_stdin(it["h"].pid))


@check("commandHandle.wait")
async def _():
    assert (await a(it["h"].wait())).stdout == "got one\ngot two\ngot three\nover\n"


@check("commands.kill")
async def _():
    h = await a(it["s"].commands.run("sleep 600", background=True))
    assert await a(it["s"].commands.kill(h.pid)) is True
    await raises(CommandExitException, h.wait)
    assert await a(it["s"].commands.kill(h.pid)) is False


@check("commandHandle.kill")
async def _():
    assert await a((await a(it["s"].commands.run("sleep 600", background=True))).kill())


@check("commandHandle.send_stdin")
async def _():
    h = await a(it["s"].commands.run("read x; echo $x", background=True, stdin=True))
    await a(h.send_stdin("direct\n"))
    assert (await a(h.wait())).stdout == "direct\n"


@check("commandHandle.close_stdin")
async def _():
    h = await a(it["s"].commands.run("cat", background=True, stdin=True))
    await a(h.close_stdin())
    assert (await a(h.wait())).exit_code == 0


@check("commandHandle.disconnect")
async def _():
    h = await a(it["s"].commands.run("sleep 600", background=True))
    await a(h.disconnect())
    assert await a(it["s"].commands.kill(h.pid)), "it has gone on"


@check("pty.create")
async def _():
    it["shown"] = b""

    def shown(data):
        it["shown"] += data

    options = {"on_data": shown} if LATER else {}
    it["pty"] = await a(it["s"].pty.create(PtySize(rows=20, cols=90), envs={"PS1": "$ "}, **options))


@check("pty.send_stdin")
async def _():
    # At its prompt, readline sets the size that it has read before, which may be the old one.
    await a(it["s"].pty.send_stdin(it["pty"].pid, b'until [ "$(stty size)" = "10 70" ]; do sleep .1; done; echo re""sized\n'))
    if LATER:
        await until("the command", lambda: b're""sized\r\n' in it["shown"])
    else:
        events = iter(it["pty"])
        while b're""sized\r\n' not in it["shown"]:
            it["shown"] += next(events)[2] or b""


@check("pty.resize")
async def _():
    await a(it["s"].pty.resize(it["pty"].pid, PtySize(rows=10, cols=70)))


@check("pty.connect")
async def _():
    options = {"on_data": lambda data: None} if LATER else {}
    again = await a(it["s"].pty.connect(it["pty"].pid, **options))
    assert again.pid == it["pty"].pid
    await a(again.disconnect())


@check("pty.stream_input")
async def _():
    await stream(it["s"].pty, it["pty"].pid, b"exit\n")
    if LATER:
        await it["pty"].wait()
    else:
        for _, _, data in it["pty"]:
            it["shown"] += data or b""
    assert b"resized\r\n" in it["shown"], it["shown"]


@check("pty.kill")
async def _():
    p = await a(it["s"].pty.create(PtySize(rows=20, cols=90), **({"on_data": lambda data: None} if LATER else {})))
    assert await a(it["s"].pty.kill(p.pid))


@check("Sandbox.run_code")
async def _():
    s, out = it["s"], []
    e = await a(s.run_code("print(1); x = 41; x + 1", on_stdout=lambda m: out.append((m.line, m.timestamp > 10**18))))
    assert (e.text, e.logs.stdout, out, e.execution_count) == ("42", ["1\n"], [("1\n", True)], 1), e
    assert (await a(s.run_code("1/0"))).error.name == "ZeroDivisionError"
    assert (await a(s.run_code('import os; os.environ["WHERE"] + os.environ["FOR"]', envs={"FOR": "call"}))).text == "sandboxcall"
    assert (await a(s.run_code('os.environ.get("FOR", "gone")'))).text == "gone"
    await raises(TimeoutException, lambda: s.run_code("import time; time.sleep(600)", timeout=0.5))
    assert (await a(s.run_code("x"))).text == "41"
    await raises(NotFoundException, lambda: s.run_code("1", language="r"))
    path = "import sys; sys.path.insert(0, %r)\nimport matplotlib.pyplot as plt\n" % os.environ["EXTRAS"]
    for code, kind in (("plt.plot([1, 2], [3, 4], label='l')", "line"), ("plt.scatter([1], [2])", "scatter"), ("plt.bar(['a'], [3])", "bar"),
                       ("plt.pie([1, 3], labels=['a', 'b'])", "pie"), ("plt.boxplot([[1, 2, 3, 9]])", "box_and_whisker"),
                       ("f, (x1, x2) = plt.subplots(1, 2); x1.plot([1, 2]); x2.bar(['a'], [1])", "superchart")):
        r = (await a(s.run_code(path + code + "; plt.show()"))).results[-1]
        assert r.png and r.chart is not None and r.chart.type.value == kind and r.chart.elements, (kind, r.chart and r.chart.to_dict())
    assert (await a(s.run_code("import pandas; pandas.DataFrame({'a': [1, 2]})"))).results[0].data == {"a": [1, 2]}
    found = await a(s.commands.run("for p in python3 python; do $p -c 'import sys; print(sys.prefix)'; done; pip --version"))
    prefix = (await a(s.run_code("import sys; sys.prefix"))).text  # what commands install, code imports
    assert found.stdout.startswith(f"{prefix}\n{prefix}\npip ") and f" from {prefix}/" in found.stdout, found


@check("Sandbox.create_code_context")
async def _():
    it["c"] = await a(it["s"].create_code_context(cwd="/home/user/dir", language="python"))
    assert (await a(it["s"].run_code("import os; y = 1; os.getcwd()", context=it["c"]))).text.endswith("dir")


@check("Sandbox.list_code_contexts")
async def _():
    assert (await a(it["s"].list_code_contexts()))[-1].id == it["c"].id


@check("Sandbox.restart_code_context")
async def _():
    await a(it["s"].restart_code_context(it["c"]))
    assert (await a(it["s"].run_code("y", context=it["c"]))).error.name == "NameError"


@check("Sandbox.remove_code_context")
async def _():
    await a(it["s"].remove_code_context(it["c"].id))
    await raises(NotFoundException, lambda: it["s"].run_code("1", context=it["c"]))


def repo():
    """The repository: git runs as a process, which knows true paths."""
    return it["folder"] + "/repo"


def local():
    return {"scope": "local", "path": repo()}


@check("git.init")
async def _():
    it["folder"] = (await a(it["s"].files.get_info("."))).path
    await a(it["s"].git.init(repo(), initial_branch="main"))
    await a(it["s"].git.init(it["folder"] + "/remote.git", bare=True, initial_branch="main"))
    it["full"] = (await a(it["s"].files.get_info("remote.git"))).path


async def git_status(g):
    await a(it["s"].files.write("repo/a", "1"))
    assert (await a(g.status(repo()))).file_status[0].name == "a"


async def git_get(g):
    assert await a(g.get_config("color.ui", **local())) == "never"


async def git_branches(g):
    assert sorted((await a(g.branches(repo()))).branches) == ["main", "side"]


async def git_remote(g):
    assert await a(g.remote_get(repo(), "origin")) == it["full"]


async def git_clone(g):
    await a(g.clone(it["full"], path=it["folder"] + "/copy"))
    assert await a(it["s"].files.read("copy/a")) == "1"


async def git_restore(g):
    await a(it["s"].files.write("repo/a", "2"))
    await a(g.restore(repo(), paths=["a"]))
    assert await a(it["s"].files.read("repo/a")) == "1"


for _name, _call in (
    ("configure_user", lambda g: g.configure_user("Ann", "ann@example.org", **local())), ("set_config", lambda g: g.set_config("color.ui", "never", **local())),
    ("get_config", git_get), ("status", git_status), ("add", lambda g: g.add(repo())), ("commit", lambda g: g.commit(repo(), "first")),
    ("create_branch", lambda g: g.create_branch(repo(), "side")), ("checkout_branch", lambda g: g.checkout_branch(repo(), "main")), ("branches", git_branches),
    ("delete_branch", lambda g: g.delete_branch(repo(), "side", force=True)), ("remote_add", lambda g: g.remote_add(repo(), "origin", it["full"])),
    ("remote_get", git_remote), ("push", lambda g: g.push(repo(), remote="origin", branch="main", set_upstream=True)),
    ("pull", lambda g: g.pull(repo(), remote="origin", branch="main")), ("clone", git_clone), ("restore", git_restore), ("reset", lambda g: g.reset(repo(), mode="hard")),
    ("dangerously_authenticate", lambda g: g.dangerously_authenticate(username="ann", password="not-a-password", host="example.org")),
):

    @check("git." + _name)
    async def _(call=_call):
        await a(call(it["s"].git))


@check("Sandbox.kill")
async def _():
    assert await a(it["s"].kill()) and not await a(it["s"].is_running())
    assert not await a(S.kill(it["id"]))


async def main():
    for run in list(checks):
        await run()
    for name, thing in {"Sandbox": S, "files": it["s"].files, "commands": it["s"].commands, "pty": it["s"].pty, "git": it["s"].git, "commandHandle": it["h"]}.items():
        kind = thing if inspect.isclass(thing) else type(thing)
        for key in dir(kind):
            if not key.startswith("_") and callable(inspect.getattr_static(kind, key)) | callable(getattr(kind, key)) and f"{name}.{key}" not in seen:
                rows.append((f"{name}.{key}", "FAILS: no check names it"))
    print(json.dumps(rows))


asyncio.run(main())
