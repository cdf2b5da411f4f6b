package jupyter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// maxBody bounds what is read of an answer. Kernelspecs are the largest.
const maxBody = 16 << 20

// Kernelspecs asks for the kinds of kernels that the server can start.
func (c *Client) Kernelspecs(ctx context.Context) (Kernelspecs, error) {
	const path = "/api/kernelspecs"
	body, err := c.do(ctx, http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		return Kernelspecs{}, err
	}
	specs, err := decodeKernelspecs(body)
	if err != nil {
		return Kernelspecs{}, fmt.Errorf("GET %s: %w", path, err)
	}
	return specs, nil
}

// Healthy returns nil when a Jupyter server answers at the URL and accepts the
// token. It asks for the kernelspecs: every kind of server has them, and all
// of them behind the token, unlike /api.
func (c *Client) Healthy(ctx context.Context) error {
	_, err := c.Kernelspecs(ctx)
	return err
}

// Create starts a kernel process. The answer comes before the kernel is up.
//
// It is not idempotent. When the answer is lost the kernel may exist: then
// [CreateRequest.ID] may name it, if the server honours it.
func (c *Client) Create(ctx context.Context, r CreateRequest) (KernelModel, error) {
	const path = kernelsPath
	body, err := encodeCreate(r)
	if err != nil {
		return KernelModel{}, fmt.Errorf("POST %s: %w", path, err)
	}
	answer, err := c.do(ctx, http.MethodPost, path, body, http.StatusCreated, http.StatusOK)
	if err != nil {
		return KernelModel{}, err
	}
	m, err := decodeKernelModel(answer)
	if err != nil {
		return KernelModel{}, fmt.Errorf("POST %s: %w", path, err)
	}
	return m, nil
}

// Get asks what the server knows of a kernel. [ErrNotFound]: nothing.
func (c *Client) Get(ctx context.Context, id string) (KernelModel, error) {
	path := kernelPath(id)
	body, err := c.do(ctx, http.MethodGet, path, nil, http.StatusOK)
	if err != nil {
		return KernelModel{}, err
	}
	m, err := decodeKernelModel(body)
	if err != nil {
		return KernelModel{}, fmt.Errorf("GET %s: %w", path, err)
	}
	return m, nil
}

// Delete ends a kernel. It returns nil when the kernel is gone, be it since
// long ago. A kernel that ignores signals takes the server 5 s.
func (c *Client) Delete(ctx context.Context, id string) error {
	_, err := c.do(ctx, http.MethodDelete, kernelPath(id), nil, http.StatusNoContent, http.StatusOK)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// InterruptKernel makes the server send the kernel an interrupt. It returns
// when that was sent, not when something has stopped.
func (c *Client) InterruptKernel(ctx context.Context, id string) error {
	_, err := c.do(ctx, http.MethodPost, kernelPath(id)+"/interrupt", nil, http.StatusNoContent, http.StatusOK)
	return err
}

// kernelsPath is the path of all kernels.
const kernelsPath = "/api/kernels"

// kernelPath returns the path of a kernel's resource.
func kernelPath(id string) string { return kernelsPath + "/" + url.PathEscape(id) }

// do makes one request and returns the body of an answer with one of the
// wanted codes.
func (c *Client) do(ctx context.Context, method, path string, body []byte, want ...int) ([]byte, error) {
	timeout := c.opts.RequestTimeout
	if method == http.MethodPost && path == kernelsPath {
		timeout = max(timeout, c.opts.DialTimeout) // some servers answer when the kernel is up
	}
	ctx, done := opportunity.Within(ctx, patience(timeout), c.server())
	defer done()
	started := time.Now()
	code := 0
	defer func() {
		c.trace(TraceRecord{Direction: Requested, Method: method, Path: path, Code: code, Duration: time.Since(started)})
	}()

	var in io.Reader
	if body != nil {
		in = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.rest+path, in)
	if err != nil {
		return nil, fmt.Errorf("%s %s: the request is malformed", method, path)
	}
	req.Header = c.header()
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, unanswered(ctx, method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	code = resp.StatusCode
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, unanswered(ctx, method, path, err)
	}
	if len(answer) > maxBody {
		return nil, fmt.Errorf("%s %s: the answer is larger than %d bytes", method, path, maxBody)
	}
	if slices.Contains(want, code) {
		return answer, nil
	}
	return nil, newStatusError(method, path, code, refusalIn(answer))
}

// unanswered sorts what went wrong with a request that got no answer: the
// caller left (its cause is returned), time ran out, or the network failed.
func unanswered(ctx context.Context, method, path string, err error) error {
	// *url.Error repeats the method and the whole URL.
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		err = ue.Err
	}
	out := &UnreachableError{Method: method, Path: path, Sent: true, Err: err}
	if oe := (*net.OpError)(nil); errors.As(err, &oe) && oe.Op == "dial" {
		out.Sent = false
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if errors.Is(ctx.Err(), context.Canceled) && spent(ctx) == nil {
			return fmt.Errorf("%s %s: %w", method, path, cause)
		}
		out.Timeout, out.Err = true, cause
		return out
	}
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		out.Timeout = true
	}
	return out
}
