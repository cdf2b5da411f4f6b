package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// hibernateVariable is heard where --hibernate is not given.
const hibernateVariable = "COPPICE_HIBERNATE"

// policies are the values of --hibernate.
var policies = []string{string(hibernate.Never), string(hibernate.Lossless), string(hibernate.Lossy)}

// hibernation is the flag that keeps the sessions of a server on disk while they have no
// kernel.
type hibernation string

// add adds the flag to a command.
func (h *hibernation) add(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(h), "hibernate", "", "keep sessions on disk that end because they are idle, because room is needed or with the server, until their next call: "+strings.Join(policies, ", ")+"; but for never it takes the runner backend where --backend names none (default: COPPICE_HIBERNATE, else never)")
}

// wanted says whether sessions are to be kept on disk, by the flag or the variable in env.
func (h hibernation) wanted(env []string) bool {
	value := cmp.Or(string(h), home.Lookup(env, hibernateVariable))
	return value != "" && value != string(hibernate.Never)
}

// fill fills in what the flag says, or else the variable in env. Where sessions are kept,
// the backend auto is the runner, which is faster at it. The error is a UsageError.
func (h hibernation) fill(env []string, f *console.HostFlags, o *coppice.Options) error {
	name, value := "--hibernate", string(h)
	if value == "" {
		name, value = hibernateVariable, home.Lookup(env, hibernateVariable)
	}
	switch {
	case value == "":
		return nil // the host's default, or that of a dialect
	case value == string(hibernate.Never):
		o.Hibernate = hibernate.Never
		return nil
	case !slices.Contains(policies, value):
		return console.Usagef("%s must be one of %s, not %q", name, strings.Join(policies, ", "), value)
	case f.Backend == "auto":
		f.TakeRunner(name)
	}
	o.Hibernate = hibernate.Policy(value)
	return nil
}

// tellAsleep says that sessions are on disk which a server was not asked to restore: whoever
// calls them would wonder where their variables are. Of somebody who said never nothing is told.
func (h hibernation) tellAsleep(ctx context.Context, c *console.Console, o coppice.Options, dir string) {
	if o.Hibernate != hibernate.Never || cmp.Or(string(h), home.Lookup(c.Env, hibernateVariable)) != "" {
		return
	}
	at := filepath.Join(dir, "hibernated")
	if _, err := os.Stat(at); err != nil {
		return // nothing was ever written; there it would be made
	}
	kept, err := store.OpenFolder(ctx, store.FolderOptions{Dir: at, KeyFile: filepath.Join(dir, "hibernate.key")})
	if err != nil {
		return // the server does without it
	}
	list, err := kept.List(ctx)
	if err != nil {
		return
	}
	list = slices.DeleteFunc(list, func(h store.Header) bool {
		_, session := messages.ParseSessionKey(h.Name)
		return !session
	})
	if len(list) > 0 {
		c.Err.Lines(fmt.Sprintf("coppice: sessions on disk: %d; this server does not restore them, one that is started with --hibernate lossy does", len(list)))
	}
}

// savedBounds are the flags that bound the checkpoints on disk of a host.
type savedBounds struct {
	most int
	age  time.Duration // 0: the host's default
	// given names those of the flags that are on the command line.
	given func() []string
}

// add adds the flags to a command.
func (s *savedBounds) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&s.most, "max-saved-checkpoints", hibernate.UsualSaved, "with --hibernate: how many checkpoints with names there may be on disk; one more is refused (-1: any number)")
	s.given = func() (given []string) {
		for _, name := range []string{"max-saved-checkpoints", "keep-checkpoints-for"} {
			if flags.Changed(name) {
				given = append(given, "--"+name)
			}
		}
		return given
	}
	flags.Var((*console.Time)(&s.age), "keep-checkpoints-for", "with --hibernate: for how long a checkpoint with a name is kept after it was saved: seconds, or a time such as 720h (default: 2160h, 90 days; negative: until it is dropped)")
}

// check refuses what cannot be meant; kept says that sessions are kept on disk. The error is a
// UsageError.
func (s savedBounds) check(kept bool) error {
	if s.most == 0 {
		return console.Usagef("--max-saved-checkpoints must be at least 1, or -1 for any number")
	}
	if kept || s.given == nil {
		return nil
	}
	for _, name := range s.given() {
		return console.Usagef("%s is for --hibernate: without that, no checkpoint is on disk", name)
	}
	return nil
}
