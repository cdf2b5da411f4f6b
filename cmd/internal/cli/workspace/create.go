package workspace

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/internal/home"
)

// createFlags are those of create, as they are written.
type createFlags struct {
	folder                  string
	keep                    bool
	env, pass, labels       []string
	none                    bool
	owner, quota            string
	memory, cpu, runtime    string
	files, processes, cores string
	total                   totalFlags
	isolation               client.Isolation
	life                    lifeFlags
}

// totalFlags bound everything in a workspace together.
type totalFlags struct{ memory, processes, cores, output string }

// lifeFlags say when a workspace ends.
type lifeFlags struct{ end, idle console.Time }

// add adds the flags.
func (l *lifeFlags) add(cmd *cobra.Command) {
	cmd.Flags().Var(&l.end, "end-in", "end it so long from now, whatever it does then: seconds, or a time such as 8h (0: never)")
	cmd.Flags().Var(&l.idle, "idle-end", "end it after so long without use (0: never)")
}

// lifetime is what the flags say.
func (l *lifeFlags) lifetime() (client.Lifetime, error) {
	if l.end < 0 || l.idle < 0 {
		return client.Lifetime{}, console.Usagef("--end-in and --idle-end must not be negative; use 0 for never")
	}
	return client.Lifetime{EndIn: time.Duration(l.end).Seconds(), IdleEnd: time.Duration(l.idle).Seconds()}, nil
}

func (a *app) createCommand() *cobra.Command {
	var f createFlags
	cmd := console.Command{
		Use: "create WORKSPACE", Short: "Make a workspace, or find the one that was made alike", Errors: console.ServerFailure, Args: one("create"),
		Run: func(ctx context.Context, args []string) error {
			n, err := f.workspace(args[0])
			if err != nil {
				return err
			}
			return a.WithServer(func(c *client.Client) error {
				w, err := c.CreateWorkspace(ctx, n)
				if err != nil {
					return err
				}
				return a.tell(w)
			})
		},
	}.Make()
	flags := cmd.Flags()
	flags.StringVar(&f.folder, "folder", "", "a folder that is there, which stays when the workspace ends (default: one of its own)")
	flags.BoolVar(&f.keep, "keep-folder", false, "leave its own folder when it ends")
	flags.StringArrayVar(&f.env, "env", nil, "a variable of its environment, NAME=VALUE; may be repeated")
	flags.StringSliceVar(&f.pass, "pass", nil, "the variables of the server that may pass (default: those that sessions of the server get)")
	flags.BoolVar(&f.none, "pass-none", false, "let no variable of the server pass but PATH, HOME and the language")
	flags.StringArrayVar(&f.labels, "label", nil, "a label, NAME=VALUE; may be repeated")
	flags.StringVar(&f.owner, "owner", "", "whom it belongs to")
	flags.StringVar(&f.quota, "quota", "", "how much its files may hold: 512M, 2G or bytes (default: no limit)")
	flags.StringVar(&f.memory, "max-memory", "", "how much memory a session or process may take: 512M, 2G or bytes of address space, of which a thread maps 72M (default: as the server says)")
	flags.StringVar(&f.cpu, "max-cpu", "", "how much processor time a cell may use: 90s, 2m or seconds")
	flags.StringVar(&f.runtime, "max-runtime", "", "how long a cell or process may run")
	flags.StringVar(&f.files, "max-files", "", "how many files a session or process may have open")
	flags.StringVar(&f.processes, "max-processes", "", "how many processes of its own a session may have at a time")
	flags.StringVar(&f.cores, "max-processors", "", "how many processors a session may keep busy, 0.5 for half of one")
	flags.StringVar(&f.total.memory, "total-memory", "", "how much memory everything in it may take together: 512M, 2G or bytes (default: no limit)")
	flags.StringVar(&f.total.processes, "total-processes", "", "how many processes may live in it, those of sessions included")
	flags.StringVar(&f.total.cores, "total-processors", "", "how many processors everything in it may keep busy, 0.5 for half of one; the server needs a control group for it")
	flags.StringVar(&f.total.output, "total-output", "", "how much each cell and each process may print: 10M or bytes")
	flags.StringVar(&f.isolation.Level, "isolation", "", "what sessions and processes are kept from (default: as the server says)")
	flags.StringArrayVar(&f.isolation.Write, "isolation-write", nil, "a folder that they may change besides that of the workspace; may be repeated")
	flags.StringArrayVar(&f.isolation.Read, "isolation-read", nil, "a folder that they may read besides the system's; may be repeated")
	flags.BoolVar(&f.isolation.Network, "isolation-network", false, "let them use the network")
	flags.BoolVar(&f.isolation.Loopback, "isolation-loopback", false, "let them connect to ports of the server's machine")
	flags.StringArrayVar(&f.isolation.Hosts, "isolation-host", nil, "a host that they may reach, through a proxy: api.example.com, *.example.org, git.example.net:8443; may be repeated")
	flags.BoolVar(&f.isolation.Private, "isolation-private", false, "close what all programs of the user share to them: /dev/shm")
	f.life.add(cmd)
	return cmd
}

