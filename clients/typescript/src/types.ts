// What a server tells. Members that a newer server adds are there, too, though no type
// here names them.

/** A piece of code, with a title for people. */
export interface Cell {
  code: string;
  title?: string;
}

/** What can be run: source text, or cells that run in order. */
export type Code = string | Cell | readonly (string | Cell)[];

/** How a call, or a cell of it, ended. */
export type Outcome = "ok" | "error" | "timeout" | "cancelled" | "lost" | "not_started";

/** What became of one cell. */
export interface CellResult {
  index: number;
  title: string;
  status: "pending" | "running" | "complete" | "error";
  outcome: Outcome;
  /** The text that it printed and showed. */
  output: string;
  duration_ms: number;
  /** The exception that ended it; null: none did. */
  error: { name: string; message: string; traceback?: string[] } | null;
}

/** The end of a call. Every call has exactly one. */
export interface Result {
  outcome: Outcome;
  /** What became of the variables; "": nothing ran. */
  state: "" | "kept" | "fresh" | "lost";
  /** What a model or a person reads: output, error, and notes about both. */
  text: string;
  session: string;
  cwd: string;
  backend: string;
  cells: CellResult[];
  /** The JSON values and the pictures (in base64) that were shown. */
  json: unknown[];
  images: { mime: string; data: string }[];
  /** The name of the file that holds the whole output, when text was cut. */
  artifact: string | null;
  /** Why nothing ran, what can be done about it, and after how long it is worth a try. */
  refusal?: string;
  remedy?: "retry" | "more_time" | "reset" | "mend_request" | "mend_setup";
  retry_after_ms?: number;
  notices?: string[];
}

interface Position {
  /** Counts from 1 without a gap. */
  seq: number;
  /** The cell, from 0; -1: the call itself. */
  cell: number;
  /** The id of the execution that the event is of. */
  execution: string;
}

/** A question of input() or getpass(). */
export interface InputRequest extends Position {
  type: "input_request";
  id: string;
  prompt: string;
  password?: boolean;
}

/** Something that happened while a call ran. */
export type Event =
  | (Position & { type: "stdout" | "stderr" | "notice"; text: string })
  | (Position & { type: "display" | "result"; data: Record<string, unknown> })
  | (Position & { type: "error"; name: string; message: string; traceback?: string[] })
  | InputRequest
  | (Position & { type: "final" } & Result)
  | (Position & { type: "status" | "clear" | "comm" | "host_call" | "host_event" });

/** A session that has an interpreter. */
export interface SessionInfo {
  session: string;
  cwd: string;
  /** idle, busy, starting, … */
  state: string;
  /** Calls that wait, and those that were answered. */
  queue: number;
  done: number;
  pinned: boolean;
  restarts: number;
  pid?: number;
  rss?: number;
}

/** How a server is. */
export interface Health {
  status: "ok" | "draining";
  version: string;
  backend: string;
  why: string;
  pid: number;
  cwd: string;
  sessions: number;
  executions: number;
}

/** What became of an answer to a question. */
export type InputStatus = "accepted" | "expired" | "already answered" | "unknown";
