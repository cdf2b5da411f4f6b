/**
 * Python sessions that stay alive: the client of coppice serve.
 *
 *     const client = new Client({ url, token });
 *     const session = client.session("chat 7");
 *     await session.run("x = 40");
 *     console.log((await session.run("x + 2")).text);
 *
 * @module
 */
export { Client, type ClientOptions } from "./client.js";
export { check, ConnectionLost, CoppiceError, ExecutionFailed, NoServer, ServerError } from "./errors.js";
export { type Content, Files, type WriteOptions } from "./files.js";
export { type Data, type ExecOptions, Process, type StartOptions } from "./process.js";
export { Session, type RunOptions, type SessionOptions, type StreamOptions } from "./session.js";
export type {
  Cell, CellResult, Checkpoint, Code, Event, File, Health, InputRequest, InputStatus, Isolation, LimitExceeded, Listing, Memory, Outcome, ProcessEvent,
  ProcessExit, ProcessInfo, ProcessResult, Result, SavedCheckpoint, SaveOptions, SessionInfo, WorkspaceInfo, WorkspaceLimits,
  WorkspaceTotal, WorkspaceUsage,
} from "./types.js";
export { Workspace, type WorkspaceOptions } from "./workspace.js";
