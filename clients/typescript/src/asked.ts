import type { ServerError } from "./errors.js";
import type { Event, InputRequest, InputStatus } from "./types.js";
import { gone } from "./wire.js";

/** The newest question of an execution, until the code shows that it has gone on. */
interface Newest {
  question?: InputRequest | undefined;
  answered?: boolean;
}

/**
 * The executions that a client follows, with the newest question of each. A server that takes over
 * what runs may ask again what the one before it has asked: who has answered is not asked twice. Of
 * an earlier version, later questions may have the ids of earlier ones; so what comes after something
 * else of the code is a new question.
 */
export class Asked {
  #of = new Map<string, Newest>();

  /** The events of an execution are read from now on. */
  follow(execution: string): void {
    this.#of.set(execution, {});
  }

  /** They are not read any more. */
  leave(execution: string): void {
    this.#of.delete(execution);
  }

  /** An answer was given; the status says what became of it. */
  answered(question: InputRequest, status: InputStatus): void {
    const newest = this.#of.get(question.execution);
    if (newest?.question?.id === question.id) newest.answered = status === "accepted" || status === "already answered";
  }

  /** Whether an event of an execution that is followed asks what was answered. */
  again(event: Event): boolean {
    const newest = this.#of.get(event.execution);
    if (!newest || event.type === "status") return false;
    const { question: before, answered } = newest;
    if (event.type === "input_request" && before && answered && keyOf(before) === keyOf(event)) return true;
    newest.question = event.type === "input_request" ? event : undefined;
    newest.answered = false;
    return false;
  }

  /** What it means that an answer is refused: a server that does not know an execution whose events are read was started again. */
  refused(question: InputRequest, e: ServerError): ServerError {
    return e.status === 404 && e.code === "not_found" && this.#of.has(question.execution) ? gone() : e;
  }
}

/** What tells a question from others. */
function keyOf(question: InputRequest): string {
  return JSON.stringify([question.id, question.prompt]);
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
    const key = keyOf(question);
    if (this.#asked.has(key)) return;
    const asked = this.answer(question).then(
      () => void this.#asked.delete(key),
      (error: unknown) => {
        this.#failed ??= { error };
        this.#noticed(error);
      },
    );
    this.#asked.set(key, asked);
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
