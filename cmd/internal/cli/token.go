package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/render"
)

// tokenLife is how long a token is good for by default.
const tokenLife = 30 * 24 * time.Hour

// tokenFlags are those of the commands about tokens.
type tokenFlags struct {
	path   string
	tenant string
	scope  string
	lives  time.Duration
	json   bool
}

func (a *app) tokenCommand() *cobra.Command {
	return console.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of tenants",
		Long: `The tokens with which other machines use "coppice serve --listen". Each belongs to a
tenant, has a scope and expires:

  read    looks at the tenant's sessions, executions, workspaces and files
  run     and runs code, and changes what it looks at
  admin   and is for every tenant (header Coppice-Tenant), lists them (GET
          /api/tenants), has their metrics (GET /api/tenants/metrics), and ends the
          server (POST /api/shutdown)

The file, of mode 0600, has the SHA-256 of each token and not the token, which is shown
once. A server that runs reads it again when it changes: a token that was revoked opens
nothing from then on, and the streams that it had opened end.`,
		Example: `  coppice token create --tenant acme --scope run --expires 720h
  coppice token list
  coppice token revoke 4k2m7qxw5z`,
		Below: []*cobra.Command{a.tokenCreate(), a.tokenList(), a.tokenRevoke()},
	}.Make()
}

// add adds the flags that all of the commands have.
func (f *tokenFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.path, "tokens", "", "the file of tokens (default: tokens.json in Coppice's folder)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// file is the one that is meant.
func (f *tokenFlags) file(a *app) (access.File, error) {
	if f.path == "" {
		record, err := client.RecordPath(client.FindOptions{Env: a.Env})
		if err != nil {
			return access.File{}, err
		}
		f.path = filepath.Join(filepath.Dir(record), "tokens.json")
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return access.File{}, console.UsageError{Err: err}
	}
	return access.File{Path: path}, nil
}

func (a *app) tokenCreate() *cobra.Command {
	var f tokenFlags
	cmd := f.add(console.Command{
		Use:   "create",
		Short: "Make a token for a tenant, and print it: it is shown this once",
		Long: `Make a token for a tenant. Standard output has the token and nothing else, so that it can
go to whoever keeps secrets: it is shown this once, and the file does not have it.`,
		Example: `  coppice token create --tenant acme
  coppice token create --tenant acme --scope read --expires 24h --json`,
		Run: func(ctx context.Context, _ []string) error {
			if f.tenant == "" {
				return console.Usagef("--tenant says whose the token is: --tenant acme")
			}
			file, err := f.file(a)
			if err != nil {
				return err
			}
			text, made, err := file.Create(ctx, f.tenant, httpserver.Scope(f.scope), f.lives)
			switch {
			case errors.Is(err, access.ErrOptions):
				return console.UsageError{Err: err}
			case err != nil:
				return err
			}
			if f.json {
				return a.WriteJSON(struct {
					Token string `json:"token"`
					tokenInfo
				}{text, describeToken(made, time.Now())})
			}
			a.Out.Lines(text)
			a.Err.Lines("the token " + made.ID + " of " + made.Tenant + ", scope " + string(made.Scope) + ", is good until " + made.Expires.Format(time.RFC3339) + "; it is shown this once")
			return nil
		},
	}.Make())
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "whose it is: small letters, digits and -")
	flags.StringVar(&f.scope, "scope", string(httpserver.Run), "what it is good for: read, run or admin")
	f.lives = tokenLife
	flags.Var((*console.Time)(&f.lives), "expires", "after how long it opens nothing any more: seconds, or a time such as 24h")
	return cmd
}

// tokenInfo is what is shown of a token.
type tokenInfo struct {
	ID      string           `json:"id"`
	Tenant  string           `json:"tenant"`
	Scope   httpserver.Scope `json:"scope"`
	State   string           `json:"state"`
	Created time.Time        `json:"created"`
	Expires time.Time        `json:"expires"`
	Revoked time.Time        `json:"revoked,omitzero"`
}

func describeToken(t access.Token, now time.Time) tokenInfo {
	state := "open"
	if !t.Revoked.IsZero() {
		state = "revoked"
	} else if !t.Opens(now) {
		state = "expired"
	}
	return tokenInfo{t.ID, t.Tenant, t.Scope, state, t.Created, t.Expires, t.Revoked}
}

func (a *app) tokenList() *cobra.Command {
	var f tokenFlags
	return f.add(console.Command{
		Use:   "list",
		Short: "List the tokens: whose they are, what they are good for, and how long",
		Long: `List the tokens, by tenant. Those that were revoked or have expired are listed for 90
days.`,
		Run: func(ctx context.Context, _ []string) error {
			file, err := f.file(a)
			if err != nil {
				return err
			}
			list, err := file.Load(ctx)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			slices.SortStableFunc(list, func(x, y access.Token) int {
				return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), x.Created.Compare(y.Created))
			})
			now := time.Now()
			shown := make([]tokenInfo, 0, len(list))
			rows := [][]string{{"id", "tenant", "scope", "state", "created", "expires"}}
			for _, t := range list {
				i := describeToken(t, now)
				shown = append(shown, i)
				rows = append(rows, []string{i.ID, i.Tenant, string(i.Scope), i.State, i.Created.Format(time.RFC3339), i.Expires.Format(time.RFC3339)})
			}
			switch {
			case f.json:
				return a.WriteJSON(map[string]any{"tokens": shown})
			case len(list) == 0:
				a.Out.Lines("there is no token; make one with: coppice token create --tenant NAME")
			default:
				a.Out.Lines(render.Table(a.Style(a.Out), rows, true)...)
			}
			return nil
		},
	}.Make())
}

func (a *app) tokenRevoke() *cobra.Command {
	var f tokenFlags
	return f.add(console.Command{
		Use:     "revoke ID",
		Short:   "Make a token open nothing from now on",
		Long:    `Make a token open nothing from now on. A server that runs ends the streams that it opened.`,
		Example: `  coppice token revoke 4k2m7qxw5z`,
		Args:    console.Arguments{Least: 1, Most: 1, Wants: "name the token: coppice token list shows their ids"},
		Run: func(ctx context.Context, args []string) error {
			file, err := f.file(a)
			if err != nil {
				return err
			}
			t, err := file.Revoke(ctx, args[0])
			if err != nil {
				return err
			}
			if f.json {
				return a.WriteJSON(describeToken(t, time.Now()))
			}
			a.Out.Lines("the token " + t.ID + " of " + t.Tenant + " was revoked")
			return nil
		},
	}.Make())
}
