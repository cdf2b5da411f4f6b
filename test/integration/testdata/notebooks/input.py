# %%
input("name? ")
# %%
import getpass
getpass.getpass("secret? ")
# %%
"goes on"
