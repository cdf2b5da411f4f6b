"""An agent of Pydantic AI whose tool is a Python session of Coppice.

The session is what the run depends on; the model does not see it.
"""

import asyncio
import os
import sys

import coppice
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(OpenAIChatModel(os.environ.get("MODEL", "gpt-5")), deps_type=coppice.AsyncSession)


@agent.tool
async def python(context: RunContext[coppice.AsyncSession], code: str) -> str:
    """Run Python code. Variables stay until the conversation ends."""
    return (await context.deps.run(code, timeout=60)).text


async def main(conversation: str, question: str) -> None:
    async with coppice.AsyncClient() as client, client.session(conversation) as session:
        end = await agent.run(question, deps=session)
        print(end.output)


asyncio.run(main(*sys.argv[1:]))
