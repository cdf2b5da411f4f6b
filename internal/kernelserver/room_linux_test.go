package kernelserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/internal/kernelserver"
	"github.com/coppice-run/coppice/internal/pyenv"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// exhaust is code that opens as many files as it may, and keeps them. What it prints first has the
// kernel open what it prints by, and connections that are there already are waited for.
const exhaust = `import os, resource, select, socket, time
print('begin', flush=True)
def waiting():
    for fd in os.listdir('/proc/self/fd'):
        try: s = socket.socket(fileno=os.dup(int(fd)))
        except OSError: continue
        with s:
            if s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) and select.select([s], [], [], 0)[0]: return True
while waiting(): time.sleep(.01)
own = len(os.listdir('/proc/self/fd'))
resource.setrlimit(resource.RLIMIT_NOFILE, (own + 10, own + 400))
all = []
` + fill + `
print(len(all) >= 8, os.strerror(why.errno))`

// fill opens those that it may still open.
const fill = `try:
    while True: all.append(open('/dev/null'))
except OSError as e: why = e`

// TestAKernelWithoutDescriptors lives on when one connects to it, however often one does, whether
// it was forked or not.
func TestAKernelWithoutDescriptors(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]kernelserver.Options{"forked": {Fork: true}, "spawned": {}, "Jupyter Server": {JupyterServer: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Runtime = realPython(t)
			if o.JupyterServer {
				var err error
				o.Runtime, err = pyenv.Resolve(t.Context(), pyenv.Options{Python: testpython.JupyterServerOnly(t)})
				require.NoError(t, err)
			}
			s := launch(t, o)
			connect := func() *jupyter.Client {
				c, err := jupyter.NewClient(jupyter.Options{URL: s.URL(), Token: s.Token(), SpoolDir: t.TempDir()})
				require.NoError(t, err)
				return c
			}
			c := connect()
			defer c.Close()
			prints := func(k *jupyter.Kernel, code string) (text string) {
				t.Helper()
				_, err := k.Execute(t.Context(), jupyter.ExecuteRequest{Code: code}, func(_ context.Context, e messages.Event) error {
					if out, ok := e.(messages.Stream); ok {
						text += out.Text
					} else {
						t.Errorf("%T: %+v", e, e)
					}
					return nil
				})
				require.NoError(t, err)
				return strings.TrimPrefix(text, "begin\n")
			}
			k, err := c.Start(t.Context(), jupyter.StartRequest{})
			require.NoError(t, err)
			defer k.Detach()
			require.Equal(t, "True Too many open files\n", prints(k, exhaust))
			visit := func() {
				c := connect()
				defer c.Close()
				other, err := c.Adopt(t.Context(), k.ID(), nil)
				require.NoError(t, err)
				defer other.Detach()
				require.Equal(t, "2\n", prints(other, "print(1 + 1)"))
			}
			room := func() (most int) {
				_, err := fmt.Sscan(prints(k, "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - own)"), &most)
				require.NoError(t, err)
				return most
			}
			for range 12 { // each takes several descriptors, and gives them back
				visit()
			}
			require.Greater(t, room(), 10)
			require.Less(t, room(), 10+6*12, "no more than those of a few at a time")
			for range 4 {
				before := room()
				require.Empty(t, prints(k, fill)) // with what was given back
				visit()
				require.Greater(t, room(), before)
			}
		})
	}
}
