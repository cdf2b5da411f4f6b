package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/messages"
)

// introspectPatience bounds how long an answer about code is waited for: whoever asked
// has typed on by then. What is given up is told, and can be asked again.
const introspectPatience = 30 * time.Second

// maxLooked bounds the code that a kernel is asked about, in characters.
const maxLooked = 1 << 20

// errBusy is what hears who asks a kernel that has something else to do.
var errBusy = errors.New("its kernel is busy")

// looked is what a client asks about code.
type looked struct {
	Code   *string  `json:"code"`
	Cursor *float64 `json:"cursor"` // in characters; 2.0 is a whole number, too
}

// at returns the code and the cursor in bytes.
func (l looked) at() (code string, cursor int, err error) {
	if l.Code == nil || l.Cursor == nil {
		return "", 0, badRequest{"code or cursor is missing", `send {"code": "math.sq", "cursor": 7}`}
	}
	code = *l.Code
	if n := utf8.RuneCountInString(code); n > maxLooked {
		return "", 0, badRequest{fmt.Sprintf("the code has %d characters", n), fmt.Sprintf("send at most %d", maxLooked)}
	}
	n := *l.Cursor
	if n != math.Trunc(n) || n < 0 {
		return "", 0, badRequest{fmt.Sprintf("cursor must be a whole number from 0, not %v", n), "count characters"}
	}
	for range int(min(n, float64(utf8.RuneCountInString(code)))) {
		_, size := utf8.DecodeRuneInString(code[cursor:])
		cursor += size
	}
	return code, cursor, nil
}

// introspect asks the kernel of a session about code, if it is there and idle: one that
// works is not made to answer later, and none is started for it.
func (a *API) introspect(w http.ResponseWriter, r *http.Request, ask func(ctx context.Context, s *coppice.Session, code string, cursor int) (any, error)) {
	var in looked
	if !a.body(w, r, &in) {
		return
	}
	code, cursor, err := in.at()
	if err != nil {
		a.problem(w, err)
		return
	}
	session, s, err := a.named(r, a.find)
	if err == nil && (s.State != messages.ChildIdle || s.Queue > 0) {
		err = fmt.Errorf("%w: the session %s is %s", errBusy, session.Key(), s.State)
	}
	if err != nil {
		a.problem(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), introspectPatience)
	defer cancel()
	answer, err := ask(ctx, session, code, cursor)
	if err != nil {
		a.problem(w, fmt.Errorf("%w, or could not say: %w", errBusy, err))
		return
	}
	httpserver.Answer(w, r, http.StatusOK, answer)
}

// complete tells what could stand at the cursor.
func (a *API) complete(w http.ResponseWriter, r *http.Request) {
	a.introspect(w, r, func(ctx context.Context, s *coppice.Session, code string, cursor int) (any, error) {
		c, err := s.Complete(ctx, code, cursor)
		if c.Matches == nil {
			c.Matches = []string{}
		}
		return coppice.Completion{Matches: c.Matches, Start: utf8.RuneCountInString(code[:min(c.Start, len(code))])}, err
	})
}

// inspect tells what the name at the cursor stands for.
func (a *API) inspect(w http.ResponseWriter, r *http.Request) {
	a.introspect(w, r, func(ctx context.Context, s *coppice.Session, code string, cursor int) (any, error) {
		text, err := s.Inspect(ctx, code, cursor)
		return map[string]string{"text": text}, err
	})
}
