package cli

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/cmd/internal/access"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/fleetapi"
	"github.com/coppice-run/coppice/cmd/internal/httpapi"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/cmd/internal/liveview"
	"github.com/coppice-run/coppice/cmd/internal/liveview/vitals"
	"github.com/coppice-run/coppice/cmd/internal/version"
	"github.com/coppice-run/coppice/cmd/internal/workspaceapi"
	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/workspace"
)

// tenants makes the hosts of tenants. Its fields do not change; any goroutine may use it.
type tenants struct {
	app    *app
	f      *serveFlags
	dir    string // with a folder for each
	rung   string
	walled bool
	python string
	logger *slog.Logger
	// metrics are those of all tenants.
	metrics *registry
	naming  sync.Mutex // held while the key is read or made
	since   time.Time  // when the server began to serve them
}

// maxKey bounds the file of the key that names folders, in bytes.
const maxKey = 64

// folder is that of a tenant. Who does not know the key cannot guess its name: code behind
// most walls can ask whether a path is there, though it cannot look inside.
func (t *tenants) folder(ctx context.Context, tenant string) (string, error) {
	path := filepath.Join(t.dir, "key")
	t.naming.Lock()
	defer t.naming.Unlock()
	key, err := file.Read(ctx, path, maxKey)
	if errors.Is(err, fs.ErrNotExist) {
		key = []byte(rand.Text() + rand.Text())
		err = file.Write(path, key, file.WriteOptions{Durable: true})
	}
	if err != nil {
		return "", fmt.Errorf("read the key of the folders of tenants: %w", err)
	}
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(tenant)) // a hash takes all
	return filepath.Join(t.dir, hex.EncodeToString(m.Sum(nil))[:32]), nil
}

