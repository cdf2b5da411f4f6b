"""What Jupyter starts kernels of this kind with."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Optional

from jupyter_client.provisioning import LocalProvisioner
from traitlets import Enum, Unicode

from . import server as servers


class CoppiceProvisioner(LocalProvisioner):
    """Starts a supervised session of coppice as a kernel: in the server that runs, or in one
    of its own. What cannot work is said before anything is started."""

    server = Enum(
        ("auto", "running", "private"), "auto",
        help="The server of the session: one that runs, a private one that ends with the kernel, or (auto) the first where there is one.",
    ).tag(config=True)
    command = Unicode("", help="The command coppice, for a private server. Empty: the variable COPPICE, else the one on PATH.").tag(config=True)

    async def pre_launch(self, **kwargs: Any) -> Dict[str, Any]:
        """Looks for the server, and says to the kernel which it is."""
        env = kwargs["env"] = dict(kwargs.get("env") or os.environ)
        if self.server != "auto" or not env.get(servers.WHICH):
            env[servers.WHICH] = self.server
        if self.command:
            env[servers.COMMAND] = self.command
        found = None if env[servers.WHICH] == "private" else await self._running(env)
        if found is not None:
            env[servers.URL], env[servers.TOKEN], env[servers.WHICH] = found.url, found.token, "running"
        elif env[servers.WHICH] == "running":
            raise RuntimeError("no coppice serve --jupyter runs for this user; start it in another terminal")
        else:
            env[servers.COMMAND], env[servers.WHICH] = self._command(env), "private"
        return await super().pre_launch(**kwargs)

    @staticmethod
    async def _running(env: Dict[str, str]) -> Optional[servers.Server]:
        # Not in the threads of the loop: clients fork with their loop, and its threads are
        # not in the child.
        with ThreadPoolExecutor(1) as pool:
            return await asyncio.get_running_loop().run_in_executor(pool, servers.running, env)

    @staticmethod
    def _command(env: Dict[str, str]) -> str:
        try:
            return servers.command(env)
        except servers.ServerError as err:
            raise RuntimeError(str(err)) from None
