# %%
class Broken:
    def _repr_html_(self):
        raise RuntimeError("no html")

    def __repr__(self):
        return "<Broken>"

Broken()
