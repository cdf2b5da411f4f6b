import { ServerError } from "./errors.js";

/** How many sessions are remembered. Whoever is forgotten learns what became of a session from its next result. */
export const mostEpochs = 10_000;

const header = "Coppice-Epoch";

/** What tells a session from all others. */
export function sessionKey(name: string, cwd: string | undefined, workspace: string | undefined, kernel: string | undefined): string {
  return JSON.stringify([name, cwd ?? null, workspace ?? "", kernel ?? ""]);
}

/** The workspace of a session that has this key; "": it is in none. */
export function workspaceOf(key: string): string {
  return String((JSON.parse(key) as unknown[])[2]);
}

/**
 * The epoch in which a client has seen each session of a fleet last: so that what is sent again
 * never begins twice, and code that counts on variables that are gone does not begin. It is that
 * of the client, and not of an object that stands for a session: many do for one.
 */
export class Epochs {
  #seen = new Map<string, number>();

  /** What a request says of it. */
  headers(session: string): Record<string, string> {
    const seen = this.#seen.get(session);
    return seen ? { [header]: String(seen) } : {};
  }

  /** What an answer says of it; only those of a fleet do. */
  heard(session: string, headers: Headers): void {
    const told = headers.get(header) ?? "";
    if (/^\d+$/.test(told)) this.saw(session, Number(told));
  }

  saw(session: string, epoch: number): void {
    if (!(epoch > 0)) return;
    this.#seen.delete(session); // the one that was used last stands last
    this.#seen.set(session, epoch);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > mostEpochs && oldest !== undefined) this.#seen.delete(oldest);
  }

  /** The session was ended by us: we know what is gone. */
  forget(session: string): void {
    this.#seen.delete(session);
  }

  /** Whether to send a request anew that has said this: who has not seen the session has lost nothing. Others are told, once. */
  goesOn(session: string, sent: Record<string, string>, e: unknown): boolean {
    if (!(e instanceof ServerError)) return false;
    this.saw(session, e.epoch);
    return !(header in sent) && !e.repeated && e.code === "epoch_needed" && e.epoch > 0;
  }
}
