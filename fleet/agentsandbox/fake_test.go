package agentsandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/coppice-run/coppice/fleet"
)

// TestNames: each key has a name that a service may have, and no two the same.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, fleet := range []string{"coppice", "a", "twenty-letters-of-it"} {
		require.True(t, validFleet(fleet))
		for _, key := range []string{"", "work@", "Work@", "w%3A@", "session@/a/b", "séance@", string(make([]byte, 4096))} {
			name := object(fleet, key)
			require.Empty(t, validation.IsDNS1035Label(name), name)
			require.False(t, seen[name])
			seen[name] = true
		}
	}
	for _, not := range []string{"", "A", "1a", "-a", "a.b", "twenty-one-letters-of"} {
		require.False(t, validFleet(not), not)
	}
}

// TestEpochs: a later claim has a later epoch, which JavaScript knows, too.
func TestEpochs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	first, second := firstEpoch(at, "one"), firstEpoch(at, "another")
	require.NotEqual(t, first, second)
	require.Greater(t, firstEpoch(at.Add(time.Second), "one"), max(first, second))
	require.Less(t, firstEpoch(time.Date(2106, 1, 1, 0, 0, 0, 0, time.UTC), "one"), uint64(1)<<53)
	require.NotZero(t, first)
}

// away is a client without a server behind it.
func away(t *testing.T, objects ...runtime.Object) *fake.FakeDynamicClient {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{claims: "SandboxClaimList", sandboxes: "SandboxList", pods: "PodList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	for _, o := range objects {
		of := map[string]schema.GroupVersionResource{"SandboxClaim": claims, "Sandbox": sandboxes, "Pod": pods}[o.GetObjectKind().GroupVersionKind().Kind]
		require.NoError(t, client.Tracker().Create(of, o, "default"))
	}
	return client
}

// opened are sandboxes over a client.
func opened(t *testing.T, client *fake.FakeDynamicClient, server func(context.Context, string) (string, error)) *Sandboxes {
	t.Helper()
	s := start(client, Options{Namespace: "default", Template: "coppice", Fleet: "coppice", Scheme: "https", Port: defaultPort, Server: server})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// thing is an object of a kind.
func thing(of schema.GroupVersionResource, kind, name, uid string, owner string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(u.Object, fields)
	u.SetGroupVersionKind(of.GroupVersion().WithKind(kind))
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	if owner != "" {
		yes := true
		u.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(owner), Controller: &yes}})
	}
	return u
}

// ready is the status of what is ready, or is not for a reason.
func ready(is bool, more ...any) map[string]any {
	status := map[bool]string{true: "True", false: "False"}[is]
	m := map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": "Because", "message": "of that"}}}
	for i := 0; i+1 < len(more); i += 2 {
		m[fmt.Sprint(more[i])] = more[i+1]
	}
	return map[string]any{"status": m}
}

// claimed are the objects of a claim that is ready.
func claimed(key, uid string) []runtime.Object {
	name := object("coppice", key)
	c := thing(claims, "SandboxClaim", name, uid, "", ready(true))
	c.SetAnnotations(map[string]string{keyAnnotation: key})
	c.SetLabels(map[string]string{fleetLabel: "coppice"})
	c.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)))
	return []runtime.Object{c, thing(sandboxes, "Sandbox", name, "s-"+uid, uid, ready(true)), thing(pods, "Pod", name, "p-"+uid, "s-"+uid, ready(true, "phase", "Running", "podIP", "10.0.0.7"))}
}

