# Puts off what Jupyter's servers import and hardly ever use.
import importlib
import importlib.util
import sys
import types

# jsonschema imports it for two formats, IRIs, that no schema of Jupyter's has. It builds
# forty parsers while it is imported: more than a second of processor, three quarters of
# what a gateway takes until it answers.
SYNTAX = "rfc3987_syntax"


class Late(types.ModuleType):
    """Stands for a package until something of it is used."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "is_valid_syntax":  # what jsonschema imports from it
            return lambda term, value: real(self).is_valid_syntax(term, value)
        return getattr(real(self), name)


def real(stand_in):
    """Returns the package itself, which it imports the first time."""
    name = stand_in.__name__
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]
    return importlib.import_module(name)


def put_off():
    """Is called before Jupyter is imported. Where the package is missing, nothing is done."""
    if SYNTAX in sys.modules:
        return
    spec = importlib.util.find_spec(SYNTAX)
    if spec is None:
        return
    stand_in = Late(SYNTAX)
    stand_in.__spec__, stand_in.__path__ = spec, spec.submodule_search_locations
    sys.modules[SYNTAX] = stand_in
