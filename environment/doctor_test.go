package environment

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/machine"
)

// diagnose runs the quick checks and returns what one of them found.
func diagnose(t *testing.T, s Settings, check string) []Finding {
	t.Helper()
	s.Home = t.TempDir()
	d, err := Doctor(t.Context(), DoctorOptions{Settings: s, Quick: true})
	require.NoError(t, err)
	var found []Finding
	for _, f := range d.Findings {
		if f.Check == check {
			found = append(found, f)
		}
	}
	return found
}

// TestDoctorExternal asks servers that are well and servers that are not.
func TestDoctorExternal(t *testing.T) {
	const token = "the-token-of-the-server"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "token "+token {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte(`{"default":"python3","kernelspecs":{}}`))
	}))
	t.Cleanup(server.Close)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(page.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for _, tt := range []struct {
		name, url, token, detail, mend string
		state                          FindingState
	}{
		{"well", server.URL, token, "takes the token", "", FindingOK},
		{"no token", server.URL, "", "requires authentication. Set PI_PYTHON_GATEWAY_TOKEN.", "export COPPICE_PYTHON_GATEWAY_TOKEN=", FindingFailed},
		{"wrong token", server.URL, "guess-guess-guess", "requires authentication. Set PI_PYTHON_GATEWAY_TOKEN.", "export COPPICE_PYTHON_GATEWAY_TOKEN=", FindingFailed},
		{"unreachable", closed.URL, token, "is not reachable: ", "start the server", FindingFailed},
		{"no Jupyter server", page.URL, token, "external gateway at ", "name a Jupyter server", FindingFailed},
		{"no URL", "steam://engine", token, "steam", "export COPPICE_PYTHON_GATEWAY_URL=", FindingFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := []string{"PATH=" + os.Getenv("PATH"), "COPPICE_PYTHON_GATEWAY_URL=" + tt.url, "COPPICE_PYTHON_GATEWAY_TOKEN=" + tt.token}
			found := diagnose(t, Settings{Env: env}, checkExternal)
			require.Len(t, found, 1)
			require.Equal(t, tt.state, found[0].State, found)
			require.Contains(t, found[0].Detail, tt.detail)
			require.Contains(t, found[0].Mend, tt.mend)
			if tt.token != "" {
				require.NotContains(t, found[0].Detail+found[0].Mend, tt.token)
			}
		})
	}
}

// TestDoctorNamesTheVariableThatIsSet has what is said of a variable name it as the user has, and an
// address that cannot be used left out of what is looked at after that.
func TestDoctorNamesTheVariableThatIsSet(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"COPPICE_", "PI_"} {
		x := examination{d: DoctorOptions{Settings: Settings{Env: []string{
			prefix + "PY=bash", prefix + "PYTHON_IPC_TRACE=1", prefix + "PYTHON_GATEWAY_URL=steam://engine",
		}}}}
		x.settings()
		mends := map[string]string{}
		for _, f := range x.found {
			mends[f.Mend] = f.Detail
		}
		require.Len(t, mends, 3)
		require.Contains(t, mends, "export "+prefix+"PYTHON_GATEWAY_URL=http://127.0.0.1:8888")
		require.Contains(t, mends["unset "+prefix+"PY"], prefix+"PY=bash hides the tool python")
		require.Contains(t, mends["unset "+prefix+"PYTHON_IPC_TRACE"], prefix+"PYTHON_IPC_TRACE is set")
		require.Equal(t, []string{prefix + "PY=bash", prefix + "PYTHON_IPC_TRACE=1"}, x.d.Env)
	}
}

// TestDoctorEnds ends with its context, and says what it found until then.
func TestDoctorEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	d, err := Doctor(ctx, DoctorOptions{Settings: Settings{Home: t.TempDir()}, Progress: func(check string) {
		if check == checkManaged {
			cancel(os.ErrDeadlineExceeded)
		}
	}})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NotEmpty(t, d.Findings)
	_, err = Doctor(t.Context(), DoctorOptions{Settings: Settings{Brand: "a/b"}})
	require.ErrorIs(t, err, ErrOptions)
}

// TestLimitFindings judges what a machine allows. A zero is not known.
func TestLimitFindings(t *testing.T) {
	t.Parallel()
	plenty := machine.Limits{OpenFiles: 65536, Processes: 30000, PIDs: 32768, PIDsUsed: 300, Memory: 8 << 30, Available: 4 << 30, Temp: 10 << 30}
	for _, tt := range []struct {
		name   string
		change func(*machine.Limits)
		want   FindingState
	}{
		{"plenty", func(*machine.Limits) {}, ""},
		{"nothing known", func(l *machine.Limits) { *l = machine.Limits{} }, ""},
		{"few files", func(l *machine.Limits) { l.OpenFiles = 1024 }, FindingWarning},
		{"very few files", func(l *machine.Limits) { l.OpenFiles = 256 }, FindingFailed},
		{"few processes", func(l *machine.Limits) { l.Processes = 100 }, FindingWarning},
		{"control group full", func(l *machine.Limits) { l.PIDs = 310 }, FindingFailed},
		{"more than there may be", func(l *machine.Limits) { l.PIDsUsed = 40000 }, FindingFailed},
		{"little memory", func(l *machine.Limits) { l.Available = 200 << 20 }, FindingWarning},
		{"no memory", func(l *machine.Limits) { l.Available = 1 }, FindingFailed},
		{"no room", func(l *machine.Limits) { l.Temp = 1 << 20 }, FindingFailed},
	} {
		l := plenty
		tt.change(&l)
		found := limitFindings(l)
		if tt.want == "" {
			require.Empty(t, found, tt.name)
			continue
		}
		require.Len(t, found, 1, tt.name)
		require.Equal(t, tt.want, found[0].State, tt.name)
		require.NotEmpty(t, found[0].Mend, tt.name)
	}
}

// TestEscapeFinding judges attempts: one that was promised to fail and did not is
// a failure.
func TestEscapeFinding(t *testing.T) {
	t.Parallel()
	held := []Escape{{Attempt: "write a file outside", Prevented: true, Promised: true}, {Attempt: "use UDP", Prevented: false}}
	require.Equal(t, FindingOK, escapeFinding(checkIsolation, "landlock", held).State)
	require.Equal(t, FindingWarning, escapeFinding(checkIsolation, "privileges", held).State)
	f := escapeFinding(checkIsolation, "landlock", append(held, Escape{Attempt: "read a secret", Promised: true, Detail: "secret"}))
	require.Equal(t, FindingFailed, f.State)
	require.Contains(t, f.Detail, "code could read a secret (secret)")
}

// TestMendStep names the environment, not the interpreter in it.
func TestMendStep(t *testing.T) {
	t.Parallel()
	require.Equal(t, filepath.FromSlash("/p/.venv"), venvOfStep("/p/.venv/bin/python"))
	require.Equal(t, "/p/.venv", venvOfStep("/p/.venv"))
}
