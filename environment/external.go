package environment

import (
	"context"

	"github.com/coppice-run/coppice/internal/jupyter"
)

// AskExternal asks Jupyter servers that somebody else runs, in their order, whether
// one can be used: it answers and takes its token. urls and tokens are as in
// coppice.Options.GatewayURL and GatewayToken. The error says why the last cannot,
// and holds no token; each server has 5 s to answer. It is nil without servers.
func AskExternal(ctx context.Context, urls, tokens string) error {
	all, err := jupyter.ParseRemotes(urls, tokens)
	for _, e := range all {
		if _, err = jupyter.AskExternal(ctx, e.URL, e.Token); err == nil {
			return nil
		}
	}
	return err
}
