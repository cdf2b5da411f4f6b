import os
# %% Load data [markdown] tags=["x"] name="foo" .cls
# hello
#there

# %% {"a": 1, "tags": ["p"]}
x=1


# %%% sub title
y=2
#%%
z
# In[3]:
w
# <codecell>
v
# %% [md]
"""
a
# %% not a cell
b
"""
# %% [markdown]
r'''one line \alpha'''
# %%     two   words   k=1
q
  # %% indented title
  u = """
# %% no cell
"""
