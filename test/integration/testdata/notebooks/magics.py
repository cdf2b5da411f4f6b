# %%
%%capture held
print("captured")
# %%
held.stdout
# %%
%who_ls int
# %%
x = !echo one; echo two
x
# %%
!echo from a shell
# %%
%%writefile magic-file.txt
line one
# %%
open("magic-file.txt").read()
# %%
import os
os.remove("magic-file.txt")
# %%
%no_such_magic
# %%
%%bash
echo out
echo err >&2
# %%
%%html
<b>html</b>
# %%
%precision 3
3.14159265
