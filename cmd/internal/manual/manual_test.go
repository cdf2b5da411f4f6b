package manual_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/manual"
)

// tree is a small tree of commands, with what a page has to get right.
func tree() *cobra.Command {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Short: "Does things", Long: "Does things,\nand more.\n\n  tool run -c 'x'    runs x\n\n.profile is read."}
	run := &cobra.Command{Use: "run [FILE]", Short: "Run a file", Example: `  tool run a\b`, Run: nothing}
	run.Flags().StringP("code", "c", "", "the `CODE` to run")
	run.Flags().Bool("secret", false, "not shown")
	_ = run.Flags().MarkHidden("secret")
	root.AddCommand(run, &cobra.Command{Use: "codes", Short: "What codes mean", Long: "0    well\n1    not well"},
		&cobra.Command{Use: "internal", Hidden: true, Run: nothing})
	return root
}

var options = manual.Options{Version: "1.2.3", Date: time.Date(2026, 11, 22, 23, 0, 0, 0, time.FixedZone("", 7200))}

func TestPages(t *testing.T) {
	t.Parallel()
	var names []string
	texts := map[string]string{}
	for _, p := range manual.Pages(tree(), options) {
		names = append(names, p.Name)
		texts[p.Name] = string(p.Text)
	}
	require.Equal(t, []string{"tool.1", "tool-codes.7", "tool-run.1"}, names)
	require.Empty(t, cmp.Diff(`.TH "TOOL\-RUN" 1 "2026\-11\-22" "Coppice 1.2.3" "Coppice"
.SH "NAME"
tool-run \- Run a file
.SH "SYNOPSIS"
\fBtool run [FILE] [flags]\fP
.SH "DESCRIPTION"
.PP
Run a file.
.SH "OPTIONS"
.TP
\fB\-c\fP, \fB\-\-code\fP \fICODE\fP
the CODE to run
.TP
\fB\-h\fP, \fB\-\-help\fP
help for run
.SH "EXAMPLES"
.PP
.nf
.ft CR
  tool run a\eb
.ft
.fi
.SH "SEE ALSO"
\fBtool\fP(1)
`, texts["tool-run.1"]))
	require.Contains(t, texts["tool.1"], ".PP\nDoes things,\nand more.\n.PP\n.nf\n.ft CR\n  tool run \\-c \\(aqx\\(aq    runs x\n.ft\n.fi\n.PP\n\\&.profile is read.\n")
	require.Contains(t, texts["tool.1"], `\fBtool\-codes\fP(7), \fBtool\-run\fP(1)`)
	require.NotContains(t, texts["tool.1"], "internal")
	require.Contains(t, texts["tool-codes.7"], ".nf\n.ft CR\n0    well\n1    not well\n")
	require.NotContains(t, texts["tool-codes.7"], "SYNOPSIS")
}

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, manual.Write(dir, tree(), options))
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	text, err := os.ReadFile(filepath.Join(dir, "tool.1"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), ".TH "))
	require.ErrorContains(t, manual.Write(filepath.Join(dir, "none"), tree(), options), "write a manual page")
}
