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

/** The limit of a session, or of its workspace, that the code or its interpreter has met: it ended that, unless the outcome is ok. */
export interface LimitExceeded {
  limit: "memory" | "cpu" | "runtime" | "files" | "processes" | "output" | "disk";
  /** Whose limit it was, how much that is, and what was done. Left out: it was the session's own. */
  detail?: string;
  /** The end of what the code wrote to stderr. */
  stderr?: string;
}

/** The end of a call. Every call has exactly one. */
export interface Result {
  outcome: Outcome;
  /** What became of the variables; "": nothing ran. */
  state: "" | "kept" | "fresh" | "restored" | "lost";
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
  /**
   * Why it was lost or not started, or why the variables are not as the calls before left
   * them. Left out where there is nothing to explain.
   */
  reason?: string;
  /** The limit that the code or its interpreter has met. */
  resource_limit_exceeded?: LimitExceeded;
  /** Which variables are there, and which are not, where state is restored. */
  restored?: Memory;
  /** Whether the code asked for input and got none. */
  stdin_requested: boolean;
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
  /** Its name, and the same as the server calls it. */
  name: string;
  session: string;
  cwd: string;
  /** The workspace that it belongs to. */
  workspace?: string;
  /** The kernelspec of its kernels, where it named one. */
  kernel?: string;
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

/** A state of a session that the server keeps, until it is dropped or the server ends. */
export interface Checkpoint {
  id: string;
  /** The session whose state it is. */
  session: string;
  cwd: string;
  workspace?: string;
  made: string;
  /** The bytes of memory that are its alone by now. */
  memory?: number;
}

/** What becomes of each variable of a session: it is in one of the three. */
export interface Memory {
  kept: string[];
  lost?: { name: string; type: string; reason: string }[];
  changed?: { name: string; type: string; change: string }[];
  /** What turned out otherwise when it was read, a sentence each. */
  notes?: string[];
}

/** A state of a session that is kept on the server's disk under a name, also when the server ends. */
export interface SavedCheckpoint extends Memory {
  name: string;
  /** The session whose state it is. It is for sessions of that workspace, or of none. */
  session: string;
  cwd: string;
  workspace?: string;
  /** Who may have it; open: everyone may. */
  owners?: string[];
  open?: boolean;
  made: string;
  /** Until when it is kept. Left out: until it is dropped. */
  expires?: string;
  bytes: number;
  /** The version of Python that it is of, and alone can be restored by. */
  python: string;
}

/** How a session is saved. Default of each: no. */
export interface SaveOptions {
  /** Keep what can be kept, though something is lost. */
  lossy?: boolean;
  /** Replace the one of that name. */
  replace?: boolean;
}

/** Bound each session of a workspace. Default of each: the server's. */
export interface WorkspaceLimits {
  memory_bytes?: number;
  /** Of one cell. */
  cpu_seconds?: number;
  runtime_seconds?: number;
  /** How many files may be open. */
  files?: number;
  /** How many processes a session may start, and how many processors it may keep busy. */
  processes?: number;
  processors?: number;
}

/** Bound everything in a workspace together. Default of each: no limit. */
export interface WorkspaceTotal {
  memory_bytes?: number;
  /** How many processes may live, and how many processors may be kept busy. */
  processes?: number;
  processors?: number;
  /** How many bytes each cell and each process may print. */
  output_bytes?: number;
}

/** What everything in a workspace used when it was looked at. */
export interface WorkspaceUsage {
  at?: string;
  memory_bytes: number;
  processes: number;
  /** How often something was ended for a limit of the workspace, and the newest of those. */
  ends?: number;
  last?: string;
}

/** What sessions and processes are kept from. */
export interface Isolation {
  level?: "off" | "privileges" | "landlock" | "seccomp" | "user" | "bubblewrap" | "gvisor" | "strongest";
  /** Folders that may be changed, and read, besides the workspace's own and the system's. */
  write?: string[];
  read?: string[];
  /** Allows network connections. */
  network?: boolean;
  /** Closes what all programs of the user share. */
  private?: boolean;
  /** Gives each session a user of its own, on the rung bubblewrap. */
  users?: boolean;
}

/** A workspace: what sessions, files and processes belong to together. */
export interface WorkspaceInfo {
  name: string;
  /** Where its files are on the machine of the server. */
  folder: string;
  owner?: string;
  labels?: Record<string, string>;
  made: string;
  end_at?: string;
  idle_end_seconds?: number;
  used: string;
  /** How many calls, processes and transfers of files go on. */
  in_use: number;
  pinned?: boolean;
  quota_bytes?: number;
  limits: WorkspaceLimits;
  total?: WorkspaceTotal;
  /** What keeps to those, and why not a control group. */
  total_kept?: string;
  usage?: WorkspaceUsage;
  /** The rung that its sessions are on, and what that does. */
  isolation?: string;
  isolation_text?: string;
}

/** What stands at a path of a workspace. */
export interface File {
  /** Relative to the folder of the workspace, with slashes; "." is the folder itself. */
  path: string;
  kind: "file" | "directory" | "symlink" | "other";
  /** Bytes, of a file. */
  size: number;
  /** The permission bits, in octal: 0644. */
  mode: string;
  modified: string;
  /** What a symbolic link says. */
  target?: string;
  /** Tells versions of a file apart. */
  etag?: string;
}

/** What a directory holds. */
export interface Listing {
  files: File[];
  /** There is more than was asked for. */
  more?: boolean;
}

/** How a process ended. */
export interface ProcessExit {
  /** Its exit code; -1: a signal ended it. */
  code: number;
  signal?: string;
  /** Why it was ended from outside, and why output is missing. */
  reason?: string;
  incomplete?: string;
}

/** A process of a workspace. */
export interface ProcessInfo {
  id: string;
  pid: number;
  args: string[];
  cwd?: string;
  terminal?: boolean;
  input?: boolean;
  labels?: Record<string, string>;
  started: string;
  state: "running" | "ended";
  /** How it ended; it runs without. */
  exit?: ProcessExit;
}

/** A piece of what a process prints, which need not be text, or its end. Only a gap leaves numbers out. */
export type ProcessEvent =
  | { seq: number; type: "stdout" | "stderr" | "terminal"; data: Uint8Array }
  | { seq: number; type: "gap" }
  | { seq: number; type: "end"; exit: ProcessExit };

/** What became of a program that ran to its end. */
export interface ProcessResult {
  /** Its exit code; -1: a signal ended it. */
  code: number;
  signal: string;
  stdout: Uint8Array;
  stderr: Uint8Array;
  /** What it printed on stdout, as UTF-8. */
  text: string;
  /** Why it was ended from outside, and why output is missing; "" of each: it is not so. */
  reason: string;
  incomplete: string;
}
