# %% [markdown]
# # Tags
# %% tags=["raises-exception"]
raise RuntimeError("expected")
# %% tags=["skip-execution"]
print("never")
# %%

# %%
print("after")
# %% [raw]
raw text
