package jupyter

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/coppice-run/coppice/internal/opportunity"
)

// How often a time of [Options], and one that an interrupt waits, fits into the time after
// which a server or a kernel is given up that has no processor to answer with.
const (
	ceilings          = 5
	interruptCeilings = 10
)

// patience is the budget of a time of the options.
func patience(d time.Duration) opportunity.Budget {
	return opportunity.Budget{Opportunity: d, Ceiling: ceilings * d}
}

// server is who answers requests.
func (c *Client) server() opportunity.Subject {
	if c.opts.Dial != nil { // the process waits for the kernel that the server runs in
		return c.kernels()
	}
	return opportunity.Processes(c.opts.Server)
}

// kernels are the server and its kernels: which of them one is, no one says.
func (c *Client) kernels() opportunity.Subject { return opportunity.Tree(c.opts.Server) }

// spent returns why ctx ended when that was a budget of a wait for a server or a kernel,
// nil for any other reason.
func spent(ctx context.Context) *opportunity.SpentError {
	e, _ := context.Cause(ctx).(*opportunity.SpentError) //nolint:errorlint // one that is wrapped is of somebody who waits for more
	return e
}

// quietPart is the part of a silence after which it is looked into: a connection on which
// pings are answered is never looked at.
const quietPart = 2

// quiet bounds one silence of a connection. The zero value begins one. One goroutine uses
// it.
type quiet struct {
	limit opportunity.Budget
	watch opportunity.Watch
	meter *opportunity.Meter
}

// goesOn says for how long to listen on, after so much silence that a deadline of d has
// passed; 0: it is over.
func (q *quiet) goesOn(d time.Duration, subject opportunity.Subject) time.Duration {
	if q.meter == nil {
		q.limit = patience(d - d/quietPart)
		q.limit.Ceiling += (ceilings - 1) * (d / quietPart)
		q.watch.Start()
		q.meter = opportunity.Begin(subject, &q.watch)
		return q.limit.Opportunity
	}
	return q.meter.Left(q.limit, q.meter.Measure())
}

// over gives back what it holds.
func (q *quiet) over() {
	if q.meter != nil {
		q.watch.Stop()
	}
}

// timedOut says that an error is a deadline of a connection.
func timedOut(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}
