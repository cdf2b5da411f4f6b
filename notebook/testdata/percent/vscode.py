#%% [markdown]
# Heading

#%%
print("a")

#%% [markdown]
# List
# * a
#
# * b
#%%
1
