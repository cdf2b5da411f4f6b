package kernelserver

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/internal/file"
	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
	"github.com/coppice-run/coppice/internal/sandbox"
)

//go:embed gateway.py
var gatewayScript []byte

// LeaseVariable tells a gateway that hosts share whose a kernel is. A POST for a
// kernel must carry it in its "env"; one without it is never ended by the gateway.
const LeaseVariable = "KERNEL_COPPICE_LEASE"

// Sharing says how a gateway that outlives its host looks after itself. The files
// are those of package sharedgateway. All fields are required.
type Sharing struct {
	// Dir is the folder of the shared gateways, Name the gateway's own there:
	// leases begin with it.
	Dir, Name string
	// IdleEnd is how long it stays without hosts and kernels, Keep how long it
	// keeps a journalled session that is not used.
	IdleEnd, Keep time.Duration
}

// Shared is a gateway that outlives the process that starts it. [NewShared] makes
// one; one goroutine uses it.
type Shared struct {
	URL, Token string
	// Dir is its private directory.
	Dir string

	o       Options
	port    int
	starter *process.Process // forks the gateway and ends; nil before Start
}

// NewShared chooses an address and a token and makes the private directory of a
// gateway. Until Start, the directory goes when this process ends.
func NewShared(ctx context.Context, o Options, s Sharing) (*Shared, error) {
	o = o.withDefaults()
	if o.Rules.Level != sandbox.Off {
		return nil, &LaunchError{Problem: "walls end with their host, and a gateway that hosts share does not"}
	}
	place, err := newPlace(ctx, Options{})
	if err != nil {
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	dir, err := newPrivate(o)
	if err != nil {
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	g := &Shared{URL: "http://127.0.0.1:" + strconv.Itoa(place.port), Token: newToken(), Dir: string(dir), o: o, port: place.port}
	settings, err := json.Marshal(map[string]any{
		"dir": s.Dir, "private": string(dir), "name": s.Name, "max_kernels": o.MaxKernels,
		"idle": s.IdleEnd.Seconds(), "keep": s.Keep.Seconds(),
	})
	if err == nil {
		err = errors.Join(os.WriteFile(dir.join("shared.json"), settings, 0o600), os.WriteFile(dir.join("gateway.py"), gatewayScript, 0o600))
	}
	if err != nil {
		_ = dir.remove() // the first error is the news
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	return g, nil
}

// Start starts the process and does not wait for it: [SharedProcess] says who it
// is once it knows, [SharedAnswers] whether it answers. It keeps own open for as
// long as it lives; the caller closes its own copy. From here on the directory
// stays when this process ends: whoever finds the gateway dead calls [Remove],
// and so does the caller when Start fails. Not on Windows.
func (g *Shared) Start(own *os.File) error {
	dir := private(g.Dir)
	err := os.WriteFile(dir.owner(), []byte("{}"), 0o600)
	if err != nil {
		return &LaunchError{Problem: err.Error(), Err: err}
	}
	log, err := os.OpenFile(dir.join("log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return &LaunchError{Problem: err.Error(), Err: err}
	}
	defer func() { _ = log.Close() }()
	g.starter, err = process.Start(process.Options{
		Path: g.o.Runtime.Path, Args: g.o.sharedArgs(dir, g.port), Env: g.o.env(g.Token, dir), Dir: dir.empty(), Log: log,
		OutliveHost: true, NoFile: noFile, ExtraFiles: []*os.File{own},
	})
	if err != nil {
		return &LaunchError{Problem: err.Error(), Err: err}
	}
	return nil
}

// Join waits for the end of the process that Start began, which forks the gateway
// and ends.
func (g *Shared) Join(ctx context.Context) {
	if g.starter == nil {
		return
	}
	select {
	case <-g.starter.Done():
	case <-ctx.Done():
		_ = g.starter.Stop(ctx, process.StopOptions{Grace: -1}) // what is left of it has the directory's name
	}
}

// Failed returns why the gateway is not there, given what was observed, and
// whether another port may do. The process has ended or will be removed.
func (g *Shared) Failed(ctx context.Context, why error) (err *LaunchError, again bool) {
	g.Join(ctx)
	if g.starter != nil {
		if ended := g.starter.Err(); ended != nil {
			why = fmt.Errorf("it %w", ended)
		}
	}
	tail := private(g.Dir).tail(g.Token)
	return &LaunchError{Problem: why.Error(), Tail: tail, Err: why}, saysPortTaken(tail)
}

// SharedProcess returns the process that has told that it is the gateway with this
// private directory, false when none has. The caller makes sure that the gateway
// lives: else its pid may be another's by now.
func SharedProcess(dir string) (process.Identity, bool) {
	pid, err := readNote(private(dir).join("pid"))
	if err != nil {
		return process.Identity{}, false
	}
	n, err := strconv.Atoi(string(pid))
	if err != nil {
		return process.Identity{}, false
	}
	id, err := process.Identify(n)
	return id, err == nil
}

// SharedAnswers returns nil when the gateway answers as ours: another process may
// have taken the port before it.
func SharedAnswers(ctx context.Context, url, token, dir string) error {
	client := &http.Client{
		Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return (&Server{url: url, token: token, dir: private(dir)}).healthy(ctx, client)
}

// Settle gives the private directory to the gateway: it goes when the gateway is
// gone.
func Settle(id process.Identity, dir string) error {
	owner, err := json.Marshal(id)
	if err == nil {
		err = os.WriteFile(private(dir).owner(), owner, 0o600)
	}
	if err != nil {
		return fmt.Errorf("settle the kernel gateway: %w", err)
	}
	return nil
}

// Remove ends a shared gateway with its kernels and removes its private
// directory; it reports whether all of them are gone. One that has ended already
// may have left kernels and files, which are removed too.
func Remove(ctx context.Context, id process.Identity, dir string) bool {
	var all []process.Identity
	seen := true
	if !process.Ended(id) {
		below, err := process.Descendants(id)
		seen = err == nil || errors.Is(err, process.ErrNoProcess) || errors.Is(err, process.ErrUnsupported)
		all = append(append(all, id), below...)
	}
	if private(dir).ours() {
		for _, script := range []string{private(dir).script(), private(dir).join("gateway.py")} {
			holding, err := process.Holding(script)
			seen = seen && (err == nil || errors.Is(err, process.ErrUnsupported))
			all = append(all, holding...)
		}
	}
	gone := len(opportunity.KillAll(ctx, all)) == 0 && seen
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

// Bounds of the files in a private directory, in bytes.
const (
	maxNote = 1 << 20
	maxLog  = 256 << 10 // of the end of a log, in which tailLines are looked for
)

// readNote reads a small file of a private directory. A kernel, which runs as the
// same user, may have put something else there.
func readNote(path string) ([]byte, error) { return file.Read(context.Background(), path, maxNote) }

// tail returns the end of what a shared gateway printed, without the token.
func (p private) tail(token string) []string {
	f, err := file.Open(p.join("log"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	from := max(info.Size()-maxLog, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, maxLog))
	if err != nil {
		return nil
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n")) // half a line may hold half a token
	}
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(string(data), token, "[token]"), "\n"), "\n")
	return lines[max(0, len(lines)-tailLines):]
}

func saysPortTaken(tail []string) bool {
	printed := strings.ToLower(strings.Join(tail, "\n"))
	return strings.Contains(printed, "already in use") || strings.Contains(printed, "no available port")
}
