// Runs a cell, reads its result and follows it, with the types that openapi-typescript
// makes and openapi-fetch.
//
//	node client.mjs URL TOKEN
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const [url, token] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

const begun = await client.POST("/api/executions", {
  body: {
    session: "typescript-client",
    cells: [{ code: "import time\nfor i in range(3):\n    print('step', i, flush=True)\n    time.sleep(.2)" }, { code: "6 * 7" }],
  },
});
assert(begun.data, JSON.stringify(begun.error));

const path = { id: begun.data.id };
const stream = await client.GET("/api/executions/{id}/events", { params: { path }, parseAs: "stream" });
assert.equal(stream.response.status, 200);
assert(stream.data);
const seen: components["schemas"]["Event"][] = [];
const decoder = new TextDecoder();
let rest = "";
for await (const part of stream.data as ReadableStream<Uint8Array>) {
  const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) if (line.startsWith("data: ")) seen.push(JSON.parse(line.slice("data: ".length)));
}
seen.forEach((e, i) => assert.equal(e.seq, i + 1));
assert.equal(seen.at(-1)?.type, "final");
const printed = seen.map((e) => (e.type === "stdout" ? (e as { text?: string }).text : "")).join("");
assert.equal(printed, "step 0\nstep 1\nstep 2\n");

const ended = await client.GET("/api/executions/{id}", { params: { path, query: { wait: 60 } } });
const result: components["schemas"]["Result"] | undefined = ended.data?.result;
assert(result, JSON.stringify(ended.error));
assert.equal(result.outcome, "ok");
assert.equal(result.cells[1]?.output, "42");
assert.equal(result.session, "typescript-client");
console.log("ok  the client of openapi-typescript and openapi-fetch runs a cell, follows it and reads its result");
