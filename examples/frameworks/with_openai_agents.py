"""An agent of the OpenAI Agents SDK whose tool is a Python session of Coppice.

The session is the context of the run, which the model does not see.
"""

import asyncio
import os
import sys

import coppice
from agents import Agent, OpenAIChatCompletionsModel, RunContextWrapper, Runner, function_tool
from openai import AsyncOpenAI


@function_tool
async def python(context: RunContextWrapper[coppice.AsyncSession], code: str) -> str:
    """Run Python code. Variables stay until the conversation ends."""
    return (await context.context.run(code, timeout=60)).text


async def main(conversation: str, question: str) -> None:
    model = OpenAIChatCompletionsModel(model=os.environ.get("MODEL", "gpt-5"), openai_client=AsyncOpenAI())
    agent = Agent[coppice.AsyncSession](name="analyst", model=model, tools=[python])
    async with coppice.AsyncClient() as client, client.session(conversation) as session:
        end = await Runner.run(agent, question, context=session)
        print(end.final_output)


asyncio.run(main(*sys.argv[1:]))
