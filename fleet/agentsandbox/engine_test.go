//go:build engines

package agentsandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/agentsandbox"
	"github.com/coppice-run/coppice/fleet/fleettest"
)

const namespace = "default"

// cluster is a real API server with the real controller of agent-sandbox, and pods whose servers
// are names in a table.
type cluster struct {
	*fleettest.Kubernetes
	*fleettest.AgentSandbox

	mu    sync.Mutex
	next  int
	lives map[string]string // of servers, by address; guarded by mu
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Kubernetes: fleettest.StartKubernetes(t), lives: map[string]string{}}
	_, err := agentsandbox.Open(t.Context(), c.options("coppice"))
	require.ErrorContains(t, err, "install agent-sandbox")
	c.AgentSandbox = fleettest.StartAgentSandbox(t, c.Kubernetes, namespace, c.pod)
	c.template(t, "coppice")
	return c
}

// pod runs what is in a pod.
func (c *cluster) pod(fleettest.Pod) (string, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	ip := fmt.Sprintf("127.0.%d.%d", c.next/250, 2+c.next%250)
	c.lives[ip] = fmt.Sprintf("life-%d", c.next)
	return ip, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.lives, ip)
	}, nil
}

// restart has the server at an address be another one.
func (c *cluster) restart(ip string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives[ip] += "+"
}

// server is who answers at a URL.
func (c *cluster) server(_ context.Context, at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if life := c.lives[u.Hostname()]; life != "" {
		return life, nil
	}
	return "", errors.New("connection refused")
}

func (c *cluster) template(t *testing.T, name string) {
	t.Helper()
	c.Apply(t, "extensions.agents.x-k8s.io/v1alpha1", "sandboxtemplates", name, []byte(`{"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxTemplate","metadata":{"name":"`+name+`"},
		"spec":{"networkPolicyManagement":"Unmanaged","podTemplate":{"spec":{"containers":[{"name":"coppice","image":"coppice"}]}}}}`))
}

// config is that of whoever has a token.
func config(k *fleettest.Kubernetes, token string) *rest.Config {
	return &rest.Config{Host: k.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: k.CA}}
}

func (c *cluster) options(template string) agentsandbox.Options {
	return agentsandbox.Options{Config: config(c.Kubernetes, c.Kubernetes.Token), Template: template, Server: c.server}
}

