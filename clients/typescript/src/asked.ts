import type { ServerError } from "./errors.js";
import type { Event, InputRequest, InputStatus } from "./types.js";
import { gone } from "./wire.js";

/**
 * The executions that a client follows, with the questions of each that it has answered. A server
 * that takes over what runs asks again what the one before it has asked: who has answered is not
 * asked twice.
 */
export class Asked {
  #of = new Map<string, Set<string>>();

  /** The events of an execution are read from now on. */
  follow(execution: string): void {
    this.#of.set(execution, new Set());
  }

  /** They are not read any more. */
  leave(execution: string): void {
    this.#of.delete(execution);
  }

  /** An answer was given; the status says what became of it. */
  answered(question: InputRequest, status: InputStatus): void {
    if (status === "accepted" || status === "already answered") this.#of.get(question.execution)?.add(question.id);
  }

  /** Whether an event asks what was answered. */
  again(event: Event): boolean {
    return event.type === "input_request" && (this.#of.get(event.execution)?.has(event.id) ?? false);
  }

  /** What it means that an answer is refused: a server that does not know an execution whose events are read was started again. */
  refused(question: InputRequest, e: ServerError): ServerError {
    return e.status === 404 && e.code === "not_found" && this.#of.has(question.execution) ? gone() : e;
  }
}

/** Reads events while questions of theirs are being asked: whoever is asked may take long, and the execution may end meanwhile. */
export class Asking {
  #coming: Promise<IteratorResult<Event, void>> | undefined;
  #asked = new Map<string, Promise<void>>();
  #failed: { error: unknown } | undefined;
  #noticed: (error: unknown) => void = () => undefined;

  constructor(private readonly events: AsyncGenerator<Event, void, undefined>, private readonly answer: (question: InputRequest) => Promise<void>) {}

  /** Begins to ask. One that is being asked is not begun twice. */
  ask(question: InputRequest): void {
    if (this.#asked.has(question.id)) return;
    const asked = this.answer(question).then(
      () => void this.#asked.delete(question.id),
      (error: unknown) => {
        this.#failed ??= { error };
        this.#noticed(error);
      },
    );
    this.#asked.set(question.id, asked);
  }

  /** The next event; undefined: there is none. Throws what asking has thrown. */
  async next(): Promise<Event | undefined> {
    if (this.#failed) throw this.#failed.error;
    const failed = new Promise<never>((_, reject) => (this.#noticed = reject));
    this.#coming ??= this.events.next();
    const { value } = await Promise.race([this.#coming, failed]);
    this.#coming = undefined;
    return value ?? undefined;
  }
}
