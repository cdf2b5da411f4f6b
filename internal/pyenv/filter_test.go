package pyenv_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/internal/pyenv"
)

// hostile is what a developer's shell holds on a bad day. Each name says
// whether it may reach an interpreter.
var hostile = []struct {
	name  string
	pass  bool
	value string
}{
	{"PATH", true, "/usr/bin"},
	{"HOME", true, "/home/u"},
	{"LANG", true, "C.UTF-8"},
	{"LC_ALL", true, "C"},
	{"LC_PAPER", true, "de_DE"},
	{"XDG_STATE_HOME", true, "/x"},
	{"VIRTUAL_ENV", true, "/v"},
	{"PYTHONPATH", true, "/p"},
	{"LD_LIBRARY_PATH", true, "/l"},
	{"SSH_AUTH_SOCK", true, "/tmp/agent"},
	{"CONDA_PREFIX", true, "/c"},
	{"PI_SESSION_FILE", true, "/s.json"},
	{"PI_ARTIFACTS_DIR", true, "/a"},
	{"PI_TOOL_BRIDGE_URL", false, "http://127.0.0.1:1"},
	{"PI_TOOL_BRIDGE_SESSION", false, "s"},
	{"PROGRAMFILES(X86)", true, `C:\p`},
	{"SYSTEMROOT", true, `C:\w`},
	{"PI_PYTHON_GATEWAY_TOKEN", false, "s"},
	{"PI_TOOL_BRIDGE_TOKEN", false, "s"},
	{"PI_API_KEY", false, "s"},
	{"PI_APIKEYS", false, "s"},
	{"PI_CLIENT_SECRET_FILE", false, "s"},
	{"PI_DB_PASSWORD", false, "s"},
	{"PI_AWS_CREDENTIALS", false, "s"},
	{"PI_Access_Token", false, "s"},
	{"PI_PROXY_AUTH", false, "s"},
	{"PI_PYTHON_GATEWAY_URL", true, "http://127.0.0.1:8888/base?x=1"},
	{"PI_SERVER", false, "https://user:word@host/"},
	{"PI_NOTEBOOK", false, "http://host/?a=1&token=s"},
	{"PI_GITHUB_PAT", false, "s"},
	{"PI_DB_DSN", false, "s"},
	{"PI_FTP_PWD", false, "s"},
	{"PI_DEPLOY_CREDS", false, "s"},
	{"PI_PATH_STYLE", true, "x"},
	{"XDG_SESSION_COOKIE", false, "s"},
	{"LC_SECRET", false, "s"},
	{"OPENAI_API_KEY", false, "s"},
	{"ANTHROPIC_API_KEY", false, "s"},
	{"GOOGLE_API_KEY", false, "s"},
	{"GEMINI_API_KEY", false, "s"},
	{"PERPLEXITY_COOKIES", false, "s"},
	{"MISTRAL_API_KEY", false, "s"},
	{"AWS_SECRET_ACCESS_KEY", false, "s"},
	{"GITHUB_TOKEN", false, "s"},
	{"KG_AUTH_TOKEN", false, "s"},
	{"KG_ALLOW_ORIGIN", false, "*"},
	{"JUPYTER_CONFIG_DIR", false, "/evil"},
	{"PYTHONSTARTUP", false, "/evil.py"},
	{"PYTHONHOME", false, "/evil"},
	{"LD_PRELOAD", false, "/evil.so"},
	{"BASH_ENV", false, "/evil.sh"},
	{"PIP_INDEX_URL", false, "http://u:p@i"},
	{"https_proxy", false, "http://u:p@i"},
	{"home", false, "/home/other"},
	{"pi_lower", false, "x"},
	{"PIPE", false, "x"},
}

