package coppice_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice"
	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/test/testpython"
)

// third is a backend of another package: the runner's interpreters under a name of its
// own, with nothing that the runner can do besides.
type third struct {
	coppice.Backend
	lacks error
}

func (third) Name() string { return "third" }

func (t third) Available(context.Context, *kernel.Site) (string, error) {
	return "it is the third", t.lacks
}

func (t third) Provision(s kernel.Site) (kernel.Backend, error) {
	b, err := t.Backend.Provision(s)
	if err != nil {
		return nil, err
	}
	return thirdBackend{b, b.(kernel.Served)}, nil
}

type thirdBackend struct {
	kernel.Backend
	kernel.Served
}

func (thirdBackend) Name() string { return "third" }

// TestABackendOfAnotherPackage is a value like those of this one: a host runs on it,
// finds out what it can do, and knows its name from nowhere else.
func TestABackendOfAnotherPackage(t *testing.T) {
	t.Parallel()
	runner := coppice.Runner(coppice.RunnerOptions{})
	missing := third{runner, errors.New("it has no licence")}
	for name, tc := range map[string]struct {
		b         coppice.Backend
		name, why string
	}{
		"alone":       {third{runner, nil}, "third", "it was asked for"},
		"first":       {coppice.Auto(third{runner, nil}, runner), "third", "it is the third"},
		"passed over": {coppice.Auto(missing, runner), "runner", "it has no licence"},
		"nested":      {coppice.Auto(coppice.Auto(missing, third{runner, nil}), runner), "third", "it has no licence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, err := coppice.Start(t.Context(), coppice.Options{Backend: tc.b, Python: testpython.Path(t), Home: t.TempDir()})
			require.NoError(t, err)
			defer func() { require.True(t, host.Shutdown(context.Background()).Clean()) }()
			backend, why := host.Backend()
			require.Equal(t, [2]string{tc.name, tc.why}, [2]string{backend, why})
			r, err := host.Session("s").Execute(t.Context(), coppice.Request{Cells: []messages.Cell{{Code: "6 * 7"}}})
			require.NoError(t, err)
			require.Equal(t, "42", r.Text)
			require.Equal(t, tc.name, r.Backend)
			if tc.name == "third" {
				forks, why, err := host.Forks(t.Context())
				require.NoError(t, err)
				require.False(t, forks)
				require.Contains(t, why, "the third backend")
			}
		})
	}
}