// TestLooksAreShared: those who come while a look runs share the next one, for that one began before
// they asked.
func TestLooksAreShared(t *testing.T) {
	t.Parallel()
	client := away(t, claimed("k@", "u")...)
	var looks atomic.Int64
	began, on := make(chan struct{}, 10), make(chan struct{})
	client.PrependReactor("get", "sandboxclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		looks.Add(1)
		began <- struct{}{}
		<-on
		return false, nil, nil
	})
	s := opened(t, client, nil)
	var all sync.WaitGroup
	look := func() {
		c, err := s.look(t.Context(), object("coppice", "k@"))
		if err != nil || c.uid != "u" {
			t.Errorf("%v %v", c, err)
		}
	}
	all.Go(look)
	<-began
	joined, err := s.join(object("coppice", "k@"))
	require.NoError(t, err)
	for range 20 {
		other, err := s.join(object("coppice", "k@"))
		require.NoError(t, err)
		require.Same(t, joined, other)
	}
	all.Go(look)
	close(on)
	<-joined.done
	all.Wait()
	require.LessOrEqual(t, looks.Load(), int64(3))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.look(gone, object("coppice", "other"))
	require.ErrorIs(t, err, context.Canceled)
}

// TestBoundOnce: a claim that another has bound meanwhile, or whose binding has no answer, is read
// again, and nobody goes by what was not written.
func TestBoundOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answers func(*fake.FakeDynamicClient, clienttesting.PatchAction) error
		want    string
	}{
		"conflict": {func(c *fake.FakeDynamicClient, p clienttesting.PatchAction) error {
			note, err := json.Marshal(bound{Server: "theirs", URL: "https://10.0.0.7:7443", Epoch: 7})
			if err != nil {
				return err
			}
			u, err := c.Tracker().Get(claims, "default", p.GetName())
			if err != nil {
				return err
			}
			theirs, is := u.(*unstructured.Unstructured)
			if !is {
				return errors.New("it is no claim")
			}
			theirs = theirs.DeepCopy()
			notes := theirs.GetAnnotations()
			notes[boundAnnotation] = string(note)
			theirs.SetAnnotations(notes)
			return errors.Join(c.Tracker().Update(claims, theirs, "default"), apierrors.NewConflict(claims.GroupResource(), p.GetName(), nil))
		}, "theirs"},
		"it was put off": {func(*fake.FakeDynamicClient, clienttesting.PatchAction) error {
			return apierrors.NewTimeoutError("", 0)
		}, "mine"},
		"a broken answer": {func(*fake.FakeDynamicClient, clienttesting.PatchAction) error { return errors.New("connection reset") }, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := away(t, claimed("k@", "u")...)
			var patches atomic.Int64
			client.PrependReactor("patch", "sandboxclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
				p, is := a.(clienttesting.PatchAction)
				if patches.Add(1) > 1 || !is {
					return false, nil, nil
				}
				err := tc.answers(client, p)
				if joined, is := err.(interface{ Unwrap() []error }); is { // as the client has it
					err = joined.Unwrap()[0]
				}
				return true, nil, err
			})
			s := opened(t, client, func(context.Context, string) (string, error) { return "mine", nil })
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			one, err := s.Claim(ctx, "k@")
			require.NoError(t, err)
			require.Equal(t, tc.want, one.Server)
			require.NoError(t, s.Confirm(t.Context(), one))
			one.Server = "another"
			require.ErrorIs(t, s.Confirm(t.Context(), one), fleet.ErrLost)
			all, err := s.List(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
		})
	}
}

