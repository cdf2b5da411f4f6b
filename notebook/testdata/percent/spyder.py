#!/usr/bin/env python
# -*- coding: utf-8 -*-
"""
Docstring
"""

# %% Imports
import numpy as np


# %% Run
def main():
    pass


# %%


# %% last
main()
