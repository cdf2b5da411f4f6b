package e2b

import (
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

	"github.com/coppice-run/coppice/workspace"
)

// What a token of a sandbox is for. Clients send the first with most requests, and the
// second with those that concern contexts.
const (
	accessToken  = "access"
	trafficToken = "traffic"
)

// token is one of a sandbox. It opens the inside of that sandbox, until the server ends.
func (a *API) token(kind, id string) string {
	m := hmac.New(sha256.New, a.secret)
	_, _ = m.Write([]byte(kind + "\x00" + id)) // a hash takes all
	return hex.EncodeToString(m.Sum(nil))
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
		if access != "" && same(access, a.token(accessToken, id)) || traffic != "" && same(traffic, a.token(trafficToken, id)) {
			return true
		}
	}
	return path == "/files" && a.signed(r) != ""
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
	return a.signed(r)
}

// signed is the sandbox that a signed address of a file belongs to, "" when it is none, or
// has expired. The address does not name the sandbox: it is the one whose token signed it.
func (a *API) signed(r *http.Request) string {
	q := r.URL.Query()
	given := q.Get("signature")
	operation := map[string]string{http.MethodGet: "read", http.MethodHead: "read", http.MethodPost: "write"}[r.Method]
	if given == "" || operation == "" {
		return ""
	}
	until := ""
	if at := q.Get("signature_expiration"); at != "" {
		if expired(q) {
			return ""
		}
		until = ":" + at
	}
	signs := func(id string) bool {
		sum := sha256.Sum256([]byte(q.Get("path") + ":" + operation + ":" + q.Get("username") + ":" + a.token(accessToken, id) + until))
		return same(given, "v1_"+base64.RawStdEncoding.EncodeToString(sum[:]))
	}
	if id := r.Header.Get("E2b-Sandbox-Id"); id != "" {
		if signs(id) {
			return id
		}
		return ""
	}
	for _, i := range a.o.Host.Workspaces().List(workspace.Filter{}) {
		if signs(i.Name) {
			return i.Name
		}
	}
	return ""
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
