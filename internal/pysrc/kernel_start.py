"""Prepares a Jupyter kernel of Python for its session: what a cell's output, its
errors and its calls of the host need, and the helpers.

Two ways lead here. The script of our own kernels runs start() while the kernel
comes up, with code that was compiled once for all of them. Any other kernel gets
the sources with its first request. Then begin() makes it the kernel of a session.

A kernel without IPython gets what can be had without it. The module keeps no
name in the session's namespace."""

import os
import sys
import types

# Names the sources that all this is from: a host uses only its own.
tag = ""

# Returns the compiled code of a module by its name.
_code = None

# The modules beside the helpers'.
LOCATE, OUTPUT, CALLS, CELL, HELPERS = "coppice_locate", "coppice_output", "coppice_hostcalls", "coppice_cell", "coppice_prelude"
ENV = "coppice_callenv"
CHARTS = "coppice_charts"


def start(name, code):
    """Does what is the same for all sessions. name is the tag of the sources."""
    global tag, _code
    _code = code
    if __name__ not in sys.modules:  # else another version has, in a gateway that hosts share
        _hook(_shell())
    for name_, needed in ((CALLS, None), (ENV, None), (CELL, CALLS)):
        try:
            if needed is None or needed in sys.modules:
                _load(name_)
        except ImportError:
            pass
    tag = name


def _hook(shell):
    for prepare in (_quiet, _places, _charts):
        try:
            prepare(shell)
        except AttributeError:
            pass  # another kernel of Python, or an older IPython: it goes without
    try:
        module = _load(OUTPUT, keep=False)
        module.output = module.start_here()
        sys.modules[OUTPUT] = module
    except Exception:
        pass  # another kernel of Python, or another ipykernel: what is lost is reported then


def begin(cwd, env, remote, keep, place, helpers, files=0):
    """Makes this the kernel of a session. With remote, a working directory that is
    not there is no error: the kernel may run on another machine. keep names the
    variables that stay of those about another host (None: all). place is where the
    session calls its host. helpers is the type of the helpers' status events, ""
    for no helpers. files is how many files code may have open, 0 for any number."""
    if keep is not None:
        for name in [n for n in os.environ if n.startswith("PI_") and n not in keep]:
            del os.environ[name]
    if cwd and (not remote or os.path.isdir(cwd)):
        os.chdir(cwd)
        if cwd not in sys.path:
            sys.path.insert(0, cwd)
    os.environ.update(env or {})
    _wake()
    module = sys.modules.get(CELL)
    if module is not None:
        try:
            module.cell = module.start(*place)
        except (ImportError, AttributeError):
            pass  # another kernel of Python
    if helpers:
        _help(helpers)
    if files:
        _bound(files)


# How far the server may raise the limit for its connections: a kernel dies of one without room.
_ROOM = 64


def _bound(files):
    """Bounds how many files may be open besides the kernel's own, which it has opened by then:
    without them it could not say that there are too many."""
    import resource
    import threading

    sends = getattr(sys.stdout, "pub_thread", None)
    if sends is not None:
        opened = threading.Event()
        sends.schedule(lambda: (getattr(sends, "_event_pipe", None), opened.set()))
        opened.wait(10)
    try:
        _accepted(10)
        own = len(os.listdir("/proc/self/fd"))
    except OSError:
        own = len(os.listdir("/dev/fd"))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = own + files
    top = most + _ROOM
    if hard != resource.RLIM_INFINITY:
        most, top = min(most, hard), min(top, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, top))


def _accepted(seconds):
    """Waits until the connections that have come to the kernel are among its descriptors."""
    import select, socket, time

    def comes(fd):
        s = socket.socket(fileno=fd)
        try:
            return s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and select.select([s], [], [], 0)[0]
        finally:
            s.detach()

    until = time.monotonic() + seconds
    for fd in os.listdir("/proc/self/fd"):
        try:
            while comes(int(fd)) and time.monotonic() < until:
                time.sleep(0.005)
        except (OSError, ValueError):
            pass  # something else, or gone


