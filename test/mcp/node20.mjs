// Lets the conformance suite run with node 20: it imports fs.globSync, which node 22 has,
// for a command that is not used here.
import * as fs from "node:fs";
import { register } from "node:module";

const hooks = `
const shim = "data:text/javascript," + encodeURIComponent(
  'export * from "node:fs"; export { default } from "node:fs"; export function globSync() { throw new Error("this needs node 22"); }');
export const resolve = (name, context, next) =>
  name === "fs" && context.parentURL?.includes("@modelcontextprotocol/conformance/") ? { url: shim, shortCircuit: true } : next(name, context);
`;
if (!fs.globSync) register("data:text/javascript," + encodeURIComponent(hooks));
