"""Measures clients of the Jupyter project on an ipykernel of their own.

python -c <this> blocking|async|nbclient CREATES CALLS prints the seconds that
each new kernel took to its first result, and each 1+1, as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, Awaitable, Callable, List

CODE = "1+1"


def blocking(creates: int, calls: int) -> "tuple[List[float], List[float]]":
    from jupyter_client.manager import KernelManager

    def call(client: Any) -> None:
        # execute_interactive waits for the reply and for the idle status.
        seen: List[str] = []

        def output(msg: Any) -> None:
            if msg["msg_type"] == "execute_result":
                seen.append(msg["content"]["data"]["text/plain"])

        reply = client.execute_interactive(CODE, output_hook=output, timeout=60)
        assert reply["content"]["status"] == "ok" and seen == ["2"], (reply, seen)

    def kernel() -> "tuple[Any, Any]":
        manager = KernelManager()
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=60)
        return manager, client

    made, took = [], []
    for n in range(creates):
        begin = time.perf_counter()
        manager, client = kernel()
        try:
            call(client)
            made.append(time.perf_counter() - begin)
            if n == 0:
                for _ in range(calls):
                    begin = time.perf_counter()
                    call(client)
                    took.append(time.perf_counter() - begin)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    return made, took


async def asynchronous(creates: int, calls: int) -> "tuple[List[float], List[float]]":
    from jupyter_client.manager import AsyncKernelManager

    async def call(client: Any) -> None:
        msg_id = client.execute(CODE)
        reply, seen = None, []
        idle = False
        while not idle:
            msg = await client.get_iopub_msg(timeout=60)
            if msg["parent_header"].get("msg_id") != msg_id:
                continue
            if msg["msg_type"] == "execute_result":
                seen.append(msg["content"]["data"]["text/plain"])
            idle = msg["msg_type"] == "status" and msg["content"]["execution_state"] == "idle"
        while reply is None:
            msg = await client.get_shell_msg(timeout=60)
            if msg["parent_header"].get("msg_id") == msg_id:
                reply = msg
        assert reply["content"]["status"] == "ok" and seen == ["2"], (reply, seen)

    made, took = [], []
    for n in range(creates):
        begin = time.perf_counter()
        manager = AsyncKernelManager()
        await manager.start_kernel()
        client = manager.client()
        client.start_channels()
        try:
            await client.wait_for_ready(timeout=60)
            await call(client)
            made.append(time.perf_counter() - begin)
            if n == 0:
                for _ in range(calls):
                    begin = time.perf_counter()
                    await call(client)
                    took.append(time.perf_counter() - begin)
        finally:
            client.stop_channels()
            await manager.shutdown_kernel(now=True)
    return made, took


async def notebook(creates: int, calls: int) -> "tuple[List[float], List[float]]":
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    made, took = [], []
    for n in range(creates):
        book = new_notebook(cells=[new_code_cell(CODE) for _ in range(calls + 1 if n == 0 else 1)])
        begin = time.perf_counter()
        client = NotebookClient(book, timeout=60)
        client.reset_execution_trackers()
        async with client.async_setup_kernel():
            for index, cell in enumerate(book.cells):
                if index:
                    begin = time.perf_counter()
                await client.async_execute_cell(cell, index)
                assert cell.outputs[0]["data"]["text/plain"] == "2", cell
                (took if index else made).append(time.perf_counter() - begin)
    return made, took


def run(f: Callable[[int, int], Awaitable[Any]]) -> Callable[[int, int], Any]:
    return lambda creates, calls: asyncio.run(f(creates, calls))  # type: ignore[arg-type]


MODES = {"blocking": blocking, "async": run(asynchronous), "nbclient": run(notebook)}

if __name__ == "__main__":
    created, executed = MODES[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"create": created, "exec": executed}))
