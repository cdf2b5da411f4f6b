
# %% [markdown]
# ```mermaid
# %% a comment of the diagram
# graph LR
# ```
# below

# %% [raw]
# ~~~~ text
# ~~~
# %% inside
# ~~~~

# %% [markdown]
# ```
# never closed
# %% so this is a cell
1

# %% active=""
# raw as it is
# %cd x

# %% run_control={"frozen": true} tags=["t"]
r"""
# %% quoted
"""

# %% [raw] active="py"
# said to be raw
