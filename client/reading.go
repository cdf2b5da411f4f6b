package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// FileReader reads what a file of a workspace holds, as it comes. A connection that breaks
// is made again from where it broke; a file that has changed meanwhile is an
// error with code changed. Close it. It belongs to one goroutine.
type FileReader struct {
	c      *Client
	ctx    context.Context //nolint:containedctx // it is that of OpenFile, for the requests that reading makes
	path   string
	query  url.Values
	wait   *pause
	body   io.ReadCloser // nil: a request has to be made
	at     int64         // how much was read, from the start of the file
	end    int64         // where it ends
	etag   string
	mode   string
	latest time.Time
}

// ReadFile says what is read of a file. The zero value is all of it.
type ReadFile struct {
	// From is the first byte, and Bytes how many at most; 0: to the end.
	From, Bytes int64
}

// OpenFile opens a file of a workspace for reading; ctx is that of all that is read.
func (c *Client) OpenFile(ctx context.Context, name, path string, o ReadFile) (*FileReader, error) {
	at, err := workspace(name, "/files")
	if err != nil {
		return nil, err
	}
	r := &FileReader{c: c, ctx: ctx, path: at, query: url.Values{"path": {path}}, wait: c.newPause(), at: o.From, end: -1}
	if o.Bytes > 0 {
		r.end = o.From + o.Bytes
	}
	for {
		err := r.open()
		if err == nil {
			return r, nil
		}
		if !c.goOn(ctx, r.wait, err) {
			return nil, fmt.Errorf("read %s of the workspace %s: %w", path, name, err)
		}
	}
}

// open asks for what was not read yet.
func (r *FileReader) open() error {
	req, err := r.c.request(r.ctx, http.MethodGet, r.path, r.query, nil)
	if err != nil {
		return err
	}
	if r.at > 0 || r.end >= 0 {
		last := ""
		if r.end >= 0 {
			last = strconv.FormatInt(r.end-1, 10)
		}
		req.Header.Set("Range", "bytes="+strconv.FormatInt(r.at, 10)+"-"+last)
	}
	if r.etag != "" {
		req.Header.Set("If-Match", r.etag)
	}
	resp, err := r.c.open(req)
	if err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		_ = resp.Body.Close() // its text says no more
		r.end, r.body = r.at, http.NoBody
		return nil
	case http.StatusPreconditionFailed:
		_ = resp.Body.Close() // as above
		return &Error{Status: resp.StatusCode, Code: "changed", Message: "the file has changed while it was read", Hint: "read it again from the start"}
	default:
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // the status says enough
		_ = resp.Body.Close()
		return problem(resp.StatusCode, data)
	}
	r.body = resp.Body
	if r.etag == "" {
		r.etag, r.mode = resp.Header.Get("ETag"), resp.Header.Get("X-File-Mode")
		r.latest, _ = http.ParseTime(resp.Header.Get("Last-Modified")) // the server always says
		if resp.ContentLength >= 0 {
			r.end = r.at + resp.ContentLength
		}
	}
	return nil
}

// Size is how many bytes are read in all, -1 when the server did not say.
func (r *FileReader) Size() int64 { return r.end }

// ETag tells the version of the file, and Mode its permission bits, in octal.
func (r *FileReader) ETag() string { return r.etag }

// Mode returns the permission bits of the file, in octal.
func (r *FileReader) Mode() string { return r.mode }

// Modified is when the file was changed last, to the second.
func (r *FileReader) Modified() time.Time { return r.latest }

// Read reads on.
func (r *FileReader) Read(p []byte) (int, error) {
	for {
		if r.end >= 0 && r.at >= r.end {
			return 0, io.EOF
		}
		var err error
		if r.body == nil {
			err = r.open()
		} else {
			var n int
			n, err = r.body.Read(p)
			r.at += int64(n)
			if n > 0 {
				r.wait.progress()
				return n, nil
			}
			if errors.Is(err, io.EOF) && r.end < 0 {
				return 0, io.EOF
			}
		}
		if err == nil {
			continue
		}
		_ = r.Close() // the connection broke
		if !r.c.goOn(r.ctx, r.wait, err) {
			return 0, fmt.Errorf("read on at byte %d: %w", r.at, because(r.ctx, err))
		}
	}
}

// Close ends the reading.
func (r *FileReader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}

var _ io.ReadCloser = (*FileReader)(nil)
