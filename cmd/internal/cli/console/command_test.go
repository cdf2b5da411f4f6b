package console

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

var errPlain = errors.New("plain")

// TestACommandCountsItsArguments says what is wrong with their number before anything
// runs.
func TestACommandCountsItsArguments(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args Arguments
		line []string
		want string // "": it runs
	}{
		"none":               {Arguments{}, nil, ""},
		"one too many":       {Arguments{}, []string{"x"}, `unknown command "x" for "do"`},
		"one":                {Arguments{Least: 1, Most: 1}, []string{"x"}, ""},
		"one missing":        {Arguments{Least: 1, Most: 1}, nil, "use it as: do FILE"},
		"two of at most one": {Arguments{Most: 1}, []string{"x", "y"}, "use it as: do FILE"},
		"any":                {Arguments{Most: Any}, []string{"x", "y", "z"}, ""},
		"any but none":       {Arguments{Least: 1, Most: Any}, nil, "use it as: do FILE"},
		"in its own words":   {Arguments{Least: 1, Most: 1, Wants: "name a 100 % file"}, nil, "name a 100 % file"},
	} {
		ran := false
		cmd := Command{Use: "do FILE", Args: tc.args, Run: func(_ context.Context, args []string) error {
			ran = true
			require.Len(t, args, len(tc.line), name)
			return nil
		}}.Make()
		cmd.DisableFlagsInUseLine, cmd.SilenceErrors, cmd.SilenceUsage = true, true, true
		cmd.SetArgs(append([]string{}, tc.line...))
		err := cmd.Execute()
		require.Equal(t, tc.want == "", ran, name)
		if tc.want != "" {
			require.EqualError(t, err, tc.want, name)
		}
	}
}

// TestASessionHasAName, where a flag names one.
func TestASessionHasAName(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line []string
		want error
	}{
		"none":  {nil, nil},
		"one":   {[]string{"--session", "a"}, nil},
		"empty": {[]string{"--session", ""}, ErrNameless},
		"blank": {[]string{"--session="}, ErrNameless},
	} {
		ran := false
		cmd := Command{Use: "do", Run: func(context.Context, []string) error {
			ran = true
			return nil
		}}.Make()
		cmd.Flags().String("session", "", "")
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{}, tc.line...))
		require.Equal(t, tc.want, cmd.Execute(), name)
		require.Equal(t, tc.want == nil, ran, name)
	}
}

// TestACommandEndsWithACode: whatever it returns says how it ended.
func TestACommandEndsWithACode(t *testing.T) {
	t.Parallel()
	lost := &Exit{Code: Lost, Err: errPlain}
	sorts := func(err error) error {
		if errors.Is(err, errPlain) && !Decided(err) {
			return UsageError{err}
		}
		return err
	}
	for name, tc := range map[string]struct {
		err    error
		errors func(error) error
		want   error
	}{
		"well":                {nil, nil, nil},
		"plain":               {errPlain, nil, &Exit{Code: Raised, Err: errPlain}},
		"decided":             {lost, nil, lost},
		"decided, and sorted": {lost, sorts, lost},
		"usage":               {UsageError{errPlain}, nil, UsageError{errPlain}},
		"sorted":              {errPlain, sorts, UsageError{errPlain}},
		"sorted, and other":   {context.Canceled, sorts, &Exit{Code: Raised, Err: context.Canceled}},
	} {
		cmd := Command{Use: "do", Errors: tc.errors, Run: func(context.Context, []string) error { return tc.err }}.Make()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{})
		require.Equal(t, tc.want, cmd.Execute(), name)
	}
	require.NoError(t, Failure(nil))
	require.EqualError(t, &Exit{Code: 70}, "exit code 70")
	require.ErrorIs(t, lost, errPlain)
	require.ErrorIs(t, UsageError{errPlain}, errPlain)
}

// TestACommandOverOthers shows its help.
func TestACommandOverOthers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := Command{Use: "all", Short: "All of them", Below: []*cobra.Command{
		Command{Use: "one", Short: "The first", Run: func(context.Context, []string) error { return nil }}.Make(),
	}}.Make()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{})
	require.NoError(t, cmd.Execute())
	require.Contains(t, out.String(), "The first")
}
