//go:build linux

package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel/jupyter"
	"github.com/coppice-run/coppice/actors/launcher"
	"github.com/coppice-run/coppice/agent"
	"github.com/coppice-run/coppice/internal/secret"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/sinks"
	"github.com/coppice-run/coppice/sinks/audit"
	"github.com/coppice-run/coppice/test/backends"
	"github.com/coppice-run/coppice/test/testpython"
	"github.com/coppice-run/coppice/test/toolbox"
)

// secretNames is a developer's shell on a bad day: nothing of it may reach code.
var secretNames = strings.Fields(`
	OPENAI_API_KEY ANTHROPIC_API_KEY GOOGLE_API_KEY GEMINI_API_KEY OPENROUTER_API_KEY PERPLEXITY_API_KEY
	PERPLEXITY_COOKIES EXA_API_KEY AZURE_OPENAI_API_KEY MISTRAL_API_KEY GROQ_API_KEY HF_TOKEN
	AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET GOOGLE_APPLICATION_CREDENTIALS
	GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN NPM_TOKEN PYPI_TOKEN TWINE_PASSWORD DOCKER_PASSWORD KUBECONFIG VAULT_TOKEN
	DATABASE_URL PGPASSWORD MYSQL_PWD REDIS_URL SLACK_BOT_TOKEN STRIPE_SECRET_KEY SENTRY_DSN
	KG_AUTH_TOKEN JUPYTER_TOKEN PIP_INDEX_URL HTTPS_PROXY
	PI_PYTHON_GATEWAY_TOKEN PI_TOOL_BRIDGE_TOKEN PI_API_KEY PI_CLIENT_SECRET PI_DB_PASSWORD PI_ACCESS_TOKEN
	PI_GITHUB_PAT PI_AUTH PI_JWT PI_DEPLOY_CREDS PI_SERVICE_DSN PI_PRIVATE XDG_SESSION_COOKIE LC_SECRET`)

// TestSecrets runs with such an environment and looks for it from inside: in
// kernels of both backends, in shell commands, in the process of a tool. Then it
// looks for the token of the gateway, and for the environment, in every file.
func TestSecrets(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(secretNames), 40)
	const mark = "hostile-value-of-"
	env := os.Environ()
	for _, name := range secretNames {
		env = append(env, name+"="+mark+name)
	}
	// Addresses that carry what opens them.
	env = append(env, "PI_SERVER=https://me:"+mark+"password@host/", "PI_NOTEBOOK=http://host/?token="+mark+"query")
	list, err := json.Marshal(secretNames)
	require.NoError(t, err)
	look := "import os, subprocess\nnames = " + string(list) + `
print("names", [n for n in names if n in os.environ])
print("values", [n for n, v in os.environ.items() if v.find("hostile-" + "value") >= 0])
pid, above = os.getppid(), 0
while pid > 1:
    try:
        above += open(f"/proc/{pid}/environ").read().count("hostile-" + "value")
    except OSError:
        pass
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
print("above", above)
print("children", subprocess.run(["env"], capture_output=True, text=True).stdout.count("hostile-" + "value"))
`
	for _, backend := range []string{backends.Gateway, backends.Runner} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			journal, err := sinks.OpenJournal(sinks.JournalOptions{Path: filepath.Join(home, "journal.jsonl")})
			require.NoError(t, err)
			o := coppice.Options{
				Backend: backends.Named(backend), Python: testpython.Path(t), Home: home, Env: env, Bash: true, TraceIPC: true,
				Output: coppice.OutputOptions{Artifacts: filepath.Join(home, "artifacts")}, Audit: &audit.Options{Path: filepath.Join(home, "audit.jsonl"), Code: true},
				Sinks: []sinks.Attachment{journal.Attachment()},
			}
			if backend == backends.Gateway {
				o.KeepSessions, o.Backend = true, coppice.Gateway(coppice.GatewayOptions{Shared: true, Idle: time.Second})
			}
			host, err := coppice.Start(t.Context(), o)
			require.NoError(t, err)
			end := func() {
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
				defer cancel()
				host.Shutdown(ctx)
				_, err := jupyter.StopShared(ctx, host.Dir())
				require.NoError(t, err)
			}
			t.Cleanup(end)

			r := run(t, host.Session("secrets"), cells(look, "env() and None", `run("env").stdout.count("hostile-" + "value")`))
			require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
			for _, want := range []string{"names []", "values []", "children 0", "above 0"} {
				require.Contains(t, r.Text, want)
			}
			tools, err := agent.Tools(host, agent.Options{Mode: agent.ModeBash})
			require.NoError(t, err)
			said, err := tools[0].Call(t.Context(), agent.Call{Session: conversation, Arguments: json.RawMessage(`{"command":"env; echo ran"}`)})
			require.NoError(t, err)
			require.Contains(t, said.Text, "ran")
			require.NotContains(t, said.Text, mark)
			for _, name := range secretNames {
				require.NotContains(t, said.Text, "\n"+name+"=")
			}

			// What is on disk while it runs, and the token, if there is one.
			token := ""
			places := []string{home}
			if backend == backends.Gateway {
				var record struct{ Gateways []struct{ Token, Dir string } }
				data, err := os.ReadFile(filepath.Join(host.Dir(), "agent", "python-gateway", "gateway.json"))
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(data, &record))
				require.Len(t, record.Gateways, 1)
				token = record.Gateways[0].Token
				require.GreaterOrEqual(t, len(token), 32)
				places = append(places, record.Gateways[0].Dir)
			}
			require.FileExists(t, host.TraceFile())
			seen := search(t, places, mark, token)
			require.GreaterOrEqual(t, seen["files"], 3, "%v", seen)
			end()
			search(t, places, mark, token)
		})
	}
	t.Run("tool", func(t *testing.T) {
		t.Parallel()
		box := toolbox.New(t)
		box.Add(toolbox.Tool{ID: "peek"})
		l, err := launcher.Start(t.Context(), launcher.Options{Dir: box.Dir, Home: t.TempDir(), Env: env})
		require.NoError(t, err)
		t.Cleanup(func() { l.Shutdown(context.Background()) })
		r, err := l.Run(t.Context(), launcher.Request{Tool: "peek", Inputs: toolbox.Inputs("env")})
		require.NoError(t, err)
		require.Equal(t, messages.OutcomeOK, r.Outcome, "%+v", r.Error)
		text := string(r.Outputs)
		require.Contains(t, text, "PATH")
		require.NotContains(t, text, mark)
		for _, name := range secretNames {
			require.NotContains(t, text, `"`+name+`"`)
		}
	})
}

