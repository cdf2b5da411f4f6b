package mcpserver

import "encoding/json"

// resultSchema describes messages.Result, which is the structured content of the
// tools that run code.
var resultSchema = json.RawMessage(`{
  "type": "object",
  "required": ["outcome", "state", "text", "session", "cwd", "cells"],
  "properties": {
    "outcome": {"enum": ["ok", "error", "timeout", "cancelled", "lost", "not_started"], "description": "How the call ended."},
    "state": {"enum": ["", "kept", "fresh", "restored", "lost"], "description": "What became of the session's variables; empty when nothing of the call ran."},
    "remedy": {"enum": ["retry", "more_time", "reset", "mend_request", "mend_setup"], "description": "What helps a call of which nothing ran."},
    "retry_after_ms": {"type": "integer"},
    "progress": {"type": "object", "description": "How far the call came: reach, begun of cells, stop, limit_ns, waited."},
    "text": {"const": "", "description": "Empty: the text is in the content."},
    "backend": {"type": "string"},
    "session": {"type": "string", "description": "The session of the call, to be passed as session by the next call of the same work."},
    "cwd": {"type": "string"},
    "reason": {"type": "string", "description": "Why the outcome is lost or not_started, or the state not kept."},
    "cells": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["index", "status", "outcome", "output"],
        "properties": {
          "index": {"type": "integer"},
          "title": {"type": "string"},
          "status": {"enum": ["pending", "running", "complete", "error"]},
          "outcome": {"enum": ["ok", "error", "timeout", "cancelled", "lost", "not_started"]},
          "output": {"const": "", "description": "Empty: it is in the content."},
          "duration_ms": {"type": "integer"},
          "exit_code": {"type": ["integer", "null"]},
          "error": {"type": ["object", "null"]}
        }
      }
    },
    "truncation": {"type": ["object", "null"]},
    "artifact": {"type": ["string", "null"], "description": "artifact://N holds the whole output."},
    "stdin_requested": {"type": "boolean"}
  }
}`)
