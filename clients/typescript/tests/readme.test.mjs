// The lines of the README, as they stand: fifty conversations at once.
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import ts from "typescript";

import { serve } from "./server.mjs";

const readme = process.env.README ?? fileURLToPath(new URL("../../../README.md", import.meta.url));

test("fifty conversations by the lines of the README", async (t) => {
  const server = await serve();
  t.after(() => server.end());
  process.env.COPPICE_HOME = server.home;
  const block = /^```ts\n(.*?)^```$/ms.exec(await readFile(readme, "utf8"))[1];
  const { outputText, diagnostics } = ts.transpileModule(`${block}\nexport { python };\n`, {
    reportDiagnostics: true, compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  assert.deepEqual(diagnostics, []);
  const file = fileURLToPath(new URL(`readme-${process.pid}.mjs`, import.meta.url));
  await writeFile(file, outputText.replace('"@coppice/client/node"', '"../dist/node.js"'));
  t.after(() => rm(file, { force: true }));
  const told = [];
  t.mock.method(console, "log", (...texts) => told.push(texts));
  const { python } = await import(pathToFileURL(file));
  assert.deepEqual(told.map((texts) => texts.map((s) => s.trim())), [["(no output)", "42"]]);
  const all = await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    await python(`conversation ${i}`, `x = ${i}`);
    return (await python(`conversation ${i}`, "x * 2")).trim();
  }));
  assert.deepEqual(all, Array.from({ length: 50 }, (_, i) => String(2 * i)));
});