// TestAuditMasksSecretsOfTheEnvironment runs code that holds values of the host's
// environment and of the request: the audit log masks what a kernel is not given.
func TestAuditMasksSecretsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	names := append(strings.Fields("GITHUB_PAT STRIPE_KEY DB_PWD MY_JWT MFA_OTP SERVICE_AUTH PI_DSN2"), secretNames...)
	env := os.Environ()
	code := "x = ["
	for _, name := range names {
		if secret.Name(name) { // KUBECONFIG and addresses are known by what they hold
			env = append(env, name+"=hostile-value-of-"+name)
			code += "'hostile-value-of-" + name + "', "
		}
	}
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	host, err := coppice.Start(t.Context(), coppice.Options{
		Backend: coppice.Runner(coppice.RunnerOptions{}), Python: testpython.Path(t), Home: t.TempDir(), Env: env, Audit: &audit.Options{Path: log, Code: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { host.Shutdown(context.Background()) })
	r, err := host.Session("audit").Execute(t.Context(), coppice.Request{
		Cells: []messages.Cell{{Code: code + "'hostile-value-of-request']; visible = 'stays'"}}, Env: map[string]string{"REQUEST_PAT": "hostile-value-of-request"},
	})
	require.NoError(t, err)
	require.Equal(t, messages.OutcomeOK, r.Outcome, r.Text)
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(data), "stays")
	require.NotContains(t, string(data), "hostile-value")
}

// search reads every file in the folders: none holds a value of the environment or
// the token, but gateway.json, which is for its owner alone. It counts the files.
func search(t *testing.T, places []string, mark, token string) map[string]int {
	t.Helper()
	seen := map[string]int{}
	for _, place := range places {
		err := filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // gone meanwhile, or a socket
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			seen["files"]++
			if place == places[0] { // what others write is in a folder of ours
				require.Zero(t, info.Mode().Perm()&0o077, path)
			}
			require.False(t, bytes.Contains(data, []byte(mark)), path)
			if token != "" && filepath.Base(path) != "gateway.json" {
				require.False(t, bytes.Contains(data, []byte(token)), path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return seen
}
