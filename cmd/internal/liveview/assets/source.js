// The code of executions, which lists do not have: asked for once each.
import { call } from "./api.js";

const MOST = 300;

/** @type {Map<string, Promise<string>>} */
const known = new Map();

/** sourceOf is the code of an execution, "" when the server has forgotten it. @param {string} id */
export function sourceOf(id) {
  let code = known.get(id);
  if (code) return code;
  code = call("GET", "/api/executions/" + encodeURIComponent(id)).then((x) => x.code ?? "", () => { known.delete(id); return ""; });
  known.set(id, code);
  if (known.size > MOST) known.delete(/** @type {string} */ (known.keys().next().value));
  return code;
}

/** forgetSources forgets all, for the next who signs in. */
export function forgetSources() { known.clear(); }
