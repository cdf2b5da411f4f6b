"""A tool with FastAPI and uvicorn that streams: interest, year by year.

POST /run takes the inputs and returns at once; GET /stream sends what comes of
them; POST /cancel ends a run between two years.
"""

import argparse
import asyncio
import hmac
import json
import os
import pathlib

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

SCHEMA = json.loads((pathlib.Path(__file__).parent / "tool.json").read_text(encoding="utf-8"))
TOKEN = os.environ.get("COPPICE_TOOL_TOKEN", "")

app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
runs = {}


class Inputs(BaseModel):
    principal: float = Field(1000, ge=0)
    rate: float = Field(5, ge=0, le=100)
    years: int = Field(10, ge=1, le=100)
    pause: float = Field(0, ge=0, le=10)


class Run(BaseModel):
    run_id: str
    inputs: Inputs


@app.middleware("http")
async def guard(request: Request, call_next):
    if TOKEN and not hmac.compare_digest(request.headers.get("x-coppice-token", ""), TOKEN):
        return JSONResponse({"detail": "the token is missing or wrong"}, 403)
    return await call_next(request)


@app.get("/healthz")
async def healthz():
    return {"ok": True}


@app.get("/schema")
async def schema():
    return SCHEMA


@app.post("/run")
async def run(body: Run):
    runs[body.run_id] = (body.inputs, asyncio.Event())
    return {"run_id": body.run_id, "status": "started"}


@app.get("/stream")
async def stream(run_id: str):
    if run_id not in runs:
        raise HTTPException(404, "no such run")
    return StreamingResponse(grow(run_id), media_type="text/event-stream")


@app.post("/cancel")
async def cancel(run_id: str):
    if run_id not in runs:
        return {"cancelled": False}
    runs[run_id][1].set()
    return {"cancelled": True}


def event(key, value, done=False):
    return "data: %s\n\n" % json.dumps({"output_key": key, "value": value, "done": done})


async def grow(run_id):
    inputs, cancelled = runs[run_id]
    try:
        total = inputs.principal
        for year in range(1, inputs.years + 1):
            total *= 1 + inputs.rate / 100
            last = year == inputs.years
            yield event("growth", {"x": [year], "series": [{"name": "total", "y": [round(total, 2)]}]}, last)
            yield event("log", {"lines": ["year %d: %.2f" % (year, total)]}, last)
            if inputs.pause and not last:
                try:
                    await asyncio.wait_for(cancelled.wait(), inputs.pause)
                except asyncio.TimeoutError:
                    pass
            if cancelled.is_set():
                yield "event: error\ndata: %s\n\n" % json.dumps({"message": "cancelled in year %d" % year})
                return
        yield event("final", round(total, 2), True)
        yield "event: done\ndata: {}\n\n"
    finally:
        runs.pop(run_id, None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvicorn.run(app, host="127.0.0.1", port=parser.parse_args().port, log_level="warning")