func TestFilterHostileEnvironment(t *testing.T) {
	t.Parallel()
	var env, want []string
	for _, h := range hostile {
		env = append(env, h.name+"="+h.value)
		if h.pass {
			want = append(want, h.name+"="+h.value)
		}
	}
	require.GreaterOrEqual(t, len(env), 40)
	before := strings.Join(env, "\n")
	require.Empty(t, cmp.Diff(want, pyenv.FilterAs(env, false)))
	require.Equal(t, before, strings.Join(env, "\n"), "the argument is not changed")
}

func TestFilter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		env, want []string
		fold      bool
	}{
		{name: "nothing", want: []string{}},
		{name: "entries without a name or a value", env: []string{"HOME", "=x", "", "LANG="}, want: []string{"LANG="}},
		{name: "values with equal signs", env: []string{"PI_X=a=b"}, want: []string{"PI_X=a=b"}},
		{name: "order and repetition stay", env: []string{"LANG=a", "HOME=h", "LANG=b"}, want: []string{"LANG=a", "HOME=h", "LANG=b"}},
		{name: "the case of names counts", env: []string{"Path=x", "SystemRoot=y"}, want: []string{}},
		{name: "on Windows it does not", fold: true, env: []string{"Path=x", "SystemRoot=y", "pi_Mode=z"}, want: []string{"PATH=x", "SystemRoot=y", "pi_Mode=z"}},
		{
			name: "what is named passes too", env: []string{"TZ=UTC", "https_proxy=http://u:p@i", "CUDA_HOME=/c", "NODE=x", "COPPICE_PASS_ENV=TZ, https_proxy,CUDA_HOME"},
			want: []string{"TZ=UTC", "https_proxy=http://u:p@i", "CUDA_HOME=/c", "COPPICE_PASS_ENV=TZ, https_proxy,CUDA_HOME"},
		},
		{
			name: "and families of names, without their secrets", env: []string{"COPPICE_PASS_ENV=CUDA_* AWS_* *", "CUDA_A=1", "AWS_REGION=r", "AWS_SECRET_ACCESS_KEY=s", "AWS_X=https://u:p@i/", "OTHER=1"},
			want: []string{"COPPICE_PASS_ENV=CUDA_* AWS_* *", "CUDA_A=1", "AWS_REGION=r"},
		},
		{name: "but never what is denied", env: []string{"COPPICE_PASS_ENV=OPENAI_API_KEY,PI_TOOL_BRIDGE_TOKEN", "OPENAI_API_KEY=s", "PI_TOOL_BRIDGE_TOKEN=s"}, want: []string{"COPPICE_PASS_ENV=OPENAI_API_KEY,PI_TOOL_BRIDGE_TOKEN"}},
		{name: "the last list counts", env: []string{"COPPICE_PASS_ENV=TZ", "TZ=x", "A=b", "COPPICE_PASS_ENV=A"}, want: []string{"COPPICE_PASS_ENV=TZ", "A=b", "COPPICE_PASS_ENV=A"}},
		{name: "on Windows without case", fold: true, env: []string{"COPPICE_PASS_ENV=tz", "Tz=x"}, want: []string{"COPPICE_PASS_ENV=tz", "Tz=x"}},
		{name: "nor for secrets", fold: true, env: []string{"pi_Api_Token=x", "OpenAI_Api_Key=x", "=C:=C:\\"}, want: []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(tt.want, pyenv.FilterAs(tt.env, tt.fold)))
		})
	}
}

// Whatever comes in, nothing that looks like a secret comes out, and a second
// pass changes nothing.
func FuzzFilter(f *testing.F) {
	for _, h := range hostile {
		f.Add(h.name+"="+h.value, true)
	}
	f.Fuzz(func(t *testing.T, entry string, fold bool) {
		once := pyenv.FilterAs([]string{entry}, fold)
		for _, e := range once {
			name, _, ok := strings.Cut(e, "=")
			require.True(t, ok && name != "")
			for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY"} {
				require.NotContains(t, strings.ToUpper(name), word)
			}
		}
		require.Empty(t, cmp.Diff(once, pyenv.FilterAs(once, fold)))
	})
}
