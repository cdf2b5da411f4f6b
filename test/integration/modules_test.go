//go:build linux

package integration_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/backends"
)

// TestModules loads the modules of the user and of a project into sessions of both
// backends. Bad ones are told once and keep nothing from working, also one that
// ends the interpreter.
func TestModules(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			host := start(t, coppice.Options{Backend: backends.Named(backend)})
			cwd := t.TempDir()
			user, project := filepath.Join(host.Dir(), "agent", "modules"), filepath.Join(cwd, ".coppice", "modules")
			write := func(dir, name, text string) {
				require.NoError(t, os.MkdirAll(dir, 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			write(user, "work.py", "import os\nprint('noise')\ndef greet(name: str) -> str:\n    'Greets somebody.'\n    return 'hello ' + name\n")
			write(user, "both.py", "def who(): return 'user'\n")
			write(project, "both.py", "def who(): return 'project'\n")
			write(user, "a.py", "x = = 1\n")
			write(user, "b.py", "import sys\nsys.exit(3)\n")
			write(user, "c.txt", "not a module")

			s := host.Session("m", coppice.In(cwd))
			r := run(t, s, cells(`print(greet("you"), who(), "os" in globals(), "x" in globals())`))
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			require.Contains(t, r.Text, "hello you project False False")
			require.NotContains(t, r.Text, "noise")
			require.Contains(t, r.Text, filepath.Join(user, "a.py")+": SyntaxError: ")
			require.Contains(t, r.Text, filepath.Join(user, "b.py")+": SystemExit: 3 (line 2)")
			r = run(t, s, cells("1"))
			require.NotContains(t, r.Text, "SyntaxError", "it is told once")

			// The list for people and models, made without running anything; what is
			// kept is found again until a file changes.
			names := func() (list []string) {
				helpers, modules, err := host.HelpersIn(t.Context(), cwd)
				require.NoError(t, err)
				require.Len(t, modules, 4)
				require.Contains(t, modules[0].Problem, "SyntaxError")
				for _, h := range helpers[len(host.Helpers()):] {
					list = append(list, h.Category+"."+h.Name+h.Signature+" "+h.Docstring)
				}
				return list
			}
			require.Equal(t, []string{"both.who() ", "work.greet(name) Greets somebody."}, names())
			kept, err := os.ReadDir(filepath.Join(host.Dir(), "agent", "pycache"))
			require.NoError(t, err)
			require.Len(t, kept, 1)
			tools, err := agent.Tools(host, agent.Options{Cwd: cwd})
			require.NoError(t, err)
			require.Contains(t, tools[0].Description, "greet(name): Greets somebody.")

			// Names that are reset come back as they were; a new kernel reads the files.
			write(project, "both.py", "def who(): return 'changed'\n")
			require.Equal(t, []string{"both.who() ", "work.greet(name) Greets somebody."}, names())
			kept, err = os.ReadDir(filepath.Join(host.Dir(), "agent", "pycache"))
			require.NoError(t, err)
			require.Len(t, kept, 2, "another content is another entry")
			r = run(t, s, coppice.Request{Cells: []messages.Cell{{Code: "print(who())"}}, ResetNames: true})
			require.Contains(t, r.Text, "project")
			r = run(t, s, coppice.Request{Cells: []messages.Cell{{Code: "print(who())"}}, Reset: true})
			require.Contains(t, r.Text, "changed")

			// One that ends the interpreter costs the session its modules, no more.
			write(user, "d.py", "import os\nos._exit(9)\n")
			r = run(t, s, coppice.Request{Cells: []messages.Cell{{Code: "print('alive', 'greet' in globals())"}}, Reset: true})
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			require.Contains(t, r.Text, "alive False")
			require.Equal(t, 1, strings.Count(r.Text, "all modules were left out"), r.Text)
		})
	}
}
