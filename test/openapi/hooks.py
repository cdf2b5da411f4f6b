"""What schemathesis asks is kept within the folder of the server that it tests."""

import schemathesis

LONG = 86400  # seconds

@schemathesis.hook
def before_call(context, case, kwargs):
    """Name notebooks by their last part: a test writes none outside of the server's folder."""
    body = case.body
    if isinstance(body, dict):  # a workspace has a folder of its own, and starts nothing that exists
        if isinstance(body.get("folder"), str):
            del body["folder"]
        args = body.get("args")
        if isinstance(args, list) and args and isinstance(args[0], str) and args[0]:
            args[0] = "no-" + args[0]
    life = body.get("lifetime") if isinstance(body, dict) else None
    if isinstance(life, dict):  # the one workspace lives as long as the test
        for name, value in life.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < LONG:
                life[name] = LONG
    if isinstance(body, dict) and isinstance(body.get("path"), str) and "/" in body["path"]:
        body["path"] = body["path"].rsplit("/", 1)[1]