// TestNotTheirs: what belongs to a claim or a sandbox of before is nothing that a claim is bound to.
func TestNotTheirs(t *testing.T) {
	t.Parallel()
	name := object("coppice", "k@")
	for test, tc := range map[string]struct {
		change func(objects []runtime.Object) []runtime.Object
		reason string
		ends   bool
	}{
		"another's key": {func(o []runtime.Object) []runtime.Object {
			o[0].(*unstructured.Unstructured).SetAnnotations(map[string]string{keyAnnotation: "other@"})
			return o
		}, "", false},
		"the sandbox of before": {func(o []runtime.Object) []runtime.Object {
			o[1] = thing(sandboxes, "Sandbox", name, "s-old", "old", ready(true))
			return o
		}, "Deleting", false},
		"the pod of before": {func(o []runtime.Object) []runtime.Object {
			o[2] = thing(pods, "Pod", name, "p-old", "s-old", ready(true, "phase", "Running", "podIP", "10.0.0.7"))
			return o
		}, "Deleting", false},
		"no pod yet": {func(o []runtime.Object) []runtime.Object { return o[:2] }, "Because", false},
		"a pod that is not ready": {func(o []runtime.Object) []runtime.Object {
			o[2] = thing(pods, "Pod", name, "p-u", "s-u", ready(false, "phase", "Running", "podIP", "10.0.0.7"))
			return o
		}, "Because", false},
		"a pod that has failed": {func(o []runtime.Object) []runtime.Object {
			o[2] = thing(pods, "Pod", name, "p-u", "s-u", ready(false, "phase", "Failed", "message", "out of memory"))
			return o
		}, "PodFailed", true},
		"a pod of a pool that is gone": {func(o []runtime.Object) []runtime.Object {
			o[1].(*unstructured.Unstructured).SetAnnotations(map[string]string{podAnnotation: "warm-1"})
			return o[:2]
		}, "PodGone", true},
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			s := opened(t, away(t, tc.change(claimed("k@", "u"))...), func(context.Context, string) (string, error) { return "a server", nil })
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := s.Claim(ctx, "k@")
			if tc.reason == "" {
				require.ErrorContains(t, err, `is that of the key "other@"`)
				return
			}
			not, is := errors.AsType[*fleet.SandboxError](err)
			require.True(t, is, "%v", err)
			require.Equal(t, tc.reason, not.Reason)
			_, err = s.Find(ctx, "k@")
			if tc.ends {
				require.ErrorIs(t, err, fleet.ErrNoSandbox, "the claim was deleted")
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

// TestWhatTheWatchSays: what is of before a binding does not end it, and what is after it does.
func TestWhatTheWatchSays(t *testing.T) {
	t.Parallel()
	s := opened(t, away(t), nil)
	object := claimed("k@", "u")[0]
	u, is := object.(*unstructured.Unstructured)
	require.True(t, is)
	c, err := read(u)
	require.NoError(t, err)
	c.bound = bound{Server: "one", Epoch: c.first}
	one := s.told(c)
	require.Equal(t, one, s.told(c))
	s.sees(watch.Modified, u) // it was not bound then
	require.NoError(t, one.Over.Err())
	other := thing(claims, "SandboxClaim", c.name, "another", "", nil)
	s.sees(watch.Deleted, other)
	require.NoError(t, one.Over.Err())

	next := u.DeepCopy()
	note, err := json.Marshal(bound{Server: "two", Epoch: c.first + 1, Before: c.first})
	require.NoError(t, err)
	next.SetAnnotations(map[string]string{keyAnnotation: "k@", boundAnnotation: string(note)})
	changed := s.changes(c.name)
	s.sees(watch.Modified, next)
	require.Error(t, one.Over.Err())
	<-changed
	c2, err := read(next)
	require.NoError(t, err)
	two := s.told(c2)
	require.Equal(t, c.first, two.Before)
	s.sees(watch.Modified, u) // which came late
	require.NoError(t, two.Over.Err())
	s.sees(watch.Deleted, next)
	require.Error(t, two.Over.Err())

	next.SetAnnotations(map[string]string{boundAnnotation: "no JSON"})
	_, err = read(next)
	require.ErrorContains(t, err, boundAnnotation)
}

// TestClosed: nothing is asked of what was closed.
func TestClosed(t *testing.T) {
	t.Parallel()
	s := start(away(t), Options{Namespace: "default", Fleet: "coppice"})
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Claim(t.Context(), "k@")
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, s.Confirm(t.Context(), fleet.Sandbox{Name: "x"}), errClosed)
}

// TestOptions: what is required is asked for.
func TestOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]Options{
		"the name of a fleet":        {Fleet: "A b", Template: "t"},
		"no SandboxTemplate":         {},
		"nothing asks their servers": {Template: "t"},
		"no configuration":           {Template: "t", Server: func(context.Context, string) (string, error) { return "", nil }},
	} {
		_, err := Open(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}