func open(t *testing.T, o agentsandbox.Options) *agentsandbox.Sandboxes {
	t.Helper()
	s, err := agentsandbox.Open(within(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*fleettest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// rounds is how often many race.
func rounds() int {
	if os.Getenv("COPPICE_TEST_FULL") != "" {
		return 200
	}
	return 20
}

// TestSandboxes is what happens to sandboxes whose claims are kept by one API server and bound by
// the real controller: a start of both takes long.
func TestSandboxes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, *cluster){
		"race": race, "anew": anew, "another life": anotherLife, "pods that go": podsThatGo, "warm": warm, "not ready": notReady, "rights": rights,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
	t.Run("restart", func(t *testing.T) { restarts(t, c) })
}

// race: of fifty that claim one key at once by three fronts all get the same sandbox, in each of
// many rounds; each round has a claim of its own.
func race(t *testing.T, c *cluster) {
	var fronts []*agentsandbox.Sandboxes
	for range 3 {
		fronts = append(fronts, open(t, c.options("coppice")))
	}
	const many = 50
	uids, epoch := map[string]bool{}, uint64(0)
	var took []time.Duration
	for round := range rounds() {
		got := make([]fleet.Sandbox, many)
		errs := make([]error, many)
		var all sync.WaitGroup
		began := time.Now()
		for i := range many {
			all.Go(func() { got[i], errs[i] = fronts[i%len(fronts)].Claim(within(t), "raced for@") })
		}
		all.Wait()
		took = append(took, time.Since(began))
		for i, one := range got {
			require.NoError(t, errs[i])
			one.Over = got[0].Over
			require.Equal(t, got[0], one, "round %d", round)
		}
		require.NotEmpty(t, got[0].Server)
		require.False(t, uids[got[0].UID], "it is a claim of its own")
		require.NotEqual(t, epoch, got[0].Epoch)
		uids[got[0].UID], epoch = true, got[0].Epoch
		for _, s := range fronts {
			require.NoError(t, s.Confirm(within(t), got[0]))
		}
		require.NoError(t, fronts[round%len(fronts)].End(within(t), "raced for@"))
		for _, s := range fronts {
			require.ErrorIs(t, s.Confirm(within(t), got[0]), fleet.ErrLost)
		}
	}
	require.Len(t, uids, rounds())
	t.Logf("%d rounds of %d claims by %d fronts: %v", rounds(), many, len(fronts), took)
}

// anew: what was ended is lost, and the next claim is another one, with another epoch.
func anew(t *testing.T, c *cluster) {
	s, other := open(t, c.options("coppice")), open(t, c.options("coppice"))
	_, err := s.Find(within(t), "anew@")
	require.ErrorIs(t, err, fleet.ErrNoSandbox)
	require.ErrorIs(t, s.End(within(t), "anew@"), fleet.ErrNoSandbox)
	first, err := s.Claim(within(t), "anew@")
	require.NoError(t, err)
	require.Zero(t, first.Before)
	seen, err := other.Find(within(t), "anew@")
	require.NoError(t, err)
	require.Equal(t, first.UID, seen.UID)
	list, err := other.List(within(t))
	require.NoError(t, err)
	require.Contains(t, keys(list), "anew@")
	require.NoError(t, other.End(within(t), "anew@"))
	over(t, first)
	over(t, seen)
	require.ErrorIs(t, s.Confirm(within(t), first), fleet.ErrLost)
	require.NoError(t, s.Renew(within(t), first), "it is known to be over")
	second, err := s.Claim(within(t), "anew@")
	require.NoError(t, err)
	require.NotEqual(t, first.UID, second.UID)
	require.NotEqual(t, first.Server, second.Server, "not the pod of the one before")
	require.NotEqual(t, first.Epoch, second.Epoch)
	require.Equal(t, first.Name, second.Name)
	require.ErrorIs(t, other.Confirm(within(t), first), fleet.ErrLost)
	require.NoError(t, other.Confirm(within(t), second))
}

// over waits until a sandbox is known to be over.
func over(t *testing.T, one fleet.Sandbox) {
	t.Helper()
	select {
	case <-one.Over.Done():
	case <-within(t).Done():
		t.Fatal("it is not known that the sandbox is over")
	}
}

func keys(list []fleet.Sandbox) (all []string) {
	for _, one := range list {
		all = append(all, one.Key)
	}
	return all
}

// anotherLife: a server that was started again in its pod is another one, in the next epoch of
// the same claim, and whoever finds it out tells all.
func anotherLife(t *testing.T, c *cluster) {
	s, other := open(t, c.options("coppice")), open(t, c.options("coppice"))
	first, err := s.Claim(within(t), "lives@")
	require.NoError(t, err)
	require.NoError(t, s.Renew(within(t), first), "nothing has happened")
	require.NoError(t, s.Confirm(within(t), first))
	c.restart(c.Running()[first.Name])
	var all sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		all.Go(func() { errs[i] = []*agentsandbox.Sandboxes{s, other}[i%2].Renew(within(t), first) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	over(t, first)
	require.ErrorIs(t, other.Confirm(within(t), first), fleet.ErrLost)
	second, err := other.Find(within(t), "lives@")
	require.NoError(t, err)
	require.Equal(t, first.UID, second.UID)
	require.Equal(t, first.Server+"+", second.Server)
	require.Equal(t, first.Epoch+1, second.Epoch, "bound once")
	require.Equal(t, first.Epoch, second.Before)
	require.NoError(t, s.Confirm(within(t), second))
	require.NoError(t, second.Over.Err())
}

// podsThatGo: a pod that was deleted is made again by the controller, and the claim is bound anew;
// one that has come to its end takes its claim with it, and the next one knows of that.
func podsThatGo(t *testing.T, c *cluster) {
	s := open(t, c.options("coppice"))
	first, err := s.Claim(within(t), "goes@")
	require.NoError(t, err)
	c.Delete(t, first.Name)
	second := renewed(t, s, first)
	require.Equal(t, first.UID, second.UID)
	require.Equal(t, first.Epoch, second.Before)
	require.NotEqual(t, first.URL, second.URL)
	c.AgentSandbox.End(t, second.Name)
	third := renewed(t, s, second)
	require.NotEqual(t, second.UID, third.UID)
	require.Equal(t, second.Epoch, third.Before)
	require.Greater(t, third.Epoch, second.Epoch)
}

// renewed is what a sandbox has become that does not answer.
func renewed(t *testing.T, s *agentsandbox.Sandboxes, one fleet.Sandbox) fleet.Sandbox {
	t.Helper()
	for {
		_ = s.Renew(within(t), one) // an error says that it is not known yet
		now, err := s.Claim(within(t), one.Key)
		require.NoError(t, err)
		if now.Server != one.Server {
			return now
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("it does not change")
		}
	}
}

// warm: a claim gets a pod that was there before it, and ends with that.
func warm(t *testing.T, c *cluster) {
	c.template(t, "warm")
	c.Apply(t, "extensions.agents.x-k8s.io/v1alpha1", "sandboxwarmpools", "warm", []byte(`{"apiVersion":"extensions.agents.x-k8s.io/v1alpha1","kind":"SandboxWarmPool","metadata":{"name":"warm"},"spec":{"replicas":2,"sandboxTemplateRef":{"name":"warm"}}}`))
	pool := map[string]bool{}
	require.Eventually(t, func() bool {
		for name := range c.Running() {
			if strings.HasPrefix(name, "warm-") {
				pool[name] = true
			}
		}
		return len(pool) >= 2
	}, 10*fleettest.Patience, 50*time.Millisecond)
	s := open(t, c.options("warm"))
	began := time.Now()
	first, err := s.Claim(within(t), "warm@")
	require.NoError(t, err)
	t.Logf("a claim of a pod that was there took %v", time.Since(began))
	at, pod := c.Running(), ""
	for name := range pool {
		if strings.Contains(first.URL, "//"+at[name]+":") {
			pod = name
		}
	}
	require.NotEmpty(t, pod, "it is one of the pool: %s, %v", first.URL, at)
	c.Delete(t, pod)
	second := renewed(t, s, first)
	require.NotEqual(t, first.UID, second.UID)
	require.Equal(t, first.Epoch, second.Before)
}

// notReady: what keeps a sandbox from being there is said, at once where waiting does not help.
func notReady(t *testing.T, c *cluster) {
	s := open(t, c.options("no-such-template"))
	_, err := s.Claim(within(t), "none@")
	not, is := errors.AsType[*fleet.SandboxError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, "TemplateNotFound", not.Reason)
	require.NoError(t, not.Err)
	_, err = s.Find(within(t), "none@")
	require.ErrorIs(t, err, fleet.ErrNoSandbox, "the claim does not stay")

	o := c.options("coppice")
	o.Server = func(context.Context, string) (string, error) { return "", errors.New("it does not answer yet") }
	s = open(t, o)
	short, cancel := context.WithTimeout(t.Context(), fleettest.Patience/12)
	defer cancel()
	_, err = s.Claim(short, "slow@")
	not, is = errors.AsType[*fleet.SandboxError](err)
	require.True(t, is, "%v", err)
	require.Equal(t, "Unreachable", not.Reason)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	o = c.options("coppice")
	o.Lifetime = time.Second
	s = open(t, o)
	short1, err := s.Claim(within(t), "short@")
	require.NoError(t, err)
	over(t, short1)
}

// rights: what is missing is said when the sandboxes are opened.
func rights(t *testing.T, c *cluster) {
	for name, tc := range map[string]struct {
		change func(*agentsandbox.Options)
		is     error
		want   string
	}{
		"no namespace": {func(o *agentsandbox.Options) { o.Namespace = "not-there" }, nil, `"not-there" not found`},
		"who is this":  {func(o *agentsandbox.Options) { o.Config = config(c.Kubernetes, "another token") }, nil, "Unauthorized"},
		"no rights": {func(o *agentsandbox.Options) {
			o.Config = config(c.Kubernetes, c.Kubernetes.Token)
			o.Config.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:authenticated"}}
		}, agentsandbox.ErrForbidden, "to get, list, watch, create, patch, delete sandboxclaims.extensions.agents.x-k8s.io; to get sandboxes.agents.x-k8s.io; to get pods"},
		"no server": {func(o *agentsandbox.Options) { o.Config = &rest.Config{Host: "http://127.0.0.1:1"} }, nil, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.options("coppice")
			tc.change(&o)
			_, err := agentsandbox.Open(within(t), o)
			require.ErrorContains(t, err, tc.want)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
		})
	}
}

// restarts: while the API server is away nothing is known and nothing is lost, and all goes on
// when it is back.
func restarts(t *testing.T, c *cluster) {
	s := open(t, c.options("coppice"))
	one, err := s.Claim(within(t), "stays@")
	require.NoError(t, err)
	c.Kubernetes.Kill()
	short, cancel := context.WithTimeout(t.Context(), fleettest.Patience/12)
	defer cancel()
	err = s.Confirm(short, one)
	require.Error(t, err)
	require.NotErrorIs(t, err, fleet.ErrLost)
	_, err = s.Claim(short, "another@")
	require.ErrorIs(t, err, fleet.ErrUnknown)
	c.Kubernetes.Start(t)
	require.NoError(t, s.Confirm(within(t), one))
	require.NoError(t, one.Over.Err())
	again, err := s.Claim(within(t), "stays@")
	require.NoError(t, err)
	require.Equal(t, one.UID, again.UID)
	require.NoError(t, s.End(within(t), "stays@"))
	over(t, one) // the watch goes on, too
}
