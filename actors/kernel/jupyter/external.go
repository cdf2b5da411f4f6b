package jupyter

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-run/coppice/internal/jupyter"
	"github.com/coppice-run/coppice/messages"
)

// healthWait bounds the question whether an external server can be used.
const healthWait = 5 * time.Second

// ExternalError says why an external server cannot be used.
type ExternalError struct {
	// URL is the server's.
	URL string
	// Timeout says that it gave no answer in time, Denied that it wants another
	// token; Status is the HTTP status of an answer that was not a success, else 0.
	Timeout, Denied bool
	Status          int
	// Err is what was observed.
	Err error
}

// Error says what is wrong, and what to do where that is known.
func (e *ExternalError) Error() string {
	text := "External gateway at " + e.URL
	switch {
	case e.Denied:
		return text + " requires authentication. Set PI_PYTHON_GATEWAY_TOKEN."
	case e.Status != 0:
		return fmt.Sprintf("%s returned status %d", text, e.Status)
	case e.Timeout:
		return text + " is not reachable (timeout)"
	}
	why := e.Err
	if unreachable, ok := errors.AsType[*jupyter.UnreachableError](e.Err); ok {
		why = unreachable.Err
	}
	text = fmt.Sprintf("%s is not reachable: %v", text, why)
	if errors.As(e.Err, new(x509.UnknownAuthorityError)) {
		text += "; name a file with its certificate in SSL_CERT_FILE, if you trust it"
	}
	return text
}

// Lasting reports whether somebody has to change something: the token.
func (e *ExternalError) Lasting() bool { return e.Denied }

// Unwrap returns what was observed.
func (e *ExternalError) Unwrap() error { return e.Err }

// usable returns nil when a server answers and accepts the token, else an
// [*ExternalError].
func usable(ctx context.Context, client *jupyter.Client) error {
	c, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	err := client.Healthy(c)
	if err == nil {
		return nil
	}
	e := &ExternalError{URL: client.URL(), Denied: errors.Is(err, jupyter.ErrUnauthorized), Err: err}
	if status, ok := errors.AsType[*jupyter.StatusError](err); ok {
		e.Status = status.Code
	}
	if unreachable, ok := errors.AsType[*jupyter.UnreachableError](err); ok {
		e.Timeout = unreachable.Timeout
	}
	return e
}

// runExternal uses external servers, which this host did not start. One that does not
// answer is an error when it is the only one; of several it is left out until it
// does.
func (s *Server) runExternal(ctx context.Context, up func(pid int)) error {
	remotes, err := jupyter.ParseRemotes(s.o.URL, s.o.Token)
	if err != nil {
		return err
	}
	calls, closeBridge, err := s.openBridge(ctx, slices.ContainsFunc(remotes, func(r jupyter.Remote) bool { return onThisMachine(r.URL) }), "", nil, nil)
	if err != nil {
		return err
	}
	defer closeBridge()
	ends := make([]*Endpoint, len(remotes))
	for i, r := range remotes {
		client, err := jupyter.NewClient(jupyter.Options{URL: r.URL, Token: r.Token, Trace: s.trace()})
		if err != nil {
			return err
		}
		defer client.Close()
		ends[i] = &Endpoint{Client: client, KernelEnv: kernelVariables(s.o.Env), several: len(remotes) > 1}
		if onThisMachine(r.URL) {
			ends[i].Bridge = calls
		}
	}
	if err := firstLook(ctx, ends); err != nil {
		return stopped(ctx, err)
	}
	s.ends.There(ends)
	up(0)
	if len(ends) == 1 {
		<-ctx.Done()
		return nil
	}
	for again := time.NewTicker(lookAgain); ; {
		select {
		case <-again.C:
			look(ctx, ends, true)
		case <-ctx.Done():
			again.Stop()
			return nil
		}
	}
}

// lookAgain is how often a server that is gone is asked whether it is back.
const lookAgain = 2 * time.Second

// firstLook asks all servers, and fails when none can be used, or when one refuses
// the token: no later try will mend that.
func firstLook(ctx context.Context, ends []*Endpoint) error {
	problems := look(ctx, ends, false)
	bad := 0
	for i, err := range problems {
		switch {
		case err == nil:
			continue
		case !unreachable(err):
			return err
		}
		bad++
		ends[i].gone.Store(true)
	}
	if bad < len(ends) {
		return nil
	}
	if bad == 1 {
		return problems[0]
	}
	texts := make([]string, bad)
	for i, err := range problems {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}

// look asks servers, all at a time, whether they can be used, and returns what is
// wrong with each. With gone it asks those that are gone, and notes which are back.
func look(ctx context.Context, ends []*Endpoint, gone bool) []error {
	problems := make([]error, len(ends))
	var asking sync.WaitGroup
	for i, e := range ends {
		if gone && !e.gone.Load() {
			continue
		}
		asking.Go(func() {
			if problems[i] = usable(ctx, e.Client); gone && problems[i] == nil {
				e.gone.Store(false)
			}
		})
	}
	asking.Wait()
	return problems
}

// unreachable says that an error is about a server that is not there, and not
// about what it answered.
func unreachable(err error) bool {
	e, ok := errors.AsType[*ExternalError](err)
	return ok && e.Status == 0
}

// place returns the server of a session by rendezvous hashing: each server has a
// number for each session, and the highest that is not gone wins. So sessions are
// spread, one that is added or taken away moves only its share of them, and every
// host chooses the same.
func place(ends []*Endpoint, key messages.SessionKey) (*Endpoint, error) {
	var best *Endpoint
	var highest uint64
	for _, e := range ends {
		sum := sha256.Sum256([]byte(e.Client.URL() + "\x00" + key.ID()))
		if n := binary.BigEndian.Uint64(sum[:]); !e.gone.Load() && (best == nil || n > highest) {
			best, highest = e, n
		}
	}
	if best != nil {
		return best, nil
	}
	urls := make([]string, len(ends))
	for i, e := range ends {
		urls[i] = e.Client.URL()
	}
	return nil, errors.New("External gateways " + strings.Join(urls, ", ") + " are all gone")
}

// left says whether a server is one of several and gone, which it notes: the
// sessions on it go to others.
func (e *Endpoint) left(ctx context.Context) bool {
	if !e.several {
		return false
	}
	if problem := usable(ctx, e.Client); problem == nil || !unreachable(problem) || ctx.Err() != nil {
		return false
	}
	e.gone.Store(true)
	return true
}

// kernelVariables returns what every Jupyter server passes on: the KERNEL_
// variables of the host's environment and, before them, those of a kernel. An
// Enterprise Gateway reads there who the user is and where the kernel goes.
func kernelVariables(host []string) func(extra map[string]string) map[string]string {
	return func(extra map[string]string) map[string]string {
		env := map[string]string{}
		for _, kv := range host {
			if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "KERNEL_") {
				env[k] = v
			}
		}
		for k, v := range extra {
			if strings.HasPrefix(k, "KERNEL_") {
				env[k] = v
			}
		}
		return env
	}
}
