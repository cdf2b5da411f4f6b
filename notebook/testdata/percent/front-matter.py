# ---
# title: Doc
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
#   kernelspec:
#     display_name: 'Python 3 (x: y)'
#     language: python
#     name: python3
# author: me
# ---

# %%
1
