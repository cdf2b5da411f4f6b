"""Run a cell, read its result and follow it, with the client that openapi-python-client makes.

python client.py URL TOKEN, with the generated package coppice_api in the path.
"""

import json
import sys

from coppice_api import AuthenticatedClient
from coppice_api.api.sessions import events, execute, execution, health
from coppice_api.models import Cell, Execute, Execution, Health

url, token = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True) as client:
    alive = health.sync(client=client)
    assert isinstance(alive, Health) and alive.status == "ok", alive
    begun = execute.sync(client=client, body=Execute(
        session="python-client",
        cells=[Cell(code="import time\nfor i in range(3):\n    print('step', i, flush=True)\n    time.sleep(.2)"), Cell(code="6 * 7")],
    ))
    assert isinstance(begun, Execution), begun

    # As it runs: the request that the generated function makes, read line by line.
    seen = []
    with client.get_httpx_client().stream(**events._get_kwargs(begun.id)) as stream:
        assert stream.status_code == 200, stream.status_code
        for line in stream.iter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line[len("data: "):]))
    assert [e["seq"] for e in seen] == list(range(1, len(seen) + 1)), seen
    assert seen[-1]["type"] == "final", seen[-1]
    printed = "".join(e["text"] for e in seen if e["type"] == "stdout")
    assert printed == "step 0\nstep 1\nstep 2\n", printed

    # And whole, by the generated function itself.
    text = events.sync(begun.id, client=client, after=len(seen) - 1)
    assert '"type":"final"' in text, text

    ended = execution.sync(begun.id, client=client, wait=60)
    assert isinstance(ended, Execution) and ended.result.outcome == "ok", ended
    assert ended.result.cells[1].output == "42", ended.result
    assert ended.result.session == "python-client"
print("ok  the client of openapi-python-client runs a cell, follows it and reads its result")
