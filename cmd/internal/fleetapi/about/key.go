package about

import (
	"strings"

	"github.com/coppice-run/coppice/messages"
)

// Routes about one workspace.
const (
	WorkspacesRoute = "POST /api/workspaces"
	WorkspacePath   = "/api/workspaces/{workspace}"
)

// WorkspaceKey is the key of a workspace. Who has it has all that is in there: its sessions,
// files and processes.
func WorkspaceKey(name string) messages.SessionKey { return messages.SessionKey{Workspace: name} }

// IsWorkspace reports whether a key is that of a workspace as a whole.
func IsWorkspace(key messages.SessionKey) bool { return key.Workspace != "" && key.Session == "" }

// IsInWorkspace reports whether a route is about one workspace that is there.
func IsInWorkspace(pattern string) bool {
	_, path, _ := strings.Cut(pattern, " ")
	return path == WorkspacePath || strings.HasPrefix(path, WorkspacePath+"/")
}
