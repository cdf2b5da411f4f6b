"""A CodeAgent of smolagents whose code runs in a Python session of Coppice.

As it comes, smolagents walks the code's syntax tree inside the agent's own process, and
knows a part of the language. Here it is Python, in a process that can be limited, that a
loop cannot hold up, and whose variables outlive the agent.
"""

import json
import os
import sys

import coppice
from smolagents import CodeAgent, OpenAIModel
from smolagents.local_python_executor import CodeOutput, PythonExecutor

FINAL = """
class FinalAnswer(BaseException): pass
def final_answer(answer):
    import json
    raise FinalAnswer(json.dumps(answer, default=str))
"""


class Session(PythonExecutor):
    """Runs the agent's code in a session."""

    def __init__(self, session: coppice.Session) -> None:
        self._session = session

    def send_tools(self, tools) -> None:
        if other := tools.keys() - {"final_answer"}:
            raise ValueError(f"these tools run in the agent's process, which code in a session cannot call: {sorted(other)}")
        self._session.run(FINAL).raise_for_outcome()

    def send_variables(self, variables) -> None:
        lines = [f"{name} = json.loads({json.dumps(json.dumps(value))})" for name, value in variables.items()]
        self._session.run("\n".join(["import json", *lines])).raise_for_outcome()

    def __call__(self, code_action: str) -> CodeOutput:
        result = self._session.run(code_action, timeout=60)
        cell = result.cells[-1] if result.cells else None
        if cell and cell.error_name == "FinalAnswer":
            return CodeOutput(output=json.loads(cell.error_message), logs=cell.output, is_final_answer=True)
        if not result.ok:
            raise RuntimeError(result.text)
        return CodeOutput(output=None, logs=result.text, is_final_answer=False)


conversation, question = sys.argv[1:]
with coppice.Client() as client, client.session(conversation) as session:
    model = OpenAIModel(model_id=os.environ.get("MODEL", "gpt-5"), api_base=os.environ.get("OPENAI_BASE_URL"))
    agent = CodeAgent(tools=[], model=model, executor=Session(session), verbosity_level=0)
    print(agent.run(question))