// tell writes what became of a workspace.
func (a *app) tell(w client.Workspace) error {
	if a.json {
		return a.WriteJSON(w)
	}
	a.showWorkspace(w)
	return nil
}

// workspace is what the flags ask for.
func (f createFlags) workspace(name string) (n client.NewWorkspace, err error) {
	n = client.NewWorkspace{Name: name, KeepFolder: f.keep, Owner: f.owner, Pass: f.pass}
	if f.none {
		if f.pass != nil {
			return n, console.Usagef("--pass and --pass-none exclude each other")
		}
		n.Pass = []string{}
	}
	if f.folder != "" {
		if n.Folder, err = filepath.Abs(f.folder); err != nil {
			return n, console.UsageError{Err: err}
		}
	}
	i := f.isolation
	if err := console.Networks(i.Network, i.Loopback, i.Hosts); err != nil {
		return n, err
	}
	for _, list := range []*[]string{&i.Write, &i.Read} {
		*list = slices.Clone(*list)
		for at, dir := range *list {
			if (*list)[at], err = filepath.Abs(dir); err != nil {
				return n, console.UsageError{Err: err}
			}
		}
	}
	if i.Level != "" || i.Write != nil || i.Read != nil || i.Network || i.Loopback || i.Hosts != nil || i.Private {
		n.Isolation = &i
	}
	if n.Env, err = pairs("env", f.env); err != nil {
		return n, err
	}
	if n.Labels, err = pairs("label", f.labels); err != nil {
		return n, err
	}
	if n.Lifetime, err = f.life.lifetime(); err != nil {
		return n, err
	}
	return n, f.bounds(&n)
}

// bounds reads the quota and the limits.
func (f createFlags) bounds(n *client.NewWorkspace) error {
	var cpu, runtime time.Duration
	for _, one := range []struct {
		flag, text string
		read       func(string) error
	}{
		{"quota", f.quota, reads(&n.Quota, home.Size)},
		{"max-memory", f.memory, reads(&n.Limits.Memory, home.Size)},
		{"max-cpu", f.cpu, reads(&cpu, home.Duration)},
		{"max-runtime", f.runtime, reads(&runtime, home.Duration)},
		{"max-files", f.files, reads(&n.Limits.Files, home.Count)},
		{"max-processes", f.processes, reads(&n.Limits.Processes, home.Count)},
		{"max-processors", f.cores, reads(&n.Limits.Processors, home.Share)},
		{"total-memory", f.total.memory, reads(&n.Total.Memory, home.Size)},
		{"total-processes", f.total.processes, reads(&n.Total.Processes, home.Count)},
		{"total-processors", f.total.cores, reads(&n.Total.Processors, home.Share)},
		{"total-output", f.total.output, reads(&n.Total.Output, home.Size)},
	} {
		if one.text == "" {
			continue
		}
		if err := one.read(one.text); err != nil {
			return console.Usagef("--%s: %v", one.flag, err)
		}
	}
	n.Limits.CPU, n.Limits.Runtime = cpu.Seconds(), runtime.Seconds()
	return nil
}

// reads is a function that reads a text into what to points at.
func reads[T any](to *T, read func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*to, err = read(text)
		return err
	}
}

func (a *app) changeCommand() *cobra.Command {
	var labels []string
	var none, pin, unpin bool
	var life lifeFlags
	var cmd *cobra.Command
	cmd = console.Command{
		Use: "change WORKSPACE", Short: "Change the labels or the lifetime of a workspace", Errors: console.ServerFailure, Args: one("change"),
		Long: `Change the labels or the lifetime of a workspace, or pin it. Labels that are given
replace those that it has. --end-in and --idle-end replace its lifetime as a whole: the
one that is left out is never then.`,
		Run: func(ctx context.Context, args []string) error {
			var change client.ChangeWorkspace
			var err error
			if change.Labels, err = pairs("label", labels); err != nil {
				return err
			}
			changed := cmd.Flags().Changed
			switch {
			case none && change.Labels != nil:
				return console.Usagef("--label and --no-labels exclude each other")
			case none:
				change.Labels = map[string]string{}
			}
			if changed("end-in") || changed("idle-end") {
				l, err := life.lifetime()
				if err != nil {
					return err
				}
				change.Lifetime = &l
			}
			if pin && unpin {
				return console.Usagef("--pin and --unpin exclude each other")
			}
			if pin || unpin {
				change.Pinned = &pin
			}
			return a.WithServer(func(c *client.Client) error {
				w, err := c.ChangeWorkspace(ctx, args[0], change)
				if err != nil {
					return err
				}
				return a.tell(w)
			})
		},
	}.Make()
	cmd.Flags().StringArrayVar(&labels, "label", nil, "a label, NAME=VALUE, in place of those that it has; may be repeated")
	cmd.Flags().BoolVar(&none, "no-labels", false, "take its labels away")
	cmd.Flags().BoolVar(&pin, "pin", false, "spare it when another one needs a place")
	cmd.Flags().BoolVar(&unpin, "unpin", false, "end what --pin did")
	life.add(cmd)
	return cmd
}
