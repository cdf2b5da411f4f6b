package e2b

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-run/coppice/cmd/internal/httpserver"
	"github.com/coppice-run/coppice/workspace"
)

// What a token of a sandbox is for. Clients send the first with most requests, and the
// second with those that concern contexts.
const (
	accessToken  = "access"
	trafficToken = "traffic"
)

// token is one of a sandbox. It opens the inside of that sandbox, until the server ends, or
// the token opens nothing any more for whose holder it was made: issuer is the ID of that,
// "" where the server has one token for everything.
func (a *API) token(kind, id, issuer string) string {
	m := hmac.New(sha256.New, a.secret)
	_, _ = m.Write([]byte(kind + "\x00" + id + "\x00" + issuer)) // a hash takes all
	return hex.EncodeToString(m.Sum(nil))
}

// vouched reports whether something is a token of a sandbox that still opens it.
func (a *API) vouched(ctx context.Context, given, kind, id string) bool {
	if given == "" {
		return false
	}
	for _, issuer := range httpserver.Issuers(ctx) {
		if same(given, a.token(kind, id, issuer)) {
			return httpserver.Vouch(ctx, issuer)
		}
	}
	return false
}

// same compares secrets in a time that tells nothing of them.
func same(given, secret string) bool {
	x, y := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret)) // of one length, whatever came
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// knows reports whether a request to a path shows what it takes.
func (a *API) knows(r *http.Request, path string, opens func(string) bool) bool {
	key, access := r.Header.Get("X-API-Key"), r.Header.Get("X-Access-Token")
	if key != "" && opens(key) || access != "" && opens(access) {
		return true
	}
	if !opensInside(path) {
		return false // sandboxes are made and ended with the key alone
	}
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		traffic := r.Header.Get("E2B-Traffic-Access-Token")
		if a.vouched(r.Context(), access, accessToken, id) || a.vouched(r.Context(), traffic, trafficToken, id) {
			return true
		}
	}
	if path != "/files" {
		return false
	}
	id, issuer := a.signed(r)
	return id != "" && httpserver.Vouch(r.Context(), issuer)
}

// opensInside reports whether a path is one of the inside of a sandbox.
func opensInside(path string) bool {
	return slices.ContainsFunc(inside, func(p string) bool {
		return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// meant is the sandbox that a request is about.
func (a *API) meant(r *http.Request) string {
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		return id
	}
	id, _ := a.signed(r)
	return id
}

// signed is the sandbox that a signed address of a file belongs to, "" when it is none, or
// has expired. The address does not name the sandbox: it is the one whose token signed it. issuer is for whom that was made.
func (a *API) signed(r *http.Request) (id, issuer string) {
	q := r.URL.Query()
	given := q.Get("signature")
	operation := map[string]string{http.MethodGet: "read", http.MethodHead: "read", http.MethodPost: "write"}[r.Method]
	if given == "" || operation == "" {
		return "", ""
	}
	until := ""
	if at := q.Get("signature_expiration"); at != "" {
		if expired(q) {
			return "", ""
		}
		until = ":" + at
	}
	by := func(ids []string) (string, string) {
		return a.signedBy(r, q.Get("path")+":"+operation+":"+q.Get("username")+":", until, ids)
	}
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		return by([]string{id})
	}
	var here []string
	for _, i := range a.o.Host.Workspaces().List(workspace.Filter{}) {
		here = append(here, i.Name)
	}
	if id, issuer = by(here); id == "" {
		id, issuer = by(a.others(r.Context()))
	}
	return id, issuer
}

// signedBy is the one of some sandboxes whose token signed an address, of which before and until
// are what stands around the token. "": none.
func (a *API) signedBy(r *http.Request, before, until string, ids []string) (id, issuer string) {
	given, issuers := r.URL.Query().Get("signature"), httpserver.Issuers(r.Context())
	for _, id := range ids {
		for _, issuer := range issuers {
			sum := sha256.Sum256([]byte(before + a.token(accessToken, id, issuer) + until))
			if same(given, "v1_"+base64.RawStdEncoding.EncodeToString(sum[:])) {
				return id, issuer
			}
		}
	}
	return "", ""
}

// expired reports whether the signature of an address has an end that has come, or that
// cannot be read.
func expired(q url.Values) bool {
	at := q.Get("signature_expiration")
	if at == "" {
		return false
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	return err != nil || time.Now().Unix() > seconds
}

// lookAgain is after how long the sandboxes of other nodes are asked for once more.
const lookAgain = time.Second

// elsewhere are the sandboxes of other nodes, as they were at a time.
type elsewhere struct {
	turn  chan struct{} // taken by who looks
	at    time.Time
	names []string
}

// others are the names of the sandboxes of other nodes.
func (a *API) others(ctx context.Context) []string {
	if a.o.Elsewhere == nil {
		return nil
	}
	select {
	case a.elsewhere.turn <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-a.elsewhere.turn }()
	if time.Since(a.elsewhere.at) > lookAgain {
		a.elsewhere.names, a.elsewhere.at = a.o.Elsewhere(ctx), time.Now()
	}
	return a.elsewhere.names
}
