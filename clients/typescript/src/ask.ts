// What is asked of a server, and what it says.
import type { Content } from "./files.js";

/** @internal What a request is made of. */
export interface Ask {
  body?: unknown;
  /** Is sent as it is. */
  data?: Content;
  headers?: Record<string, string>;
  query?: Record<string, string> | [string, string][];
  /** Do not repeat it when it is not known what became of it. */
  once?: boolean;
  /** For how many milliseconds a server that is out of reach is waited for. Default: as the client has it. */
  patience?: number;
  signal?: AbortSignal | undefined;
  /** For how many milliseconds the server may say nothing; 0: while it answers others. */
  timeout?: number;
  /** The answer takes its time, though nothing but what there is is asked for. */
  waits?: boolean;
}

/** @internal An answer, and what stands above it. */
export interface Told {
  answer: unknown;
  headers: Headers;
}
