import type { Result } from "./types.js";

/** The base of all errors of this package. */
export class CoppiceError extends Error {
  override name = "CoppiceError";
}

/** No server runs for this user, or what tells of it cannot be trusted: a record, or a certificate. */
export class NoServer extends CoppiceError {
  override name = "NoServer";
}

/**
 * The server could not be reached, or said nothing, for as long as patience lasts. Code that it had been
 * given may run on, and may have run.
 */
export class ConnectionLost extends CoppiceError {
  override name = "ConnectionLost";
}

/** The server says no. */
export class ServerError extends CoppiceError {
  override name = "ServerError";

  /**
   * @param status the HTTP status
   * @param code for programs: not_found, bad_request, overloaded, …; lost: what became of the code is not known, and it was not sent a second time
   * @param hint the next step, or one word that says what is in the way; "" when there is nothing to say
   * @param epoch the one that a session of a fleet is in, with epoch_gone and epoch_needed; else 0
   */
  constructor(readonly status: number, readonly code: string, message: string, readonly hint = "", readonly epoch = 0) {
    // One word is for programs, and no next step: busy, off, lossy, exists, threads.
    super(hint.includes(" ") ? `${message}; ${hint}` : message);
  }

  /** Whether the request had been sent before, with nothing known of that. */
  repeated = false;
}

/** A call did not end well; check throws it. */
export class ExecutionFailed extends CoppiceError {
  override name = "ExecutionFailed";

  constructor(readonly result: Result) {
    super(result.text || result.outcome);
  }
}

/** Returns a result that is ok, and throws ExecutionFailed otherwise. */
export function check(result: Result): Result {
  if (result.outcome !== "ok") throw new ExecutionFailed(result);
  return result;
}
