package kernelspec_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/actors/kernel"
	"github.com/coppice-run/coppice/actors/kernelspec"
)

// plain knows no kernelspecs.
type plain struct{ closed error }

func (*plain) Name() string { return "plain" }

func (*plain) Start(context.Context, kernel.StartOptions) (kernel.Interpreter, error) {
	return nil, errors.New("not here")
}

func (p *plain) Close() error { return p.closed }

// some knows a few; open says that there may be others.
type some struct {
	plain
	usual string
	names []string
	open  bool
	fails error
}

func (s *some) Usual(name string) bool { return name == s.usual }

func (s *some) Has(name string) bool {
	return s.open || slices.Contains(s.names, name)
}

func (s *some) Kernelspecs(context.Context) ([]kernel.Kernelspec, error) {
	var list []kernel.Kernelspec
	for _, n := range append([]string{s.usual}, s.names...) {
		list = append(list, kernel.Kernelspec{Name: n})
	}
	return list, s.fails
}

func TestWhichBackendHasAKernelspec(t *testing.T) {
	t.Parallel()
	gateway, runner := &some{usual: "python3", names: []string{"ir", "coppice"}, open: true}, &some{usual: "python3", names: []string{"coppice"}}
	one := &plain{}
	for name, tt := range map[string]struct {
		of   kernelspec.Backends
		asks string
		want kernel.Backend
	}{
		"none":                      {kernelspec.Backends{First: gateway, Second: runner}, "", gateway},
		"the usual":                 {kernelspec.Backends{First: gateway, Second: runner}, "python3", gateway},
		"one of the first":          {kernelspec.Backends{First: gateway, Second: runner}, "ir", gateway},
		"one that both have":        {kernelspec.Backends{First: gateway, Second: runner}, "coppice", runner},
		"one that may be there":     {kernelspec.Backends{First: gateway}, "julia", gateway},
		"one that is not there":     {kernelspec.Backends{First: runner}, "ir", nil},
		"the open one is second":    {kernelspec.Backends{First: runner, Second: gateway}, "ir", gateway},
		"a backend with none":       {kernelspec.Backends{First: one}, "python3", nil},
		"none of one with none":     {kernelspec.Backends{First: one}, "", one},
		"the second of a plain one": {kernelspec.Backends{First: one, Second: runner}, "coppice", runner},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.of.With(tt.asks)
			if tt.want == nil {
				require.ErrorContains(t, err, "is no kernel of this host")
				require.Equal(t, tt.of.First, tt.of.Maker(tt.asks))
				return
			}
			require.NoError(t, err)
			require.Same(t, tt.want, got)
			require.Same(t, tt.want, tt.of.Maker(tt.asks))
		})
	}
}

func TestEachKernelspecIsListedOnce(t *testing.T) {
	t.Parallel()
	gateway, runner := &some{usual: "python3", names: []string{"ir", "coppice"}, open: true}, &some{usual: "python3", names: []string{"coppice"}}
	names := func(b kernelspec.Backends) (list []string) {
		specs, err := b.Kernelspecs(t.Context())
		require.NoError(t, err)
		for _, s := range specs {
			list = append(list, s.Name)
		}
		return list
	}
	require.Equal(t, []string{"python3", "ir", "coppice"}, names(kernelspec.Backends{First: gateway, Second: runner}))
	require.Equal(t, []string{"python3", "coppice"}, names(kernelspec.Backends{First: runner}))
	require.Empty(t, names(kernelspec.Backends{First: &plain{}}))
	gateway.fails = errors.New("down")
	_, err := kernelspec.Backends{First: runner, Second: gateway}.Kernelspecs(t.Context())
	require.ErrorContains(t, err, "down")
}

func TestBothAreClosed(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	err := kernelspec.Backends{First: &plain{one}, Second: &plain{two}}.Close()
	require.ErrorIs(t, err, one)
	require.ErrorIs(t, err, two)
	require.NoError(t, kernelspec.Backends{}.Close())
}
