package mcpserver_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
)

// TestOnlyWhatIsDeclared is served, in each version of the protocol: there are no prompts.
func TestOnlyWhatIsDeclared(t *testing.T) {
	t.Parallel()
	url := served(t, optionsOf(t, coppice.Options{}))
	for _, version := range mcp.SupportedProtocolVersions() {
		cs := httpClient(t, url, nil, version)
		require.Nil(t, cs.InitializeResult().Capabilities.Prompts, version)
		_, err := cs.ListPrompts(t.Context(), nil)
		var told *jsonrpc.Error
		require.ErrorAs(t, err, &told, version)
		require.EqualValues(t, jsonrpc.CodeMethodNotFound, told.Code, version)
		_, err = cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "x"})
		require.ErrorAs(t, err, &told, version)
		require.EqualValues(t, jsonrpc.CodeMethodNotFound, told.Code, version)
	}
}