def _wake():
    """Makes a signal wake the event loop: a cell that waits in await learns of an
    interrupt only when the loop does something else."""
    try:
        import asyncio
        import signal

        before = signal.set_wakeup_fd(asyncio.get_running_loop()._csock.fileno(), warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before, warn_on_full_buffer=False)
    except (AttributeError, ValueError, RuntimeError, OSError):
        pass  # another loop, or another thread: the host makes it do something


def _shell():
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()


def _load(name, keep=True):
    module = types.ModuleType(name)
    if keep:
        sys.modules[name] = module
    try:
        exec(_code(name), module.__dict__)
    except BaseException:
        if keep:
            del sys.modules[name]
        raise
    return module


def _help(mime):
    """Brings the helpers into the user's namespace, hidden from %who, and again
    after a %reset."""
    preload()
    import coppice_prelude
    from IPython.display import display

    shell = _shell()
    helpers = coppice_prelude.install(shell.user_ns, display, mime)
    shell.user_ns_hidden.update(helpers)
    anew = shell.init_user_ns

    def init_user_ns():
        anew()
        shell.user_ns.update(helpers)
        shell.user_ns_hidden.update(helpers)

    shell.init_user_ns = init_user_ns


class _Finder:
    """Finds the modules of the helpers."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] != HELPERS:
            return None
        try:
            origin = _code(name).co_filename
        except KeyError:
            return None
        return type(sys.__spec__)(name, _Finder, origin=origin, is_package="." not in name)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        exec(_code(module.__name__), module.__dict__)


def preload():
    """Imports the helpers."""
    if HELPERS not in sys.modules:
        sys.meta_path.insert(0, _Finder)
        try:
            __import__(HELPERS)
        finally:
            sys.meta_path.remove(_Finder)


def _quiet(shell):
    """Makes a semicolon at the end of a cell suppress its result, as it does in a
    notebook: IPython looks for it in its history, and the calls of a host are kept
    out of that."""
    hook, cell = shell.displayhook, [""]
    ends = hook.semicolon_at_end_of_expression
    shell.events.register("pre_run_cell", lambda info: cell.__setitem__(0, info.raw_cell or ""))
    hook.quiet = lambda: ends(cell[0])


def _charts(shell):
    """Makes IPython show the data of charts and tables, in sessions that ask for it. The
    module that knows them is loaded when something is shown that may have some."""
    shown = shell.display_formatter
    from IPython.core.formatters import BaseFormatter

    class Form(BaseFormatter):
        def __call__(self, value):
            if "matplotlib" not in sys.modules and "pandas" not in sys.modules:
                return None
            charts = sys.modules.get(CHARTS) or _load(CHARTS)
            return charts.forms(value).get(self.format_type) if charts.wanted() else None

    for mime in ("application/vnd.coppice.chart+json", "application/vnd.coppice.table+json"):
        shown.formatters[mime] = Form(parent=shown, format_type=mime)


def _group(error, depth=0):
    if error is None or depth > 20:
        return False
    return hasattr(error, "exceptions") and hasattr(error, "derive") or _group(error.__cause__, depth + 1) or _group(error.__context__, depth + 1)


# From this depth on a traceback is not given to IPython, which takes seconds for what
# no one reads, and does not heed an interrupt while it does so.
_DEEP = 100


def _deep(error):
    """Says whether the traceback of an exception, or of one that it is chained to, is
    very long."""
    for _ in range(20):
        if error is None:
            return False
        trace, depth = error.__traceback__, 0
        while trace is not None and depth <= _DEEP:
            trace, depth = trace.tb_next, depth + 1
        if depth > _DEEP:
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return True


def _plain(error, texts):
    """Says whether IPython has no form for an exception that tells where it came from:
    a SyntaxError that code raised, which may lack what the compiler's own has, and
    what a magic that is not there raises."""
    if type(error).__name__ == "UsageError":
        return True
    if not isinstance(error, SyntaxError):
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in texts:
            return True
        trace = trace.tb_next
    return False


def _interrupt(error):
    """Says whether an exception is what ends a cell that is interrupted, and none
    that code raised itself."""
    if isinstance(error, KeyboardInterrupt):
        return not _raised(error)
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        return asyncio.current_task().cancelling() > 0
    except (AttributeError, RuntimeError):
        return False  # Python before 3.11 does not say who was cancelled


def _raised(error):
    """Says whether an exception comes of a raise statement."""
    import opcode

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_lasti < 0:
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == opcode.opmap.get("RAISE_VARARGS")


def _places(shell):
    """Makes the kernel add to its error messages where in the cells an exception
    came from. The module that finds out is loaded when it is first needed. It must
    never keep an error from being told."""
    session, show, compiler, traces = shell.displayhook.session, shell._showtraceback, shell.compile, shell.showtraceback
    texts, places, ran = {}, {}, [0, ""]
    again, shown = getattr(shell, "_format_exception_for_storage", None), []

    def remember(info):
        raw = info.raw_cell or ""
        ran[0] += 1
        ran[1] = compiler.get_code_name(raw, raw, ran[0])
        texts[ran[1]] = ("<cell %d>" % ran[0], raw)
        while len(texts) > 2000:
            del texts[next(iter(texts))]

    def known(name):
        if not places:
            found = {"__name__": LOCATE}  # an interrupt may come half-way
            exec(_code(LOCATE), found)
            places.update(found)
        return places[name]

    def place(error):
        cells = known("Cells")(texts.get)
        error = places["plainer"](error, cells, ran[1])
        found = places["locate"](error, cells, ran[1])
        found = {k: v.encode("utf-8", "backslashreplace").decode() if isinstance(v, str) else v for k, v in found.items()}
        return found, cells.message(error)

    def tell(kind, error, lines):
        try:
            found, message = place(error)
        except Exception:
            return show(kind, error, lines)
        send = session.send

        def add(stream, msg, content=None, *args, **more):
            if msg == "error" and isinstance(content, dict):
                content["coppice_place"] = found
            return send(stream, msg, content, *args, **more)

        session.send = add
        shown[:] = error, lines
        try:
            return show(kind, message, lines)  # only its text is looked at
        finally:
            session.send = send

    def keep(error, *args, **more):
        # IPython formats each exception a second time, for %notebook alone.
        if not shown or shown[0] is not error or isinstance(error, SyntaxError):
            return again(error, *args, **more)
        lines = shown[1]
        shown.clear()
        return {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}

    def trace(exc_tuple=None, *args, **more):
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        # IPython prints an exception group to stderr and reports no error. And
        # somebody waits for the end of what was interrupted: its own traceback
        # would have to load a library first, and then to parse asyncio.
        stopped = _interrupt(error) and getattr(shell.InteractiveTB, "mode", "") == "Context"
        deep = not stopped and (_deep(error) or _plain(error, texts))
        if not stopped and not deep and not _group(error):
            return traces(exc_tuple, *args, **more)
        begun = []

        def wanted(filename):
            if filename in texts:
                begun.append(True)
            return bool(begun)

        if stopped or deep:
            shell._get_exc_info(exc_tuple)  # for %debug and %tb
        try:
            told = known("described")(error, wanted)
            if stopped or deep:
                for frame in told.stack:  # their lines have been read
                    frame.filename = texts.get(frame.filename, (frame.filename,))[0]
            lines = "".join(told.format()).splitlines()
        except Exception as failed:  # an exception that fights back
            lines = ["%s (the traceback could not be made: %s)" % (type(error).__name__, type(failed).__name__)]
        tell(type(error), error, lines)

    shell.events.register("pre_run_cell", remember)
    shell._showtraceback, shell.showtraceback = tell, trace
    if again is not None:
        shell._format_exception_for_storage = keep
