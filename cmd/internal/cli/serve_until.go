package cli

import (
	"context"
	"errors"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/hibernate"
)

// forgets reports whether nothing of a host's sessions is there once its server was asked to end.
func forgets(with coppice.Options) bool {
	return with.Hibernate == "" || with.Hibernate == hibernate.Never
}

// serveUntil serves until ctx ends, or until another process serves in its place, and tells
// others of the server for that time. It returns what is to be gone on with, when that other
// process has ended before.
func (a *app) serveUntil(ctx context.Context, f serveFlags, l *leaving, path string, in *inheritance) (*inheritance, error) {
	server := l.server
	fail := func(err error) (*inheritance, error) { return nil, errors.Join(err, server.Close()) }
	record := server.Record(l.host.Launcher().Dir())
	if err := httpserver.WriteRecord(path, record); err != nil {
		return fail(err)
	}
	gone := false // another one tells of itself there
	page, remove, err := writeSignIn(path, record)
	defer func() {
		select {
		case <-l.gone(): // it was left just when it ended: nobody is heard any more
			gone = true
		default:
		}
		if gone {
			return
		}
		if err := errors.Join(httpserver.RemoveRecord(path, record), remove()); err != nil {
			a.Err.Lines("coppice: " + err.Error())
		}
	}()
	if err != nil {
		return fail(err)
	}
	l.offers(f, path)
	defer func() {
		if err := l.close(); err != nil {
			a.Err.Lines("coppice: " + err.Error())
		}
	}()
	defer a.onReplace(l.offer)()
	if in == nil || in.owns != nil { // else it has served before
		if err := a.tellWhere(f, record, path, page); err != nil {
			return fail(err)
		}
	}
	if f.open && in == nil {
		if err := a.openBrowser(page); err != nil {
			a.Err.Lines("coppice: " + err.Error()) // the server serves all the same
		}
	}
	if in != nil {
		in.serves()
	}
	l.served = true
	l.run(ctx)
	select {
	case err := <-l.ended:
		l.end()
		return nil, err
	case to := <-l.gone():
		gone = true
		return l.after(ctx, to)
	}
}
