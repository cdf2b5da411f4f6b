package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/sinks/artifact"
	"github.com/coppice-run/coppice/sinks/budget"
)

func (a *app) artifactCommand() *cobra.Command {
	cmd := console.Command{
		Use:   "artifact",
		Short: "Read the full output of calls, and drawings that they made",
		Long: `Output that is too long for a result is kept in full, and the result names it:
artifact://N. Drawings (SVG, Plotly, Vega) are kept too.

They are in COPPICE_ARTIFACTS_DIR if that is set, else beside the file that
COPPICE_SESSION_FILE names, else in artifacts in Coppice's home, for 7 days and up
to 2 GiB.`,
	}.Make()
	var dir string
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "the folder with the artifacts")
	store := func() (*artifact.Store, error) {
		s, err := coppice.OpenArtifacts(console.KeepOutput(coppice.Options{Env: a.Env, Output: coppice.OutputOptions{Artifacts: dir}}))
		if err != nil {
			return nil, console.UsageError{Err: err}
		}
		return s, nil
	}
	cmd.AddCommand(a.artifactList(store), a.artifactShow(store), a.artifactPath(store))
	return cmd
}

// openStore returns the artifacts that a command is about.
type openStore func() (*artifact.Store, error)

// artifactJSON is one artifact in the output of list --json.
type artifactJSON struct {
	ID       int       `json:"id"`
	URI      string    `json:"uri"`
	Path     string    `json:"path"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

func (a *app) artifactList(open openStore) *cobra.Command {
	var asJSON bool
	cmd := console.Command{
		Use: "list", Short: "List what is kept, the oldest first",
		Run: func(context.Context, []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			list, err := s.List()
			if err != nil && !errors.Is(err, artifact.ErrNoDirectory) {
				return err
			}
			if asJSON {
				found := make([]artifactJSON, len(list))
				for i, one := range list {
					found[i] = artifactJSON{one.ID, one.URI(), one.Path, one.Bytes, one.Modified}
				}
				return a.WriteJSON(found)
			}
			if len(list) == 0 {
				a.Out.Lines("nothing is kept in " + s.Dir())
				return nil
			}
			rows := [][]string{{"artifact", "size", "written", "file"}}
			for _, one := range list {
				rows = append(rows, []string{one.URI(), budget.Size(one.Bytes), one.Modified.Format(time.DateTime), one.Path})
			}
			a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
			return nil
		},
	}.Make()
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON list")
	return cmd
}

func (a *app) artifactPath(open openStore) *cobra.Command {
	return console.Command{
		Use: "path ID", Short: "Print the file of an artifact", Args: oneID(),
		Example: "  less $(coppice artifact path artifact://3)",
		Run: func(_ context.Context, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			info, err := s.Resolve(args[0])
			if err != nil {
				return artifactError(err)
			}
			a.Out.Lines(info.Path)
			return nil
		},
	}.Make()
}

func (a *app) artifactShow(open openStore) *cobra.Command {
	var lines, bytes string
	cmd := console.Command{
		Use: "show ID", Short: "Print an artifact, or a part of it, as it is", Args: oneID(),
		Long: `Print an artifact byte for byte. --lines and --bytes choose a part: 10-20, 10-
(to the end), -20 (from the beginning) or 10; both ends belong to it, and lines
and bytes are counted from 1. A range past the end is empty.`,
		Example: `  coppice artifact show artifact://3
  coppice artifact show 3 --lines 100-200`,
		Run: func(_ context.Context, args []string) error {
			if lines != "" && bytes != "" {
				return console.Usagef("--lines and --bytes exclude each other")
			}
			s, err := open()
			if err != nil {
				return err
			}
			return a.showArtifact(s, args[0], lines, bytes)
		},
	}.Make()
	cmd.Flags().StringVar(&lines, "lines", "", "print these lines: FIRST-LAST")
	cmd.Flags().StringVar(&bytes, "bytes", "", "print these bytes: FIRST-LAST")
	return cmd
}

func (a *app) showArtifact(s *artifact.Store, uri, lines, bytes string) error {
	first, last, err := parseRange("--lines", lines)
	if err != nil {
		return err
	}
	from, to, err := parseRange("--bytes", bytes)
	if err != nil {
		return err
	}
	f, err := s.Open(uri)
	if err != nil {
		return artifactError(err)
	}
	defer f.Close()
	if lines != "" {
		return artifact.CopyLines(a.Out, f, first, last)
	}
	var in io.Reader = f
	if bytes != "" {
		if _, err := f.Seek(max(from, 1)-1, io.SeekStart); err != nil {
			return fmt.Errorf("read %s: %w", uri, err)
		}
		if to > 0 {
			in = io.LimitReader(f, to-max(from, 1)+1)
		}
	}
	if _, err = io.Copy(a.Out, in); err != nil {
		return fmt.Errorf("read %s: %w", uri, err)
	}
	return nil
}

// parseRange reads FIRST-LAST, FIRST-, -LAST or N; 0 is an end that is left out.
func parseRange(flag, text string) (first, last int64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	for _, p := range []struct {
		text string
		to   *int64
	}{{a, &first}, {b, &last}} {
		if p.text == "" && isRange && text != "-" {
			continue
		}
		n, err := strconv.ParseInt(p.text, 10, 64)
		if err != nil || n < 1 {
			return 0, 0, console.Usagef("%s must be FIRST-LAST, counted from 1, not %q", flag, text)
		}
		*p.to = n
	}
	if last > 0 && first > last {
		return 0, 0, console.Usagef("%s %s ends before it begins", flag, text)
	}
	return first, last, nil
}

// oneID is the argument of a command about one artifact.
func oneID() console.Arguments {
	return console.Arguments{Least: 1, Most: 1, Wants: "name one artifact, as artifact://3 or 3"}
}

// artifactError is the end of a command whose artifact cannot be read: a name
// that is not one is a wrong command line.
func artifactError(err error) error {
	if errors.Is(err, artifact.ErrBadID) || errors.Is(err, artifact.ErrNoID) {
		return console.UsageError{Err: err}
	}
	return err
}
