package cli

import (
	"github.com/coppice-run/coppice/client"
	"github.com/coppice-run/coppice/cmd/internal/cli/console"
	"github.com/coppice-run/coppice/cmd/internal/e2b"
	"github.com/coppice-run/coppice/cmd/internal/jupyterapi"
	"github.com/coppice-run/coppice/internal/shell"
)

// clientKind is one of the kinds of clients that others have: what a server has that serves them, and which
// variables say where it is.
type clientKind struct {
	path       string
	addresses  []string
	base, name string
}

var clientKinds = map[string]clientKind{
	"e2b":     {"e2b/sandboxes", []string{"E2B_API_URL", "E2B_SANDBOX_URL"}, e2b.Base, "E2B_API_KEY"},
	"jupyter": {"jupyter/api", []string{"JUPYTER_GATEWAY_URL"}, jupyterapi.Base, "JUPYTER_GATEWAY_AUTH_TOKEN"},
}

// exports are the lines that a shell reads.
func (k clientKind) exports(url, token string) []string {
	var lines []string
	for _, name := range k.addresses {
		lines = append(lines, "export "+name+"="+shell.Quote(url+k.base))
	}
	return append(lines, "export "+k.name+"="+shell.Quote(token))
}

// tellClients prints what a shell has to read for the clients of others, or how it gets that where
// what is printed may be kept: only a terminal is given the token.
func tellClients(out *console.Output, whom, name string, r client.Record) {
	if !out.Terminal {
		out.Lines("for "+whom+", at "+r.URL+clientKinds[name].base+":", `  eval "$(coppice health --export `+name+`)"`)
		return
	}
	out.Lines("for " + whom + ":")
	for _, line := range clientKinds[name].exports(r.URL, r.Token) {
		out.Lines("  " + line)
	}
}
