package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/coppice-run/coppice/cmd/internal/render"
	"github.com/coppice-run/coppice/messages"
)

// TestStage draws the tree below what is said on a terminal, and only where it
// is asked for elsewhere.
func TestStage(t *testing.T) {
	t.Parallel()
	root := messages.Node{Name: "supervisor", State: messages.ChildIdle, Children: []messages.Node{{Name: "a@/srv", State: messages.ChildBusy}}}
	look := func(context.Context) (messages.Node, error) { return root, nil }
	short := func(s string) string { return strings.ReplaceAll(s, "@/srv", "") }
	synctest.Test(t, func(t *testing.T) {
		a, stdout, _ := testApp(t, "")
		s := newStage(a, look, short)
		s.title(t.Context(), "scene")
		s.say("said\n")
		s.say("")
		s.tree(t.Context())
		s.close()
		require.Equal(t, "\n== scene\nsaid\n○ supervisor  idle\n└─ ● a        busy\n", stdout.String())
	})
	synctest.Test(t, func(t *testing.T) {
		a, stdout, _ := testApp(t, "")
		a.Out.Terminal = true
		s := newStage(a, look, short)
		time.Sleep(2*stageEvery + stageEvery/2)
		s.tree(t.Context())
		s.say("said\n")
		synctest.Wait()
		s.close()
		frames := strings.Split(stdout.String(), "\x1b[J")
		require.Len(t, frames, 5)
		require.Equal(t, 3, strings.Count(frames[1], "\n"), "the tree and a line above it")
		require.True(t, strings.HasSuffix(frames[1], "\x1b[3A"), "it is drawn over")
		require.True(t, strings.HasPrefix(frames[3], "said\n\n"), frames[3])
		require.Empty(t, frames[4], "the tree is removed")
	})
	synctest.Test(t, func(t *testing.T) {
		a, stdout, _ := testApp(t, "")
		a.Out.Terminal = true
		s := newStage(a, func(context.Context) (messages.Node, error) { return root, errors.New("no tree") }, short)
		s.say("said\n")
		synctest.Wait()
		s.close()
		require.Equal(t, "said\n", render.Plain(stdout.String()))
	})
}

// TestBill fails whatever did not happen.
func TestBill(t *testing.T) {
	t.Parallel()
	b := newBill()
	require.Len(t, b.checks, 8)
	require.False(t, b.kept())
	for i, c := range b.checks {
		require.False(t, b.kept(), i)
		b.settle(c.What, true, "seen")
	}
	require.True(t, b.kept())
	b.settle(promisedLoss, false, "why")
	require.False(t, b.kept())
	require.Contains(t, render.Checks(render.Style{}, b.checks), "FAILED  "+promisedLoss+" (why)")
}

// TestDemoHears remembers processes, tells what matters, and wakes who waits.
func TestDemoHears(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, stdout, _ := testApp(t, "")
		d := &demo{bill: newBill(), news: make(chan struct{}, 1), pids: map[int]bool{}, cwd: "/srv"}
		d.stage = newStage(a, d.look, d.shorten)
		defer d.close()
		change := func(session string, from, to messages.ChildState) messages.ChildChanged {
			return messages.ChildChanged{Path: "supervisor/gateway/" + session + "@/srv", Kind: "kernel", From: from, To: to, PID: 7}
		}
		var wg sync.WaitGroup
		var heard bool
		wg.Go(func() {
			heard = d.await(t.Context(), 0, func(c messages.ChildChanged) bool { return d.is(c, "b") && c.To == messages.ChildGone })
		})
		synctest.Wait()
		d.watch(change("a", messages.ChildStarting, messages.ChildIdle))
		d.watch(change("a", messages.ChildIdle, messages.ChildBusy))
		d.watch(change("a", messages.ChildBusy, messages.ChildIdle))
		d.watch(messages.ChildChanged{Path: "sinks/result-0", To: messages.ChildGone})
		d.watch(messages.Dropped{})
		synctest.Wait()
		d.watch(change("b", messages.ChildIdle, messages.ChildGone))
		wg.Wait()
		require.True(t, heard)
		require.False(t, d.await(t.Context(), d.seen(), func(messages.ChildChanged) bool { return true }), "it gives up")
		synctest.Wait()
		require.Equal(t, "  tree │ supervisor/gateway/a  starting → idle\n  tree │ supervisor/gateway/b  idle → gone\n", stdout.String())
		require.Equal(t, map[int]bool{7: true}, d.pids)
		require.False(t, d.is(change("bb", "", ""), "b"))
	})
}
