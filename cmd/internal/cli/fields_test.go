package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/cli/console"
)

// TestErrorsNameFlags: whatever is wrong with a flag, the error does not speak of the fields of the
// library. The commands end before they begin: their time is over.
func TestErrorsNameFlags(t *testing.T) {
	dir := t.TempDir()
	book := filepath.Join(dir, "a.ipynb")
	require.NoError(t, os.WriteFile(book, []byte(`{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","source":"1","metadata":{},"outputs":[],"execution_count":null}]}`), 0o600))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	field := regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*|\b(Hibernate|Beside|Backend|Limits|Isolation|Launcher)\b`)
	run := func(ctx context.Context, args ...string) (int, string) {
		var told bytes.Buffer
		env := []string{"COPPICE_HOME=" + dir, "PATH=" + os.Getenv("PATH"), "COPPICE_PYTHON_SKIP_CHECK=1"}
		a := &app{Console: console.New(strings.NewReader(""), io.Discard, &told, env)}
		code := a.execute(ctx, args)
		return code, strings.ReplaceAll(told.String(), dir, "DIR")
	}
	none := func(name string) bool { return name == "help" || name == "open" || name == "listen" || name == "addr" }
	tried, refused := 0, 0
	for _, command := range [][]string{
		{"serve", "--addr", "127.0.0.1:0"}, {"mcp"}, {"run", "-c", "1"}, {"notebook", "run", book}, {"env"}, {"tool", "list"}, {"tool", "run", "x"},
	} {
		root := (&app{Console: console.New(nil, io.Discard, io.Discard, nil)}).rootCommand()
		cmd, _, err := root.Find(command)
		require.NoError(t, err)
		flagsOf(cmd, func(f *pflag.Flag) {
			if none(f.Name) || f.Value.Type() == "bool" {
				return
			}
			for _, value := range []string{"-1", "=", "x"} {
				code, told := run(ended, append(append([]string(nil), command...), "--"+f.Name+"="+value)...)
				tried++
				if code == console.Usage {
					refused++
				}
				require.False(t, field.MatchString(told), "--%s=%s: %s", f.Name, value, told)
			}
		})
	}
	require.Greater(t, tried, 200)
	require.Greater(t, refused, 100)
	for flag, args := range map[string][]string{
		"--warm-max":      {"serve", "--warm-max", "-1"},
		"--memory-budget": {"serve", "--memory-budget", "-1"},
		"--pass-env":      {"serve", "--pass-env", "="},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it ends at once
		code, told := run(ctx, args...)
		cancel()
		require.Equal(t, console.Usage, code, told)
		require.Contains(t, told, flag)
		require.False(t, field.MatchString(told), told)
	}
}

// flagsOf calls do for each flag that a command takes.
func flagsOf(cmd *cobra.Command, do func(*pflag.Flag)) {
	cmd.Flags().VisitAll(do)
	cmd.InheritedFlags().VisitAll(do)
}
