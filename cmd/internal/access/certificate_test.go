package access_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/access"
)

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good, other := issue(t, "localhost", nil, time.Now().Add(time.Hour)), issue(t, "localhost", nil, time.Now().Add(time.Hour))
	for name, tc := range map[string]struct {
		spoil func(f *access.Files) error
		want  error
		says  string
	}{
		"no key":            {func(f *access.Files) error { return os.Remove(f.Key) }, access.ErrCertificate, "no such file"},
		"no certificate":    {func(f *access.Files) error { return os.Remove(f.Cert) }, access.ErrCertificate, "no such file"},
		"a key for all":     {func(f *access.Files) error { return os.Chmod(f.Key, 0o644) }, access.ErrOpenToOthers, "chmod 600"},
		"a key for a group": {func(f *access.Files) error { return os.Chmod(f.Key, 0o640) }, access.ErrOpenToOthers, "chmod 600"},
		"another key":       {func(f *access.Files) error { return os.WriteFile(f.Key, other.key, 0o600) }, access.ErrCertificate, "does not match"},
		"no PEM":            {func(f *access.Files) error { return os.WriteFile(f.Cert, []byte("x"), 0o600) }, access.ErrCertificate, "PEM"},
		"over": {func(f *access.Files) error {
			*f = issue(t, "localhost", nil, time.Now().Add(-time.Hour)).write(t, filepath.Dir(f.Key))
			return nil
		}, access.ErrCertificate, "renew it"},
		"no client CA": {func(f *access.Files) error { f.ClientCA = f.Key + ".not"; return nil }, access.ErrCertificate, "no such file"},
		"an empty CA":  {func(f *access.Files) error { f.ClientCA = f.Key; return nil }, access.ErrCertificate, "holds no certificate"},
	} {
		f := good.write(t, t.TempDir())
		require.NoError(t, tc.spoil(&f), name)
		_, err := access.LoadCertificate(t.Context(), f, quiet)
		require.ErrorIs(t, err, tc.want, name)
		require.ErrorContains(t, err, tc.says, name)
	}
}

// TestACertificateIsRenewed while the server runs, also half of it first.
func TestACertificateIsRenewed(t *testing.T) {
	t.Parallel()
	first, second := issue(t, "localhost", nil, time.Now().Add(time.Hour)), issue(t, "localhost", nil, time.Now().Add(2*time.Hour))
	dir := t.TempDir()
	certificate, err := access.LoadCertificate(t.Context(), first.write(t, dir), quiet)
	require.NoError(t, err)
	s := serve(t, func(o *access.Options) { o.Certificate = certificate })
	asks := func(trusted *pair) error {
		resp, err := client(t, trusted, nil).Get(s.url + "/healthz")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	require.NoError(t, asks(first))
	require.Error(t, asks(second))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cert.pem"), second.cert, 0o600))
	require.NoError(t, asks(first), "the key has not come yet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key.pem"), second.key, 0o600))
	require.NoError(t, asks(second))
	require.Error(t, asks(first))
	require.NoError(t, os.Remove(filepath.Join(dir, "key.pem")))
	require.NoError(t, asks(second), "what is gone leaves it as it was")
}

func TestClientsShowACertificateToo(t *testing.T) {
	t.Parallel()
	own, authority := issue(t, "localhost", nil, time.Now().Add(time.Hour)), issue(t, "authority", nil, time.Now().Add(time.Hour))
	dir := t.TempDir()
	f := own.write(t, dir)
	f.ClientCA = filepath.Join(dir, "ca.pem")
	require.NoError(t, os.WriteFile(f.ClientCA, authority.cert, 0o600))
	certificate, err := access.LoadCertificate(t.Context(), f, quiet)
	require.NoError(t, err)
	s := serve(t, func(o *access.Options) { o.Certificate = certificate })
	for name, tc := range map[string]struct {
		shown *pair
		ok    bool
	}{
		"none":             {nil, false},
		"of its own":       {issue(t, "someone", nil, time.Now().Add(time.Hour)), false},
		"one that is ok":   {issue(t, "someone", authority, time.Now().Add(time.Hour)), true},
		"one that is over": {issue(t, "someone", authority, time.Now().Add(-time.Hour)), false},
	} {
		s.client = client(t, own, tc.shown)
		resp, err := s.client.Get(s.url + "/look")
		require.Equal(t, tc.ok, err == nil, "%s: %v", name, err)
		if err == nil {
			require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "it takes a token besides")
			require.NoError(t, resp.Body.Close())
		}
	}
}
