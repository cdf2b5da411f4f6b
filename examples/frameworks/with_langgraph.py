"""An agent of LangGraph whose tool is a Python session of Coppice.

The thread of the graph names the session, so each conversation has variables of its own,
and a checkpoint of the graph finds them again.
"""

import os
import sys

import coppice
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

client = coppice.Client()


@tool
def python(code: str, config: RunnableConfig) -> str:
    """Run Python code. Variables stay until the conversation ends."""
    return client.session(config["configurable"]["thread_id"]).run(code, timeout=60).text


model = ChatOpenAI(model=os.environ.get("MODEL", "gpt-5")).bind_tools([python])


def think(state: MessagesState) -> dict:
    return {"messages": [model.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("think", think)
graph.add_node("tools", ToolNode([python]))
graph.add_edge(START, "think")
graph.add_conditional_edges("think", tools_condition)
graph.add_edge("tools", "think")
agent = graph.compile()

conversation, question = sys.argv[1:]
with client.session(conversation):
    end = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": conversation}})
    print(end["messages"][-1].content)
