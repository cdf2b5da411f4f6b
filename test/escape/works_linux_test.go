package escape_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/environment"
	"github.com/coppice-run/coppice/messages"
)

// usual is what programs do, with the standard library.
const usual = `import asyncio, concurrent.futures, json, multiprocessing, os, shutil, socket, sqlite3, ssl, stat, subprocess, tarfile, tempfile, threading, zipfile
from multiprocessing import shared_memory

open('a', 'w').write('x')
os.chmod('a', 0o750)
assert stat.S_IMODE(os.stat('a').st_mode) == 0o750
os.utime('a', (7, 7))
shutil.copy('a', 'b'); shutil.copy2('a', 'c'); shutil.copytree('.', 'copy', ignore=shutil.ignore_patterns('copy'))
assert os.stat('c').st_mtime == 7
with tarfile.open('t.tar', 'w') as t: t.add('a')
with tarfile.open('t.tar') as t: t.extractall('untar', **({'filter': 'data'} if hasattr(tarfile, 'data_filter') else {}))
os.utime('a')
with zipfile.ZipFile('z.zip', 'w') as z: z.write('a')
with tempfile.TemporaryDirectory() as d: open(os.path.join(d, 'f'), 'w').write('x')
with tempfile.NamedTemporaryFile() as f: os.fchmod(f.fileno(), 0o600)
shutil.rmtree('copy'); shutil.rmtree('untar')

subprocess.run(['sh', '-c', 'echo y > d; chmod +x d; cp -p d e; touch e; cat e < /dev/null; echo z > /dev/stdout; rm d e'], check=True)
assert subprocess.run('echo $((6*7)) | cat', shell=True, capture_output=True, text=True).stdout == '42\n'
os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0))

context = multiprocessing.get_context('fork')
with context.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]
lock, queue, value = context.Lock(), context.Queue(), context.Value('i', 1)
child = context.Process(target=queue.put, args=(3,)); child.start(); assert queue.get() == 3; child.join()
with context.Manager() as manager: assert dict(manager.dict(a=1)) == {'a': 1}
memory = shared_memory.SharedMemory(create=True, size=100)
memory.buf[0] = 9
again = shared_memory.SharedMemory(name=memory.name); assert again.buf[0] == 9
again.close(); memory.close(); memory.unlink()
with concurrent.futures.ThreadPoolExecutor(4) as ex: assert list(ex.map(abs, range(-3, 0))) == [3, 2, 1]

async def main():
    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
    out, _ = await p.communicate()
    server = await asyncio.start_unix_server(lambda r, w: w.close(), 's.sock')
    r, w = await asyncio.open_unix_connection('s.sock'); assert await r.read() == b''; w.close()
    server.close()
    return out
assert await main() == b'hi\n'
db = sqlite3.connect('x.db'); db.execute('pragma journal_mode=wal'); db.execute('create table t (x)'); db.execute('insert into t values (1)'); db.commit()
assert db.execute('select x from t').fetchall() == [(1,)]; db.close()
ssl.create_default_context(); assert socket.socketpair()
import ctypes
libc = ctypes.CDLL(None); watch = libc.inotify_init1(0)
assert libc.inotify_add_watch(watch, b'.', 0x100) > 0; open('heard', 'w').close(); assert b'heard' in os.read(watch, 4096); os.close(watch)
for n in os.listdir('.'): os.remove(n)
print('good')`

// TestWhatMustStillWork runs what programs do on every rung.
func TestWhatMustStillWork(t *testing.T) {
	for _, rung := range rungs {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // it counts the processors' time
			dir := shared(t)
			h := host(t, python(t), rung, dir)
			r := call(t, h.Session("s", coppice.In(dir)), usual)
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			require.Contains(t, r.Text, "good")
		})
	}
}

// TestTheUsualLibraries loads and uses the libraries of data work on the rungs with a
// filter, in the environment of the tests.
func TestTheUsualLibraries(t *testing.T) {
	interpreter := os.Getenv("COPPICE_TEST_PYTHON")
	if interpreter == "" {
		interpreter = filepath.Join("..", "..", ".cache", "python", "bin", "python")
	}
	interpreter, err := filepath.Abs(interpreter)
	require.NoError(t, err)
	extras, err := filepath.Abs(filepath.Join("..", "..", ".cache", "python-extras"))
	require.NoError(t, err)
	extras, err = filepath.EvalSymlinks(extras)
	require.NoError(t, err)
	for _, rung := range []string{kernel.IsolationSeccomp, kernel.IsolationBubblewrap} {
		if why := environment.LacksRung(rung); why != nil {
			t.Logf("RUNG %s as uid %d: not here: %v", rung, os.Geteuid(), why)
			continue
		}
		t.Run(rung, func(t *testing.T) { //nolint:paralleltest // each takes both processors
			dir := shared(t)
			h := host(t, interpreter, rung, dir, func(o *coppice.Options) {
				o.Isolation.Read = []string{filepath.Dir(extras)}
			})
			r := call(t, h.Session("s", coppice.In(dir)), "import sys; sys.path.insert(0, "+quote(extras)+`)
import os; os.environ['MPLCONFIGDIR'] = os.getcwd()
import numpy as np, pandas as pd, matplotlib.pyplot as plt
a = np.random.default_rng(1).normal(size=(300, 300)); (a @ a).sum(); np.linalg.svd(a)
np.save('a.npy', a); m = np.load('a.npy', mmap_mode='r+'); m[0, 0] = 1; m.flush(); del m
d = pd.DataFrame({'x': [1, 2], 'y': ['a', 'b']}); d.to_csv('d.csv'); assert len(pd.read_csv('d.csv')) == 2
plt.plot([1, 2]); plt.savefig('p.png'); assert os.path.getsize('p.png') > 1000
import subprocess
print(subprocess.run([sys.executable, '-m', 'pip', '--version'], capture_output=True, text=True).stdout.split()[0])`)
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			require.Contains(t, r.Text, "pip")
		})
	}
}

func quote(s string) string { return "'" + s + "'" }

func call(t *testing.T, s *coppice.Session, code string) messages.Result {
	t.Helper()
	r, err := s.Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: code}}})
	require.NoError(t, err)
	return r
}
