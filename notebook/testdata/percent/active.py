# %% [md]
# # What runs where

# %% run_control={"frozen": true}
# # a frozen cell runs nowhere but in the notebook
# %matplotlib inline
# if x:
#     y = """
#     # %% no cell
#     """
#
# # the end

# %% tags=["active-ipynb"]
# %timeit f()

# %% active="ipynb,md" tags=["a"]
# !ls
# # a comment

# %% tags=["active-ipynb-py"]
# %time f()
x = 1

# %% tags=["active-py"]
# %cd ..
print("in scripts alone")

# %% active="py"
z = 2  # too

# %% active="md"
# neither here nor there

# %% [raw]
# raw

# %%
x
