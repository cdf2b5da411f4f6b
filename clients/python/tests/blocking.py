"""An AsyncClient for tests that are written for the other one."""

import inspect

import coppice

ASYNC = (coppice.AsyncFiles, coppice.AsyncProcess, coppice.AsyncSession, coppice.AsyncWorkspace)


class Blocking:
    """An AsyncClient, driven as the other one is: so one table is for both."""

    def __init__(self, client, loop):
        self._client, self._loop = client, loop

    def __getattr__(self, name):
        it = getattr(self._client, name)
        if not callable(it):
            return self._plain(it)

        def call(*args, **kwargs):
            got = it(*args, **kwargs)
            if inspect.isasyncgen(got):
                return self._all(got)
            return self._plain(self._loop.run_until_complete(got) if inspect.isawaitable(got) else got)

        return call

    def _plain(self, got):
        if isinstance(got, list):
            return [self._plain(one) for one in got]
        return Blocking(got, self._loop) if isinstance(got, ASYNC) else got

    def _all(self, events):
        try:
            while True:
                try:
                    yield self._loop.run_until_complete(events.__anext__())
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(events.aclose())
