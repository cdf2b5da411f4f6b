package kernelserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
	"github.com/coppice-run/coppice/internal/process"
)

// Launch starts a gateway and returns once it answers. ctx bounds the start
// alone, not the life of the server. When Launch fails, the error is a
// [*LaunchError] and nothing of the attempt is left.
func Launch(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	for attempt := 1; ; attempt++ {
		s, err := launchOnce(ctx, o)
		if err == nil {
			return s, nil
		}
		if attempt == attempts || !portTaken(err) {
			return nil, err
		}
	}
}

func launchOnce(ctx context.Context, o Options) (*Server, error) {
	token := o.Token
	if token == "" {
		// A new one for each attempt: the last may have been shown to whoever
		// took the port.
		token = newToken()
	}
	place, err := newPlace(ctx, o)
	if err != nil {
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	defer place.close()
	dir, err := newPrivate(o)
	if err != nil {
		place.handed.close()
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	s := &Server{url: "http://127.0.0.1:" + strconv.Itoa(place.port), token: token, dir: dir, vars: o.KernelVars, walled: o.walled(), handed: place.handed}
	ring := process.RingOptions{}
	if o.Output != nil {
		ring.Tee = process.Lines(func(l string) { o.Output(s.scrub(l)) })
	}
	s.output = process.NewRing(ring)
	start, started, err := s.confined(o, dir, process.Options{
		Path: o.Runtime.Path, Args: o.args(dir, place.told()), Env: o.env(token, dir), Dir: dir.empty(), ExtraFiles: place.files(), Stdin: place.stdin,
		Stdout: s.output, Stderr: s.output, NoFile: noFile, Owner: o.Owner, User: o.User,
	})
	if err == nil {
		s.proc, err = process.Start(start)
	}
	started()
	place.close() // so that who asks hears of the gateway's end at once
	if err != nil {
		err = errors.Join(err, s.remove())
		return nil, &LaunchError{Problem: err.Error(), Err: err}
	}
	s.main = s.proc.Identity()
	subject := opportunity.Processes(s.main)
	if o.wrapped() || o.Rules.Inside() {
		subject = opportunity.Tree(s.main)
	}
	bound, done := opportunity.Within(ctx, o.Start, subject)
	err = s.awaitHealth(bound)
	done()
	if err == nil && o.wrapped() {
		s.main, err = inside(s.main)
	}
	if err != nil {
		failed := &LaunchError{Problem: err.Error(), Err: err}
		// No grace: it has no kernels yet, and ctx may have ended.
		if err := s.stop(context.WithoutCancel(ctx), -1); err != nil {
			failed.Err = errors.Join(failed.Err, err)
		}
		failed.Tail = s.Tail(tailLines) // all of it, now that it has ended
		return nil, failed
	}
	return s, nil
}

func newToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

// portTaken reports whether an attempt failed because somebody else listened.
func portTaken(err error) bool {
	var failed *LaunchError
	var exited *process.ExitError
	if !errors.As(err, &failed) || !errors.As(err, &exited) {
		return false
	}
	return saysPortTaken(failed.Tail)
}

// awaitHealth returns when the gateway answers as ours. Its end ends the wait.
func (s *Server) awaitHealth(ctx context.Context) error {
	client := &http.Client{
		Timeout: healthTimeout,
		// No proxy, no connection kept: nothing of this outlives the start.
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: s.Dialer()},
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	last := errors.New("not asked yet")
	for {
		select {
		case <-s.proc.Done():
			if err := s.proc.Err(); err != nil {
				return fmt.Errorf("it %w", err)
			}
			return errors.New("it exited with code 0")
		case <-ctx.Done():
			if spent, ok := errors.AsType[*opportunity.SpentError](context.Cause(ctx)); ok {
				return fmt.Errorf("it gave %w: %w", spent, last)
			}
			return fmt.Errorf("given up: %w", context.Cause(ctx))
		case <-ticker.C:
			if err := s.healthy(ctx, client); err == nil {
				return nil
			} else if ctx.Err() == nil {
				last = err
			}
		}
	}
}

// healthy asks for the kernelspecs. The answer must name our own script: by its
// path alone a server shows that it is the one we started.
func (s *Server) healthy(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/kernelspecs", nil)
	if err != nil {
		return fmt.Errorf("ask for the kernelspecs: %w", err)
	}
	req.Header.Set("Authorization", "token "+s.token)
	resp, err := client.Do(req)
	if err != nil {
		return err // http says what it did and where
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the kernelspecs: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the kernelspecs were answered with %s", resp.Status)
	}
	var specs struct {
		Kernelspecs map[string]struct {
			Spec struct {
				Argv []string `json:"argv"`
			} `json:"spec"`
		} `json:"kernelspecs"`
	}
	if err := json.Unmarshal(body, &specs); err != nil {
		return fmt.Errorf("read the kernelspecs: %w", err)
	}
	if !slices.Contains(specs.Kernelspecs["python3"].Spec.Argv, s.dir.script()) {
		return errors.New("another server answers on its port")
	}
	return nil
}
