package hibernate_test

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/hibernate"
	"github.com/coppice-run/coppice/messages"
	"github.com/coppice-run/coppice/store"
)

// TestWhatIsLostIsLogged, with the session and the reason, and told at the end of the host; that
// an idle session goes on which would lose something is no news.
func TestWhatIsLostIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := store.OpenFolder(t.Context(), store.FolderOptions{Dir: filepath.Join(t.TempDir(), "s"), KeyFile: filepath.Join(t.TempDir(), "key")})
	require.NoError(t, err)
	k, err := hibernate.New(hibernate.Options{Store: s, Policy: hibernate.Lossy, Scratch: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer k.Close()
	said := func(name string, over bool, err error) string {
		log.Reset()
		k.Unkept(key(name), over, err)
		return log.String()
	}
	full := errors.New("no space left")
	lossy := &messages.HibernateRefused{Reason: messages.HibernateLossy, Problem: "it would lose sock"}
	require.Empty(t, said("idle", false, lossy))
	require.Regexp(t, "idle session could not be kept.* session=idle .*no space left", said("idle", false, full))
	require.Regexp(t, "is lost.* session=evicted .*it would lose sock", said("evicted", true, lossy))
	require.Empty(t, k.Lost(), "its next call hears of it")
	k.Ending()
	require.Regexp(t, "is lost.* session=last .*no space left", said("last", true, full))
	require.Equal(t, []messages.Unkept{{Key: key("last"), Problem: "no space left"}}, k.Lost())
}

// TestARefusedRestoreSaysSo: it is no word about hibernating, which was done.
func TestARefusedRestoreSaysSo(t *testing.T) {
	t.Parallel()
	k, _ := keeper(t, t.TempDir(), hibernate.Lossy)
	defer k.Close()
	_, err := k.Sleep(t.Context(), sleeper(newFake("x"), "a"))
	require.NoError(t, err)
	f := newFake("")
	f.thawErr = &messages.HibernateRefused{Reason: messages.HibernateUnsupported, Problem: "it was written by another kernel"}
	_, err = k.Wake(t.Context(), key("a"), "", f)
	require.EqualError(t, err, "it was written by another kernel")
}
