package jupyter

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coppice-run/coppice/actors/internal/jupyter"
)

// healthWait bounds the question whether an external server can be used.
const healthWait = 5 * time.Second

// ExternalError says why a server that somebody else runs cannot be used.
type ExternalError struct {
	// URL is the server's.
	URL string
	// Timeout says that it gave no answer in time, Denied that it wants another
	// token; Status is the HTTP status of an answer that was no success, else 0.
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

// Unwrap returns what was observed.
func (e *ExternalError) Unwrap() error { return e.Err }

// ParseURLs reads the addresses of external servers: one, or several with commas
// or white space between them. The error names no credentials.
func ParseURLs(text string) ([]string, error) {
	var urls []string
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		client, err := jupyter.NewClient(jupyter.Options{URL: one})
		if err != nil {
			return nil, err
		}
		if !slices.Contains(urls, client.URL()) {
			urls = append(urls, client.URL())
		}
	}
	return urls, nil
}

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