// environment is what tenants have of the server's: where programs are, the language, and
// what --pass-env names. All else is its user's.
func (t *tenants) environment(work string) []string {
	env := []string{"HOME=" + work}
	for _, kv := range t.app.Env {
		name, _, _ := strings.Cut(kv, "=")
		limits := strings.HasPrefix(name, "COPPICE_MAX_") || slices.Contains([]string{"COPPICE_START_TIMEOUT", "COPPICE_INTERRUPT_GRACE", "COPPICE_CALL_TIMEOUT", "COPPICE_PASS_ENV"}, name)
		passed := slices.ContainsFunc(slices.Concat(t.f.PassEnv, strings.Split(t.app.Getenv("COPPICE_PASS_ENV"), ",")), func(p string) bool {
			p = strings.TrimSpace(p)
			begins, all := strings.CutSuffix(p, "*")
			return p == name || all && begins != "" && strings.HasPrefix(name, begins)
		})
		if limits || passed && name != "HOME" || name == "PATH" || name == "LANG" || name == "LANGUAGE" || name == "TZ" || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	return env
}

// options are those of a tenant's host.
func (t *tenants) options(dir, work string, m *metrics, v *vitals.Vitals) (coppice.Options, error) {
	flags := t.f.HostFlags
	flags.Backend = "runner"
	o := t.f.hostOptions(m, v)
	o.Env = t.app.Env
	o, err := flags.Options(coppice.GatewayOptions{}, o)
	if err != nil {
		return o, err
	}
	if err := t.f.timeout.Fill(&o); err != nil {
		return o, err
	}
	if err := t.f.hibernate.fill(t.app.Env, &flags, &o); err != nil {
		return o, err
	}
	o = console.KeepOutput(o)
	o.Launcher = nil // tools have the rights of the server
	o.Home, o.Python, o.Env, o.Logger = dir, t.python, t.environment(work), t.logger
	o.MaxSessions, o.MaxWaiting = t.f.listen.sessions, 16*t.f.listen.sessions
	o.Workspaces.Max = 4 * t.f.listen.sessions
	if most := t.f.places.Max; most > 0 {
		o.Workspaces.Max = min(o.Workspaces.Max, most)
	}
	asked := t.f.Isolation()
	o.Isolation = kernel.Isolation{Level: t.rung, Write: []string{work}, Read: asked.Read, Network: asked.Network, Loopback: asked.Loopback, Hosts: asked.Hosts, Users: asked.Users, Private: true}
	if !t.walled {
		o.Isolation = kernel.Isolation{Level: asked.Level}
	}
	return o, nil
}

// start starts the host of a tenant, and makes what serves it.
func (t *tenants) start(ctx context.Context, tenant string) (_ *access.Part, err error) {
	dir, err := t.folder(ctx, tenant)
	if err != nil {
		return nil, err
	}
	work := filepath.Join(dir, "work")
	var records *fleetapi.Records
	if member := t.f.member; member != nil {
		if work, err = member.tenants.work(t.f.cwd, tenant); err == nil {
			records, err = member.tenants.records(ctx, tenant, dir)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the tenant: %w", err)
	}
	m, v := t.metrics.of(tenant), vitals.New()
	defer func() {
		if err != nil {
			t.metrics.forget(tenant, m)
		}
	}()
	o, err := t.options(dir, work, m, v)
	if err != nil {
		return nil, err
	}
	if records != nil {
		o.Store = records
	}
	host, keeps, err := t.host(ctx, o)
	if err != nil {
		return nil, err
	}
	part, err := t.part(tenant, host, keeps, work, records, m, v)
	if err != nil {
		t.app.Ending(func(ctx context.Context) { host.Shutdown(ctx) })
		return nil, err
	}
	return part, nil
}

// host starts one that keeps sessions on disk as a whole where that is needed for pauses.
func (t *tenants) host(ctx context.Context, o coppice.Options) (*coppice.Host, bool, error) {
	if o.Hibernate == "" && t.f.e2b && (t.f.member == nil || o.Store != nil) {
		o.Hibernate = hibernate.Lossless
	}
	host, err := coppice.Start(ctx, o)
	return host, err == nil && o.Hibernate == hibernate.Lossless, err
}

func (t *tenants) part(tenant string, host *coppice.Host, keeps bool, work string, records *fleetapi.Records, m *metrics, v *vitals.Vitals) (_ *access.Part, err error) {
	logger := t.logger.With("tenant", tenant)
	m.tree.Show(host.Snapshot)
	api, err := httpapi.New(httpapi.Options{Host: host, Cwd: work, Root: work, Version: version.Read().Version, Metrics: m.registry, Logger: logger, Why: t.f.Chosen, Forgets: forgets(host.Options()), Of: vitals.Of, Answered: v.Answered, Retention: t.f.retention, Since: t.since})
	if err != nil {
		return nil, err
	}
	v.Show(source(host, api, t.f.listen.sessions))
	page, err := liveview.Mounts(liveview.Options{Version: version.Read().Version, Cwd: work, Vitals: v})
	if err != nil {
		v.Close()
		return nil, errors.Join(err, api.Close())
	}
	var node *fleetapi.Node // nil: the server is in no fleet
	shared, dialects := t.f.member, []spoken(nil)
	if shared != nil {
		node = shared.tenants.node(tenant, host, api, records, m, logger)
	}
	doors := []func(){v.Close}
	mounts := slices.Concat(api.Mounts(), page, workspaceapi.Mounts(workspaceapi.Options{Host: host, Logger: logger, Bound: bounded(host), Inside: true}))
	if t.f.e2b {
		o := e2b.Options{Host: host, Keeps: keeps, Logger: logger}
		if shared != nil {
			o.Secret = shared.tenants.secret("sandboxes", tenant)
			o.Elsewhere = func(ctx context.Context) []string { return node.Workspaces(ctx, shared.token) }
		}
		dialect := e2b.New(o)
		doors, mounts, dialects = append(doors, dialect.Close), append(mounts, dialect.Mounts()...), append(dialects, dialect)
	}
	if t.f.jupyter {
		o := jupyterapi.Options{Host: host, Cwd: work, Root: work, Version: version.Read().Version, Logger: logger}
		if shared != nil {
			o.Own = node.Own
		}
		kernels := jupyterapi.New(o)
		doors, mounts, dialects = append(doors, kernels.Close), append(mounts, kernels.Mounts()...), append(dialects, kernels)
	}
	leave := func() error { return nil }
	if shared != nil {
		mounts = spread(node, mounts, dialects...)
		if leave, err = shared.tenants.join(tenant, node); err != nil {
			for _, end := range slices.Backward(doors) {
				end()
			}
			return nil, errors.Join(err, api.Close())
		}
	}
	return &access.Part{
		Mounts: mounts, Instrument: m.instrument,
		Sessions: func(ctx context.Context) (int, error) {
			list, err := host.Sessions(ctx)
			return len(list), err
		},
		Ending: api.End,
		Close: func() error {
			err := api.Close()
			for _, end := range slices.Backward(doors) {
				end()
			}
			t.app.Ending(func(ctx context.Context) {
				if report := host.Shutdown(ctx); !report.Clean() {
					err = errors.Join(err, fmt.Errorf("something of it has not ended: %+v", report.Leftovers))
				}
			})
			t.metrics.forget(tenant, m)
			return errors.Join(err, leave())
		},
	}, nil
}

// source is what the live view of a host shows, of which at most so many sessions may live.
func source(host *coppice.Host, api *httpapi.API, most int) vitals.Source {
	backend, _ := host.Backend()
	return vitals.Source{Sessions: api.Sessions, Tree: host.Snapshot, Hibernated: api.Hibernated, MaxSessions: most, Fork: backend == "runner"}
}

// bounded refuses what a tenant may not have in a workspace: any folder but one of its own,
// other walls than the server's, and more than the server's limits.
func bounded(host *coppice.Host) func(*workspace.Options) error {
	most := host.Options().Limits
	return func(o *workspace.Options) error {
		i := o.Isolation
		switch {
		case o.Folder != "":
			return &workspace.OptionsError{Field: "folder", Problem: "the folder of a workspace is one of its own here: leave folder out"}
		case i.Level != "" || i.Write != nil || i.Read != nil || i.Network || i.Loopback || i.Hosts != nil || i.Private || i.Users:
			return &workspace.OptionsError{Field: "isolation", Problem: "the isolation is the server's to choose: leave isolation out"}
		case o.Limits == (kernel.Limits{}):
			return nil // those of the host
		}
		return errors.Join(
			within("limits.memory_bytes", &o.Limits.Memory, most.Memory), within("limits.cpu_seconds", &o.Limits.CPU, most.CPU),
			within("limits.runtime_seconds", &o.Limits.Runtime, most.Runtime), within("limits.files", &o.Limits.Files, most.Files),
			within("limits.processes", &o.Limits.Processes, most.Processes), within("limits.processors", &o.Limits.Processors, most.Processors),
		)
	}
}

// within sets a limit that is not given to the server's, and refuses one beyond that. 0: there
// is none.
func within[N ~int | ~int64 | ~float64](name string, asked *N, most N) error {
	if *asked == 0 {
		*asked = most
	}
	if most > 0 && *asked > most {
		return &workspace.OptionsError{Field: name, Problem: fmt.Sprintf("%s may be at most %v here", name, most)}
	}
	return nil
}

// page is that of the live view, for those who have no token yet.
func (t *tenants) page() ([]httpserver.Mount, error) {
	page, err := liveview.Mounts(liveview.Options{Version: version.Read().Version})
	return slices.DeleteFunc(page, func(m httpserver.Mount) bool { return !m.Public }), err
}
