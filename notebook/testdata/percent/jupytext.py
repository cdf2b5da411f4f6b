# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Title
#
# text %% x
#   indented
# #hash
# end

# %% tags=["a", "b"] name="n1"
# %matplotlib inline
# !ls -l
# x = !ls
print(1)  # %% inline
# %timeit -n 1 \
#   foo()

# %% magic_args="-x" language="bash"
# echo hi
# # c

# %% language="html"
# <b>

# %%
# %%time
x=1

# %% [raw]
# raw
# lines

# %%
s='''
# %% in string
!ls
'''
# # ls is here
# cd foo

# %%

# %% [markdown]
#

# %% My title deep={"a": [1, null, "k=v"]} slideshow={"slide_type": "slide"}
def f():
    # %time
    pass

# %%
# x?

# %%
# comment


1

# %% tags=["parameters"]
a = 1
