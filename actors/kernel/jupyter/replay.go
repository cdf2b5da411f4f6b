package jupyter

// replayCode makes an ipykernel remember its latest output and repeat it on
// request, see jupyter.Kernel.EnableReplay: a WebSocket that breaks swallows
// what was on its way, and no Jupyter server can say what that was.
//
// The memory is 8 MiB of output or 20,000 messages, whichever is reached first.
// It is filled before a message is sent, under a lock, so that an answer never
// misses a message with a smaller number than the ones that it holds. The answer
// goes over the control channel: it comes while a cell runs, and no rate limit
// applies to it.
const replayCode = `def __coppice_replay(kernel, most=20000, room=8 << 20):
    import collections, sys, threading
    session, send, make = kernel.session, kernel.session.send, kernel.session.msg
    channels = {"execute_reply": "shell", "input_request": "stdin"}
    for kind in ("stream", "display_data", "update_display_data", "execute_result", "error",
                 "clear_output", "execute_input", "status"):
        channels[kind] = "iopub"
    kept, lock, left, evicted, sent = collections.deque(), threading.RLock(), [room], {}, {}

    def number(msg_id):
        return int(msg_id.rsplit("_", 1)[1])

    def weigh(content):
        data = content.get("data") or content.get("traceback") or content
        values = data.values() if isinstance(data, dict) else data
        return 256 + sum(len(v) if isinstance(v, (str, bytes)) else 64 for v in values)

    def remember(msg):
        parent, kind = msg.get("parent_header") or {}, msg["header"]["msg_type"]
        if parent.get("msg_type") != "execute_request" or kind not in channels:
            return
        weight = weigh(msg["content"])
        sent[parent["msg_id"]] = sent.get(parent["msg_id"], 0) + 1
        kept.append((number(msg["header"]["msg_id"]), weight, msg))
        left[0] -= weight
        while left[0] < 0 or len(kept) > most:
            n, weight, old = kept.popleft()
            left[0] += weight
            evicted[old["parent_header"]["msg_id"]] = n

        for table in (evicted, sent):
            if len(table) > 64:
                del table[next(iter(table))]

    def sending(stream, msg_or_type, content=None, parent=None, ident=None, buffers=None,
                track=False, header=None, metadata=None):
        with lock:
            msg = msg_or_type
            if not isinstance(msg, dict):
                msg = make(msg, content=content, parent=parent, header=header, metadata=metadata)
            try:
                remember(msg)
            except Exception:
                pass  # what cannot be remembered can be sent all the same
        return send(stream, msg, ident=ident, buffers=buffers, track=track)

    async def replay(stream, ident, parent):
        want, out, more = parent["content"], [], False
        have, space = set(want["have"]), want["limit"]
        with lock:
            rows = sorted((row for row in kept if row[0] > want["since"]), key=lambda row: row[0])
            gone, total = evicted.get(want["parent"], -1), sent.get(want["parent"], 0)
        for n, weight, msg in rows:
            if n in have or msg["parent_header"]["msg_id"] != want["parent"]:
                continue
            space -= weight
            if space < 0 and out:
                more = True
                break
            out.append({"id": msg["header"]["msg_id"], "type": msg["header"]["msg_type"],
                        "channel": channels[msg["header"]["msg_type"]], "content": msg["content"]})
        session.send(stream, "coppice_replay_reply", {"messages": out, "evicted": gone, "sent": total, "more": more},
                     parent, ident=ident)

    # A result gets its number when it is begun. What was printed before it has to
    # have a smaller one: the numbers are the order in which messages are repeated.
    hook = get_ipython().displayhook
    begin = hook.start_displayhook

    def start_displayhook():
        sys.stdout.flush()
        sys.stderr.flush()
        begin()

    hook.start_displayhook = start_displayhook
    session.send = sending
    kernel.control_handlers["coppice_replay_request"] = replay

try:
    __coppice_replay(get_ipython().kernel)
except Exception:
    pass  # another kernel of Python, or another ipykernel: breaks are told then
finally:
    del __coppice_replay
`
