package console

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// flagOf are the flags, or else the variables, that fill in fields of options: the errors of the
// library name the fields, and whoever types a command line knows nothing of these.
var flagOf = map[string]string{
	"ArtifactBytes":           "the total size of a tool's files",
	"Backend":                 "--backend",
	"Beside":                  "the second backend",
	"GatewayOptions":          "the options of the gateway",
	"Hibernate":               "--hibernate",
	"IdleTTL":                 "--idle",
	"InterruptGrace":          "--interrupt-grace",
	"Isolation.Hosts":         "--isolation-host",
	"Isolation.Level":         "--isolation",
	"Isolation.Loopback":      "--isolation-loopback",
	"Isolation.Network":       "--isolation-network",
	"Isolation.Read":          "--isolation-read",
	"Isolation.Users":         "--isolation-users",
	"Isolation.Write":         "--isolation-write",
	"Isolation.Write or Read": "--isolation-write or --isolation-read",
	"KeepSessions":            "--keep-sessions",
	"KernelMode":              "--kernel-mode",
	"KernelName":              "--kernel",
	"Limits.CPU":              "--max-cpu",
	"Limits.Files":            "--max-files",
	"Limits.Memory":           "--max-memory",
	"Limits.Processes":        "--max-processes",
	"Limits.Processors":       "--max-processors",
	"Limits.Runtime":          "--max-runtime",
	"MaxSavedCheckpoints":     "--max-saved-checkpoints",
	"MaxSessions":             "--max-sessions",
	"MemoryBudgetMB":          "--memory-budget",
	"NoFork":                  "COPPICE_GATEWAY_NO_FORK",
	"PassEnv":                 "--pass-env",
	"SavedCheckpointAge":      "--keep-checkpoints-for",
	"StartTimeout":            "--start-timeout",
	"WarmMax":                 "--warm-max",
}

// ofLibrary finds the fields in a text: the longest name first, with what says whose they are.
var ofLibrary = func() *regexp.Regexp {
	names := slices.SortedFunc(maps.Keys(flagOf), func(a, b string) int { return len(b) - len(a) })
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	return regexp.MustCompile(`\b(?:Options\.)?(` + strings.Join(names, "|") + `)\b`)
}()

// inFlags is the text of an error about options as whoever has given flags reads it.
func inFlags(err error) string {
	text := err.Error()
	var b strings.Builder
	for {
		at := ofLibrary.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + text
		}
		quoted := strings.Count(b.String()+text[:at[0]], `"`)%2 == 1 // a value, which stays as it was given
		if quoted || at[0] > 0 && strings.ContainsRune("-_/.", rune(text[at[0]-1])) {
			b.WriteString(text[:at[1]])
		} else {
			b.WriteString(text[:at[0]] + flagOf[text[at[2]:at[3]]])
		}
		text = text[at[1]:]
	}
}

// OptionsError is a UsageError about options, in the words of the command line.
func OptionsError(err error) error { return UsageError{&inWords{err}} }

// inWords is an error of the library in the words of the command line.
type inWords struct{ error }

// Error has flags in place of fields.
func (e *inWords) Error() string { return inFlags(e.error) }

// Unwrap returns the error of the library.
func (e *inWords) Unwrap() error { return e.error }
