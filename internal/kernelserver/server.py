# Runs Jupyter Server as a Kernel Gateway is run, where only that is installed. It
# takes the arguments and the environment of a Kernel Gateway and keeps what hosts
# rely on: nothing is answered without the token, a kernel gets the environment that
# its request asks for and nothing else, and no file holds the token. Of Jupyter
# Server's services, kernels and kernelspecs are left.
import contextvars
import importlib.util
import os
import sys

# The directory of this file is not a place to import from.
if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]


def beside(name):
    """Loads a file that is where this one is, None where there is none."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("coppice_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


forks = beside("forks") if __name__ == "__main__" else None
if forks is not None:
    forks.begin()

# Kernels must not find these.
token = os.environ.pop("KG_AUTH_TOKEN", "")
inherited = set(os.environ.pop("KG_ENV_PROCESS_WHITELIST", "").split(","))
admitted = set(os.environ.pop("KG_ENV_WHITELIST", "").split(","))

beside("late").put_off()
room = beside("room")
walled = beside("walled")
if walled is not None:
    walled.serve()

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels import handlers
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado import web

# What the request in this task asks for.
wanted = contextvars.ContextVar("wanted", default=None)


class Kernels(AsyncMappingKernelManager):
    limit = 0  # of kernels; 0: none

    async def _async_start_kernel(self, *, kernel_id=None, path=None, **kwargs):
        if self.limit and len(self.list_kernel_ids()) >= self.limit:
            raise web.HTTPError(403, "Resource Limit")
        extra = wanted.get()
        if extra is not None:
            env = {k: v for k, v in os.environ.items() if k in inherited}
            env.setdefault("PATH", os.getenv("PATH", ""))
            env.update((k, v) for k, v in extra.items() if k.startswith("KERNEL_") or k in admitted)
            kwargs["env"] = env
        return await super()._async_start_kernel(kernel_id=kernel_id, path=path, **kwargs)

    start_kernel = _async_start_kernel


class Server(ServerApp):
    default_services = ("kernels", "kernelspecs")
    no_browser_open_file = True

    def write_server_info_file(self):
        pass  # it would hold the token


def with_env(post):
    async def wrapped(self):
        model = self.get_json_body()
        env = model.get("env") if isinstance(model, dict) else None
        if env is not None and not isinstance(env, dict):
            raise web.HTTPError(400)
        mark = wanted.set(env)
        try:
            await post(self)
        finally:
            wanted.reset(mark)

    return wrapped


def application(arguments, forks):
    """Returns the server, initialized with the arguments of a Kernel Gateway. forks is
    the module that makes its kernels by fork, or None."""
    if forks is not None:
        forks.register()
    room.make()
    args = ["--ServerApp.allow_root=True", "--ServerApp.open_browser=False"]
    for a in arguments:
        name, _, value = a.partition("=")
        if name == "--KernelGatewayApp.max_kernels":
            Kernels.limit = int(value)
        elif name.startswith("--KernelGatewayApp."):
            args.append("--ServerApp." + a.partition(".")[2])
        elif not name.startswith("--JupyterWebsocketPersonality."):
            args.append(a)
    handlers.MainKernelHandler.post = with_env(handlers.MainKernelHandler.post)
    app = Server.instance(kernel_manager_class=Kernels)
    app.config.IdentityProvider.token = token
    app.initialize(args)
    return app


if __name__ == "__main__":
    application(sys.argv[1:], forks).start()
