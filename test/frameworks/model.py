"""A model that follows a script: what a test of agents needs, over OpenAI's chat completions.

It is asked to have Python set x to a number and to say what x + 2 is. It lets x be set,
makes a mistake, has to read what the mistake was, asks for x + 2, and has to read that
before it answers. A model that is not shown what its code printed says so.
"""

import http.server
import json
import re
import threading

QUESTION = "In Python, set x to {n}. Then tell me what x + 2 is."


class Unexpected(Exception):
    """A request that no agent should make."""


def text_of(content) -> str:
    """The text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


def tool_of(request: dict) -> str:
    """The name of the one tool, which takes code and nothing else; "" where the model writes code itself."""
    tools = request.get("tools") or []
    if not tools:
        return ""
    if len(tools) != 1:
        raise Unexpected(f"{len(tools)} tools")
    function = tools[0]["function"]
    parameters = function["parameters"]
    if set(parameters["properties"]) != {"code"} or parameters["required"] != ["code"]:
        raise Unexpected(f"the tool takes {json.dumps(parameters)}")
    if "Run Python code" not in function["description"]:
        raise Unexpected(f"the model is told {function['description']!r}")
    return function["name"]


def said(request: dict) -> tuple:
    """The number in the question, how often the model has spoken, and what it was shown last."""
    messages = request["messages"]
    found = re.search(r"set x to (\d+)", "\n".join(text_of(m.get("content")) for m in messages if m["role"] == "user"))
    if not found:
        raise Unexpected("there is no question")
    return int(found[1]), sum(m["role"] == "assistant" for m in messages), text_of(messages[-1].get("content"))


def turn(request: dict) -> dict:
    """What the model says next."""
    tool, (n, spoken, shown) = tool_of(request), said(request)
    steps = [(None, f"x = {n}"), (None, "1 / 0"), ("ZeroDivisionError", "print(x + 2)")]
    if spoken < len(steps):
        needed, code = steps[spoken]
        if needed and needed not in shown:
            raise Unexpected(f"the model was not shown {needed}, but {shown!r}")
        if tool:
            call = {"id": f"call_{spoken}", "type": "function", "function": {"name": tool, "arguments": json.dumps({"code": code})}}
            return {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"role": "assistant", "content": f"Thought: let Python do it.\n<code>\n{code}\n</code>"}
    if str(n + 2) not in shown:
        raise Unexpected(f"the model was not shown {n + 2}, but {shown!r}")
    if tool:
        return {"role": "assistant", "content": f"It is {n + 2}."}
    return {"role": "assistant", "content": "<code>\nfinal_answer(f'It is {x + 2}.')\n</code>"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            if self.path != "/v1/chat/completions" or request.get("stream"):
                raise Unexpected(self.path)
            message = turn(request)
        except Unexpected as e:
            self.server.complaints.append(str(e))
            self.answer(400, {"error": {"message": str(e), "type": "invalid_request_error"}})
            return
        self.answer(200, {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if message.get("tool_calls") else "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })

    def answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Model:
    """The model, served on the loopback interface until the block ends."""

    def __enter__(self) -> "Model":
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.complaints = self.complaints = []
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
