package client

import (
	"errors"
	"net/url"
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// ErrNoSession is returned where a key names no session: there is none that is meant
// by leaving the name out. The server is not asked.
var ErrNoSession = errors.New("the session has no name")

// session is the path of a session and the query that goes with it. An empty Cwd
// means the server's, or the folder of the workspace.
func session(key messages.SessionKey, action string) (path string, query url.Values, err error) {
	if key.Session == "" {
		return "", nil, ErrNoSession
	}
	query = url.Values{}
	if key.Cwd != "" {
		query.Set("cwd", key.Cwd)
	}
	within(query, key)
	return "api/sessions/" + url.PathEscape(key.Session) + action, query, nil
}

// within adds to a query the workspace and the kernelspec of a session, where it has them.
func within(query url.Values, key messages.SessionKey) {
	if key.Workspace != "" {
		query.Set("workspace", key.Workspace)
	}
	if key.Kernel != "" {
		query.Set("kernel", key.Kernel)
	}
}

// workspaceOf is the workspace of a session that is named so.
func workspaceOf(session string) string { return strings.Split(session, "\x00")[2] }

// sessionOf names a session among those of a client.
func sessionOf(session, cwd, workspace, kernel string) string {
	return session + "\x00" + cwd + "\x00" + workspace + "\x00" + kernel
}
