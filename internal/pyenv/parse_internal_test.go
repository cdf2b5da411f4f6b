package pyenv

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParseProbe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		out  string
		want probed
		ok   bool
	}{
		{out: "coppice-python 3 11 7 /usr/bin/python3\n", want: probed{3, 11, 7, "/usr/bin/python3"}, ok: true},
		{out: "noise\ncoppice-python 2 7 18 C:\\Program Files\\python.exe\r\nmore", want: probed{2, 7, 18, `C:\Program Files\python.exe`}, ok: true},
		{out: "coppice-python 3 11 7 \n", want: probed{3, 11, 7, ""}, ok: true},
		{out: ""},
		{out: "coppice-python 3 11\n"},
		{out: "coppice-python 3 x 7 /p\n"},
		{out: "coppice-python 3 -1 7 /p\n"},
	}
	for _, tt := range tests {
		got, ok := parseProbe(tt.out)
		require.Equal(t, tt.ok, ok, tt.out)
		require.Equal(t, tt.want, got)
	}
}

func FuzzParseProbe(f *testing.F) {
	f.Add("coppice-python 3 11 7 /usr/bin/python3\n")
	f.Fuzz(func(t *testing.T, out string) {
		if p, ok := parseProbe(out); ok {
			again, ok := parseProbe("coppice-python " + strings.ReplaceAll(p.version(), ".", " ") + " " + p.executable + "\n")
			require.True(t, ok)
			require.Equal(t, p, again)
		}
	})
}

func TestJupyterServerStandsIn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, out string
		missing   []string
		only      bool
	}{
		{"both", "coppice-package kernel_gateway yes 3.0.1\ncoppice-package jupyter_server yes 2.21.1\n", nil, false},
		{"the server alone", "coppice-package kernel_gateway no ?\ncoppice-package jupyter_server yes 2.0.0\n", nil, true},
		{"an old one", "coppice-package jupyter_server yes 1.24\n", []string{"jupyter_kernel_gateway"}, true},
		{"one of no known version", "coppice-package jupyter_server yes ?\n", []string{"jupyter_kernel_gateway"}, true},
		{"neither", "", []string{"jupyter_kernel_gateway", "jupyter_server"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := parsePackages(tt.out + "coppice-package ipykernel yes 7\n")
			require.Equal(t, tt.missing, missingOf(got))
			require.Equal(t, tt.only, JupyterServerOnly(got))
		})
	}
}

func FuzzParsePackages(f *testing.F) {
	f.Add("coppice-package ipykernel yes 7.4.0\ncoppice-package kernel_gateway no ?\n")
	f.Fuzz(func(t *testing.T, out string) {
		got := parsePackages(out)
		require.Len(t, got, len(needed))
		for i, p := range got {
			require.Equal(t, needed[i].Module, p.Module)
			require.True(t, p.Found || p.Version == "")
		}
	})
}

func TestPipCounter(t *testing.T) {
	t.Parallel()
	out := `Looking in links: /wheels
Ignoring anyio: markers 'python_full_version < "3.10"' don't match your environment
Collecting argon2-cffi==25.1.0 (from -r requirements.txt (line 7))
  Using cached argon2_cffi-25.1.0-py3-none-any.whl (14 kB)
Requirement already satisfied: attrs==26.1.0 in ./lib (from -r requirements.txt (line 9))
Processing /wheels/zipp-3.23.1-py3-none-any.whl (from -r requirements.txt (line 11))
Installing collected packages: argon2-cffi, zipp
Successfully installed argon2-cffi-25.1.0
`
	c := pipCounter{stage: Stage{Name: StageCollecting, Total: 4}}
	var got []Stage
	for l := range strings.Lines(out) {
		if s, news := c.line(strings.TrimSuffix(l, "\n")); news {
			got = append(got, s)
		}
	}
	require.Empty(t, cmp.Diff([]Stage{
		{Name: StageCollecting, Detail: "argon2-cffi==25.1.0", Done: 1, Total: 3},
		{Name: StageCollecting, Detail: "attrs==26.1.0", Done: 2, Total: 3},
		{Name: StageCollecting, Detail: "zipp-3.23.1-py3-none-any.whl", Done: 3, Total: 3},
		{Name: StageInstalling, Detail: "2 packages"},
	}, got))
}

