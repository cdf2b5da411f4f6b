package fleetapi

import (
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// Routes about one workspace.
const (
	workspacesRoute = "POST /api/workspaces"
	workspacePath   = "/api/workspaces/{workspace}"
)

// workspaceKey is the key of a workspace. Who has it has all that is in there: its sessions,
// files and processes.
func workspaceKey(name string) messages.SessionKey { return messages.SessionKey{Workspace: name} }

// IsWorkspace reports whether a key is that of a workspace as a whole.
func IsWorkspace(key messages.SessionKey) bool { return key.Workspace != "" && key.Session == "" }

// aboutWorkspace reports whether a route is about one workspace that is there.
func aboutWorkspace(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return path == workspacePath || strings.HasPrefix(path, workspacePath+"/")
}
