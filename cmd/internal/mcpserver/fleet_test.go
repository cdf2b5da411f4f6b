package mcpserver_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/cmd/internal/dialect"
	"github.com/coppice-run/coppice/cmd/internal/mcpserver"
	"github.com/coppice-run/coppice/messages"
)

// TestWhatARequestIsAbout: the connection, the session or the artifact, also one that another server
// of the fleet has made; a call that begins a session goes where its name says, and is the same
// wherever it is sent.
func TestWhatARequestIsAbout(t *testing.T) {
	t.Parallel()
	o := optionsOf(t, coppice.Options{})
	o.Cwd, o.Fleet = t.TempDir(), mcpserver.Fleet{Secret: []byte("of all servers"), Tag: mcpserver.NewTag()}
	other := o
	other.Fleet.Tag = mcpserver.NewTag()
	api, elsewhere := mcpserver.NewAPI(serverOf(t, o), o), mcpserver.NewAPI(serverOf(t, other), other)
	me, tag := strconv.Itoa(o.Fleet.Tag), strconv.Itoa(other.Fleet.Tag)

	about := func(body string, header ...string) (dialect.About, *http.Request) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, mcpserver.Path, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		require.False(t, api.Streams(r))
		return api.About(r, []byte(body)), r
	}
	begin := `{"method":"tools/call","params":{"name":"python","arguments":{"cells":[]}}}`
	begun, r := about(begin)
	require.True(t, begun.Makes && begun.Begins)
	require.Equal(t, o.Cwd, begun.Session.Cwd)
	require.Equal(t, begun, elsewhere.About(r, []byte(begin)), "whoever it is sent to finds the same")
	again, _ := about(begin)
	require.NotEqual(t, begun.Session, again.Session)
	forged, _ := about(begin, "Coppice-Mcp-Session", "mcp-"+strings.Repeat("a", 32))
	require.NotEmpty(t, forged.Session.Session)

	handle := r.Header.Get("Coppice-Mcp-Session")
	require.Regexp(t, `^mcp-[a-z2-7]{32}$`, handle)
	of := func(tool, more string) string {
		return `{"method":"tools/call","params":{"name":"` + tool + `","arguments":{"session":"` + handle + `"}` + more + `}}`
	}
	artifact := strconv.Itoa(other.Fleet.FirstArtifact() + 12)
	for name, tc := range map[string]struct {
		body   string
		header []string
		want   dialect.About
	}{
		"a call of a session":         {of("python", ""), nil, dialect.About{Session: begun.Session, Makes: true, Begins: true}},
		"an answer to its question":   {of("python", `,"requestState":"ABC.`+handle+`"`), nil, dialect.About{Session: begun.Session, Makes: true}},
		"an answer of who named none": {`{"method":"tools/call","params":{"name":"python","requestState":"ABC.` + handle + `"}}`, nil, dialect.About{Session: begun.Session, Makes: true}},
		"a look at it":                {of("sessions_list", ""), nil, dialect.About{Session: begun.Session}},
		"its interrupt":               {of("sessions_interrupt", ""), nil, dialect.About{Session: begun.Session}},
		"its end":                     {of("sessions_close", ""), nil, dialect.About{Session: begun.Session, Makes: true}},
		"an artifact":                 {`{"method":"tools/call","params":{"name":"artifact_read","arguments":{"artifact":"artifact://` + artifact + `"}}}`, nil, dialect.About{Near: "/mcp/at/" + tag}},
		"an artifact as a resource":   {`{"method":"resources/read","params":{"uri":"artifact://` + artifact + `"}}`, nil, dialect.About{Near: "/mcp/at/" + tag}},
		"a connection":                {`{"method":"tools/list"}`, []string{"Mcp-Session-Id", tag + "-ABC"}, dialect.About{Near: "/mcp/at/" + tag}},
		"a connection of its own": {
			`{"method":"tools/call","params":{"name":"python","arguments":{"session":"a","cwd":"/w"}}}`,
			[]string{"Mcp-Session-Id", me + "-ABC"},
			dialect.About{Near: "/mcp/at/" + me},
		},
		"a connection of nobody": {`{"method":"tools/list"}`, []string{"Mcp-Session-Id", "ABC"}, dialect.About{}},
	} {
		got, _ := about(tc.body, tc.header...)
		if name == "a connection of its own" {
			require.Equal(t, "/w", got.Holds.Cwd)
			require.Regexp(t, `^mcp-[a-z2-7]{16}/a$`, got.Holds.Session)
			got.Holds = messages.SessionKey{}
		}
		require.Equal(t, tc.want, got, name)
	}
	for name, body := range map[string]string{
		"the tools": `{"method":"tools/list"}`, "a session that there is none of": `{"method":"tools/call","params":{"name":"python","arguments":{"session":"mine"}}}`,
		"nothing": `[`, "sessions, of nobody": `{"method":"tools/call","params":{"name":"sessions_list"}}`, "a notebook": `{"method":"tools/call","params":{"name":"notebook_read"}}`,
		"a start": `{"method":"initialize"}`,
	} {
		got, _ := about(body)
		require.NotEmpty(t, got.Anywhere, name)
		got.Anywhere = ""
		require.Equal(t, dialect.About{}, got, name)
	}

	for path, want := range map[string]int{"/mcp/at/" + me: http.StatusOK, "/mcp/at/" + tag: http.StatusNotFound, "/mcp/at/0": http.StatusNotFound} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		require.True(t, api.Streams(r))
		require.Equal(t, dialect.About{}, api.About(r, nil))
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, r)
		require.Equal(t, want, rec.Code, path)
	}
	var none *mcpserver.API
	require.Empty(t, none.Mounts())
	none.Close()
}