func FuzzPipCounter(f *testing.F) {
	f.Add("Collecting a==1\nIgnoring b: markers 'x' don't match\nInstalling collected packages: a, b\n")
	f.Fuzz(func(t *testing.T, out string) {
		c := pipCounter{stage: Stage{Name: StageCollecting}}
		for l := range strings.Lines(out) {
			s, news := c.line(l)
			require.True(t, !news || s.Done <= s.Total)
		}
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	base := Runtime{Path: "/usr/bin/python3", Version: "3.11.2"}
	ended := errors.New("exited with code 1")
	tests := []struct {
		name  string
		stage StageName
		tail  string
		want  string
	}{
		{
			name: "Debian without python3-venv", stage: StageCreating,
			tail: "The virtual environment was not created successfully because ensurepip is not\navailable.  On Debian/Ubuntu systems, you need to install the python3-venv\npackage using the following command.\n\n    apt install python3.11-venv\n\nFailing command: /x/bin/python3",
			want: "make a virtual environment with Python 3.11.2 at /usr/bin/python3: this Python cannot make virtual environments with pip; " +
				"install its venv package (on Debian and Ubuntu: apt install python3-venv), or name another interpreter with --python (its last word: Failing command: /x/bin/python3)",
		},
		{
			name: "no network", stage: StageInstalling,
			tail: "WARNING: Retrying after connection broken by 'NewConnectionError' for https://user:secret@index.example/simple/anyio\nERROR: No matching distribution found for anyio==4.16.0\n",
			want: "install the Python packages: the packages are not available: no package index was reached, or it has none of them for this system; " +
				"check the network and pip's index and proxy settings (pip config list), and run coppice setup again (its last word: ERROR: No matching distribution found for anyio==4.16.0)",
		},
		{
			name: "wrong hash", stage: StageInstalling,
			tail: "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n    anyio: Expected sha256 1",
			want: "install the Python packages: the package index gave a file that is not the one that was pinned; " +
				"check which index pip uses (pip config list), and do not install from it by other means (its last word: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.)",
		},
		{
			name: "disk full", stage: StageInstalling, tail: "OSError: [Errno 28] No space left on device",
			want: "install the Python packages: the disk is full; free some space and run coppice setup again (its last word: OSError: [Errno 28] No space left on device)",
		},
		{
			name: "no idea", stage: StageInstalling,
			want: "install the Python packages: the command exited with code 1; run coppice setup again",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tail []string
			if tt.tail != "" {
				tail = strings.Split(tt.tail, "\n")
			}
			err := explain(tt.stage, base, ended, tail)
			require.EqualError(t, err, tt.want)
			require.ErrorIs(t, err, ended)
			var e *SetupError
			require.ErrorAs(t, err, &e)
			require.NotContains(t, strings.Join(e.Tail, "\n"), "secret")
		})
	}
}

// The file must hold for every Python and system that is served, pin and hash
// all of it, and leave the choice of the index to the user.
func TestRequirements(t *testing.T) {
	t.Parallel()
	require.NotContains(t, requirements, "://")
	require.NotContains(t, requirements, "--index")
	require.NotContains(t, requirements, "--find-links")
	var entry string
	hashes := map[string]int{}
	for l := range strings.Lines(requirements) {
		l = strings.TrimSuffix(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(l), `\`)), " ")
		if hash, ok := strings.CutPrefix(l, "--hash=sha256:"); ok {
			require.Len(t, hash, 64)
			hashes[entry]++
			continue
		}
		entry = l
		require.Contains(t, entry, "==")
		hashes[entry] = 0
	}
	for e, n := range hashes {
		require.NotZero(t, n, "no hash for %s", e)
	}
	require.Equal(t, len(hashes), countRequirements(requirements))
	for _, p := range needed {
		require.Contains(t, requirements, strings.ReplaceAll(p.Dist, "_", "-")+"==")
	}
	require.Contains(t, requirements, "python_full_version < '3.10'", "made for the oldest Python that is served")
}

// TestPinned compares versions by their numbers.
func TestPinned(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3.0.1", Pinned("jupyter_kernel_gateway"))
	require.Equal(t, "6.31.0", Pinned("ipykernel"))
	require.Empty(t, Pinned("no-such-package"))
	require.True(t, Older("2.9", "2.10"))
	require.True(t, Older("6", "6.0.1"))
	require.False(t, Older("7.0.0rc1", "7"))
	require.False(t, Older("3.0.1", "3.0.1"))
	require.Equal(t, "3", Major("3.0.1"))
}
