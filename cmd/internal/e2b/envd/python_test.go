package envd

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/workspace"
	"github.com/coppice-run/coppice/workspace/procs"
)

// TestLeading changes what finds the interpreter, and nothing that a client is told.
func TestLeading(t *testing.T) {
	t.Parallel()
	p := Python{Folder: "/venv/bin", Venv: "/venv", Path: "/usr/bin"}
	both := map[string]string{"PATH": "/venv/bin:/usr/bin", "VIRTUAL_ENV": "/venv"}
	led := map[string]string{"COPPICE_PATH": "/venv/bin", "VIRTUAL_ENV": "/venv"}
	for name, tc := range map[string]struct {
		p        Python
		args     []string
		terminal bool
		env      map[string]string
		sandbox  map[string]string
		wantArgs []string // nil: as they were
		wantEnv  map[string]string
	}{
		"not known":              {args: []string{bash, "-l", "-c", "x"}, wantEnv: map[string]string{}},
		"not known, a program":   {args: []string{"x"}, env: map[string]string{"PATH": "/a"}, wantEnv: map[string]string{"PATH": "/a"}},
		"a command":              {p: p, args: []string{bash, "-l", "-c", "x"}, wantArgs: []string{bash, "-l", "-c", setFirst + "x"}, wantEnv: led},
		"a command with a PATH":  {p: p, args: []string{bash, "-l", "-c", "x"}, env: map[string]string{"PATH": "/a"}, wantArgs: []string{bash, "-l", "-c", setAll + "x"}, wantEnv: map[string]string{"PATH": "/a", "COPPICE_PATH": "/a"}},
		"in a sandbox with PATH": {p: p, args: []string{bash, "-l", "-c", "x"}, sandbox: map[string]string{"PATH": "/a"}, wantArgs: []string{bash, "-l", "-c", setAll + "x"}, wantEnv: map[string]string{"COPPICE_PATH": "/a"}},
		"a command of its text":  {p: p, args: []string{bash, "-l", "-c", setFirst + setAll}, wantArgs: []string{bash, "-l", "-c", setFirst + setFirst + setAll}, wantEnv: led},
		"other arguments":        {p: p, args: []string{bash, "-l", "-c", "x", "y"}, wantEnv: both},
		"a program":              {p: p, args: []string{"x"}, wantEnv: both},
		"a program with a PATH":  {p: p, args: []string{"x"}, env: map[string]string{"PATH": ""}, wantEnv: map[string]string{"PATH": ""}},
		"in no environment":      {p: Python{Folder: "/opt/bin", Path: "/bin"}, args: []string{"x"}, wantEnv: map[string]string{"PATH": "/opt/bin:/bin"}},
		"an environment":         {p: p, args: []string{"x"}, sandbox: map[string]string{"VIRTUAL_ENV": "/b"}, wantEnv: map[string]string{"PATH": "/venv/bin:/usr/bin"}},
		"a terminal": {p: p, args: []string{bash, "-i", "-l"}, terminal: true, wantEnv: map[string]string{
			"COPPICE_PATH": "/venv/bin", "VIRTUAL_ENV": "/venv", "COPPICE_PROMPT": setFirst + forget, "PROMPT_COMMAND": setFirst + forget,
		}},
		"a terminal with a prompt": {p: p, args: []string{bash, "-l"}, terminal: true, env: map[string]string{"PROMPT_COMMAND": "x"}, sandbox: map[string]string{"PROMPT_COMMAND": "y"}, wantEnv: map[string]string{
			"COPPICE_PATH": "/venv/bin", "VIRTUAL_ENV": "/venv", "COPPICE_PROMPT": setFirst + forget, "PROMPT_COMMAND": setFirst + forget + "\nx",
		}},
		"no terminal":      {p: p, args: []string{bash, "-i", "-l"}, wantEnv: both},
		"no login shell":   {p: p, args: []string{bash, "-i"}, terminal: true, wantEnv: both},
		"another terminal": {p: p, args: []string{bash, "-l", "x"}, terminal: true, wantEnv: both},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := workspace.ProcessOptions{Args: slices.Clone(tc.args), Env: map[string]string{}}
			maps.Copy(o.Env, tc.env)
			if tc.terminal {
				o.Terminal = &procs.Size{}
			}
			tc.p.lead(&o, tc.sandbox)
			if tc.wantArgs == nil {
				tc.wantArgs = tc.args
			}
			require.Equal(t, tc.wantArgs, o.Args)
			require.Equal(t, tc.wantEnv, o.Env)
			args, env := asked(o)
			require.Equal(t, tc.args, args)
			for _, name := range []string{"PATH", "VIRTUAL_ENV"} { // they are told as they are
				if _, ours := tc.env[name]; !ours {
					delete(env, name)
				}
			}
			if tc.env == nil {
				tc.env = map[string]string{}
			}
			require.Equal(t, tc.env, env)
		})
	}
}
