// An agent of Vercel's AI SDK whose tool is a Python session of Coppice. The session belongs
// to the conversation; the model does not see it.
import { find } from "@coppice/client/node";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ToolLoopAgent, isStepCount, tool } from "ai";
import { z } from "zod";

const [conversation, question] = process.argv.slice(2);
const client = await find();
const session = client.session(conversation);

const provider = createOpenAICompatible({
  name: "openai",
  baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: process.env.OPENAI_API_KEY,
});

const agent = new ToolLoopAgent({
  model: provider(process.env.MODEL ?? "gpt-5"),
  stopWhen: isStepCount(20),
  tools: {
    python: tool({
      description: "Run Python code. Variables stay until the conversation ends.",
      inputSchema: z.object({ code: z.string() }),
      execute: async ({ code }, { abortSignal }) => (await session.run(code, { timeout: 60, signal: abortSignal })).text,
    }),
  },
});

try {
  const { text } = await agent.generate({ prompt: question });
  console.log(text);
} finally {
  await session.close();
}
