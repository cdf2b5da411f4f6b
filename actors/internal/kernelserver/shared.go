package kernelserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/actors/internal/process"
)

//go:embed gateway.py
var gatewayScript []byte

// LeaseVariable tells a gateway that hosts share whose a kernel is. A POST for a
// kernel must carry it in its "env"; one without it is never ended by the gateway.
const LeaseVariable = "KERNEL_COPPICE_LEASE"

// Sharing says how a gateway that outlives its host looks after itself. The files
// are those of package coordinator. All fields are required.
type Sharing struct {
	// Dir is the folder of the shared gateways, Fingerprint the environment's
	// name there, and Lease the locked file of the host that starts it.
	Dir, Fingerprint, Lease string
	// IdleEnd is how long it stays without hosts and kernels, Keep how long it
	// keeps a journalled session that nobody uses.
	IdleEnd, Keep time.Duration
}

// Shared is a gateway that LaunchShared has started.
type Shared struct {
	URL, Token string
	Process    process.Identity
	// Dir is its private directory.
	Dir string
}

// LaunchShared starts a gateway that outlives this process and returns once it
// answers. When it fails, nothing of the attempt is left. The gateway is no child
// of ours: [Remove] ends it, from any process of the user. Not on Windows.
func LaunchShared(ctx context.Context, o Options, s Sharing) (Shared, error) {
	o = o.withDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, o.StartTimeout, errNotReady)
	defer cancel()
	for attempt := 1; ; attempt++ {
		shared, err := launchShared(ctx, o, s)
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return shared, err
		}
		var failed *LaunchError
		if !errors.As(err, &failed) || !saysPortTaken(failed.Tail) {
			return shared, err
		}
	}
}

func launchShared(ctx context.Context, o Options, s Sharing) (Shared, error) {
	port, err := freePort(ctx)
	if err != nil {
		return Shared{}, &LaunchError{Problem: err.Error(), Err: err}
	}
	dir, err := newPrivate(o)
	if err != nil {
		return Shared{}, &LaunchError{Problem: err.Error(), Err: err}
	}
	out := Shared{URL: "http://127.0.0.1:" + strconv.Itoa(port), Token: newToken(), Dir: string(dir)}
	if err := out.start(ctx, o, s, dir, port); err != nil {
		failed := &LaunchError{Problem: err.Error(), Tail: dir.tail(out.Token), Err: err}
		Remove(context.WithoutCancel(ctx), out.Process, out.Dir)
		return Shared{}, failed
	}
	return out, nil
}

func (g *Shared) start(ctx context.Context, o Options, s Sharing, dir private, port int) error {
	settings, err := json.Marshal(map[string]any{
		"dir": s.Dir, "private": string(dir), "fingerprint": s.Fingerprint, "lease": s.Lease,
		"idle": s.IdleEnd.Seconds(), "keep": s.Keep.Seconds(),
	})
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(dir.join("shared.json"), settings, 0o600), os.WriteFile(dir.join("gateway.py"), gatewayScript, 0o600))
	if err != nil {
		return err
	}
	log, err := os.OpenFile(dir.join("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := append([]string{dir.join("gateway.py"), dir.join("shared.json"), "--log-level=WARN"}, o.args(port)[2:]...)
	proc, err := process.Start(process.Options{
		Path: o.Runtime.Path, Args: args, Env: o.env(g.Token, dir), Dir: dir.empty(), Log: log, OutliveHost: true, NoFile: noFile,
	})
	if err != nil {
		return err
	}
	// It forks the gateway and ends.
	select {
	case <-proc.Done():
	case <-ctx.Done():
		_ = proc.Stop(ctx, process.StopOptions{Grace: -1}) // what is left of it is told below
	}
	pid, readErr := os.ReadFile(dir.join("pid"))
	if err := errors.Join(proc.Err(), readErr); err != nil {
		return fmt.Errorf("it could not leave its host: %w", err)
	}
	n, err := strconv.Atoi(string(pid))
	if err != nil {
		return fmt.Errorf("it told a wrong process: %w", err)
	}
	if g.Process, err = process.Identify(n); err != nil {
		return fmt.Errorf("it ended: %w", err)
	}
	// From here on the private directory is the gateway's own.
	owner, err := json.Marshal(g.Process)
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir.owner(), owner, 0o600); err != nil {
		return err
	}
	return g.awaitHealth(ctx, dir)
}

// awaitHealth returns when the gateway answers as ours.
func (g *Shared) awaitHealth(ctx context.Context, dir private) error {
	client := &http.Client{
		Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	probe := &Server{url: g.URL, token: g.Token, dir: dir}
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	last := errors.New("not asked yet")
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
		if !process.Alive(g.Process) {
			return errors.New("it ended while it started")
		}
		if last = probe.healthy(ctx, client); last == nil {
			return nil
		}
	}
}

// Remove ends a shared gateway with its kernels and removes its private
// directory; it reports whether all of them are gone. One that has ended already
// may have left kernels and files, which are removed too.
func Remove(ctx context.Context, id process.Identity, dir string) bool {
	kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
	defer cancel()
	var all []process.Identity
	if process.Alive(id) {
		below, _ := process.Descendants(id)
		all = append(append(all, id), below...)
	}
	if private(dir).ours() {
		orphans, _ := process.Holding(private(dir).script())
		starting, _ := process.Holding(private(dir).join("gateway.py"))
		all = append(append(all, orphans...), starting...)
	}
	gone := len(process.KillAll(kill, all)) == 0
	if gone && private(dir).ours() {
		_ = os.RemoveAll(dir) // what is left is swept by the next start
	}
	return gone
}

// ours says whether a path, which may come from a file, is a private directory.
func (p private) ours() bool {
	info, err := os.Lstat(string(p))
	return err == nil && info.IsDir() && isOurs(info) && strings.HasPrefix(info.Name(), strings.TrimSuffix(dirPattern, "*"))
}

// tail returns the end of what a shared gateway printed, without the token.
func (p private) tail(token string) []string {
	data, err := os.ReadFile(p.join("log"))
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(string(data), token, "[token]"), "\n"), "\n")
	return lines[max(0, len(lines)-tailLines):]
}

func saysPortTaken(tail []string) bool {
	printed := strings.ToLower(strings.Join(tail, "\n"))
	return strings.Contains(printed, "already in use") || strings.Contains(printed, "no available port")
}
