package pyenv

import (
	"runtime"
	"strings"

	"github.com/coppice-run/coppice/internal/home"
	"github.com/coppice-run/coppice/internal/secret"
)

// foldNames says whether environment names differ by case alone on this system.
const foldNames = runtime.GOOS == "windows"

// allowed are the names that reach an interpreter, in two parts: what Unix
// programs expect, and what Windows cannot do without. Both parts hold on every
// system, since a host may run under either convention (Cygwin, WSL).
var allowed = nameSet(`
	PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE LC_MESSAGES
	TERM TERM_PROGRAM TERM_PROGRAM_VERSION TMPDIR TEMP TMP
	XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR
	SSH_AUTH_SOCK SSH_AGENT_PID CONDA_PREFIX CONDA_DEFAULT_ENV
	VIRTUAL_ENV PYTHONPATH LD_LIBRARY_PATH

	APPDATA COMPUTERNAME COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA
	NUMBER_OF_PROCESSORS OS PATHEXT PROCESSOR_ARCHITECTURE PROCESSOR_IDENTIFIER
	PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 SESSIONNAME
	SYSTEMDRIVE SYSTEMROOT USERDOMAIN USERDOMAIN_ROAMINGPROFILE USERPROFILE
	USERNAME WINDIR`)

// allowedPrefixes admit whole families of names, except what denies says.
var allowedPrefixes = []string{"LC_", "XDG_", "PI_"}

// denied are never admitted, whatever else is said of them: secrets, and the place
// of a host's own tool bridge, which is of no use without its token. A session that
// has a bridge of its own is told of it by another way.
var denied = nameSet(`
	OPENAI_API_KEY ANTHROPIC_API_KEY GOOGLE_API_KEY GEMINI_API_KEY
	OPENROUTER_API_KEY PERPLEXITY_API_KEY PERPLEXITY_COOKIES EXA_API_KEY
	AZURE_OPENAI_API_KEY MISTRAL_API_KEY
	PI_PYTHON_GATEWAY_TOKEN
	PI_TOOL_BRIDGE_TOKEN PI_TOOL_BRIDGE_URL PI_TOOL_BRIDGE_SESSION`)

// PassVariable is the variable of an environment that names more of its variables which
// may reach an interpreter, with blanks or commas between them: TZ, HTTPS_PROXY,
// SSL_CERT_FILE, CUDA_VISIBLE_DEVICES. A name that ends in * means all that begin so. It
// passes itself, since what was filtered may be filtered again.
const PassVariable = "COPPICE_PASS_ENV"

// extra are the names that an environment itself says may pass.
type extra struct {
	names    map[string]bool
	prefixes []string
}

// extraOf reads PassVariable; the last one wins, as in os/exec.
func extraOf(env []string, fold bool) extra {
	text := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, PassVariable+"="); ok {
			text = value
		}
	}
	if text == "" {
		return extra{}
	}
	if fold {
		text = strings.ToUpper(text)
	}
	x := extra{names: map[string]bool{PassVariable: true}}
	for _, n := range PassNames(text) {
		if prefix, ok := strings.CutSuffix(n, "*"); ok && prefix != "" {
			x.prefixes = append(x.prefixes, prefix)
			continue
		}
		x.names[n] = true
	}
	return x
}

// PassNames are the names that a value of [PassVariable] lists.
func PassNames(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// admits says whether a variable passes that the lists here do not let pass. One that is
// named may hold a password, as the address of a proxy does: whoever names it wants it
// there. What a family of names brings along may not.
func (x extra) admits(name, value string) bool {
	if denied[name] || denied[strings.ToUpper(name)] {
		return false
	}
	if x.names[name] {
		return true
	}
	for _, p := range x.prefixes {
		if strings.HasPrefix(name, p) {
			return !secret.Name(name) && !secret.Value(value)
		}
	}
	return false
}

// Filter returns the entries of an environment that may reach an interpreter:
// the names on the allow list and those with the prefixes LC_, XDG_ and PI_,
// except names on the deny list and prefixed ones whose name or value is a secret
// by the rule of package secret, and those that [PassVariable] names. A variable that is set
// by a name with COPPICE_ in place of its older one with PI_ comes out under that one.
// Entries without a name are dropped; the order stays, and env is not changed. On Windows
// names are compared without case, and the search path comes out as PATH.
func Filter(env []string) []string { return filter(env, foldNames) }

func filter(env []string, fold bool) []string {
	env = home.WithOlderNames(env)
	kept, more := make([]string, 0, len(env)), extraOf(env, fold)
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			continue
		}
		key := name
		if fold {
			key = strings.ToUpper(name)
		}
		if (!admits(key) || !allowed[key] && secret.Value(value)) && !more.admits(key, value) {
			continue
		}
		if key == "PATH" {
			entry = "PATH=" + value
		}
		kept = append(kept, entry)
	}
	return kept
}

// admits says whether a name passes. The deny list is asked first.
func admits(name string) bool {
	switch {
	case denied[name] || denied[strings.ToUpper(name)]:
		return false
	case allowed[name]:
		return true
	}
	for _, p := range allowedPrefixes {
		if strings.HasPrefix(name, p) {
			return !secret.Name(name)
		}
	}
	return false
}

func nameSet(names string) map[string]bool {
	set := make(map[string]bool)
	for n := range strings.FieldsSeq(names) {
		set[n] = true
	}
	return set
}
