package console

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInFlags: fields of the library are told as flags, and what was given stays as it is.
func TestInFlags(t *testing.T) {
	for text, want := range map[string]string{
		"WarmMax is negative":                                  "--warm-max is negative",
		`PassEnv: "PassEnv=" is not the name of a variable`:    `--pass-env: "PassEnv=" is not the name of a variable`,
		"KeepSessions: use another, or leave KeepSessions out": "--keep-sessions: use another, or leave --keep-sessions out",
		"name it in Isolation.Write or Read":                   "name it in --isolation-write or --isolation-read",
		"(--kernel, Options.KernelName)":                       "(--kernel, --kernel)",
		"the folder /home/WarmMax/x-PassEnv":                   "the folder /home/WarmMax/x-PassEnv",
		"NoForked":                                             "NoForked",
	} {
		err := OptionsError(errors.New(text))
		require.EqualError(t, err, want)
		require.ErrorAs(t, err, new(UsageError))
	}
}
