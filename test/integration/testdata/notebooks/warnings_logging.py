# %%
import logging, warnings
warnings.warn("careful")
# %%
warnings.simplefilter("always")
def old():
    warnings.warn("old", DeprecationWarning, stacklevel=2)
old()
# %%
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logging.info("told")
logging.error("wrong")
# %%
import traceback
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc()
