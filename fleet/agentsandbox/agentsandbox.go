package agentsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/coppice-run/coppice/fleet"
)

// Options says where sandboxes are made, and of what. The zero value of a field is its default.
type Options struct {
	// Config is how the API server is reached, and who this is: rest.InClusterConfig, or what
	// clientcmd makes of a kubeconfig. Its bounds of requests a second are not used. Required.
	Config *rest.Config
	// Namespace is where the claims are, the template and the pods. It has to be there. Default:
	// "default".
	Namespace string
	// Template is the name of the SandboxTemplate. Required.
	Template string
	// Fleet is what the names of objects begin with, which several in a namespace differ in: a
	// letter and then letters a to z, digits and '-', 20 at most. Keys of one are none of another's.
	// Default: "coppice".
	Fleet string
	// Scheme and Port are those of the server in a pod. Default: https and 7443.
	Scheme string
	Port   int
	// Server asks the server at a URL which life of it answers, as long as ctx lasts. The name of a
	// life is never that of another. Required.
	Server func(ctx context.Context, url string) (life string, err error)
	// Lifetime is after how long a sandbox is deleted, used or not. 0: never.
	Lifetime time.Duration
}

// defaultPort is that of a node of a fleet, too.
const defaultPort = 7443

// Sandboxes is the sandboxes of a fleet. Make it with [Open].
type Sandboxes struct {
	o      Options
	client dynamic.Interface
	life   context.Context //nolint:containedctx // it is that of the goroutines
	stop   context.CancelFunc
	joined sync.WaitGroup

	mu sync.Mutex
	// looks are the looks at claims that run or are about to, by name.
	looks map[string]*looks
	// news is closed when something of a claim has changed, by name.
	news map[string]chan struct{}
	// bindings are those that somebody was told of.
	bindings map[string]*binding
	// past is the last epoch of claims that this process has found to be over, by name.
	past   map[string]uint64
	closed bool
}

var _ fleet.Sandboxes = (*Sandboxes)(nil)

// Open finds out that the server can be reached and does what is asked of it, as long as ctx
// lasts. An error of a right that is missing names it, and matches [ErrForbidden].
func Open(ctx context.Context, o Options) (*Sandboxes, error) {
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceDefault)
	o.Fleet, o.Scheme, o.Port = cmp.Or(o.Fleet, "coppice"), cmp.Or(o.Scheme, "https"), cmp.Or(o.Port, defaultPort)
	switch {
	case !validFleet(o.Fleet):
		return nil, fmt.Errorf("open the sandboxes: the name of a fleet has 1 to %d letters a to z, digits and '-', the first a letter, not %q", maxFleet, o.Fleet)
	case o.Template == "":
		return nil, errors.New("open the sandboxes: no SandboxTemplate is named")
	case o.Server == nil:
		return nil, errors.New("open the sandboxes: nothing asks their servers who they are")
	case o.Config == nil:
		return nil, errors.New("open the sandboxes: there is no configuration")
	}
	config := rest.CopyConfig(o.Config)
	config.QPS, config.RateLimiter = -1, nil
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of Kubernetes: %w", err)
	}
	s := start(client, o)
	if err := s.try(quiet(ctx)); err != nil {
		_ = s.Close() // what failed is told
		return nil, fmt.Errorf("make sandboxes in the namespace %s of %s: %w", o.Namespace, o.Config.Host, err)
	}
	return s, nil
}

// start has a client watch.
func start(client dynamic.Interface, o Options) *Sandboxes {
	s := &Sandboxes{
		o: o, client: client,
		looks: map[string]*looks{}, news: map[string]chan struct{}{}, bindings: map[string]*binding{}, past: map[string]uint64{},
	}
	s.life, s.stop = context.WithCancel(quiet(context.Background()))
	s.joined.Go(func() { s.watching(s.life) })
	return s
}

// quiet is a context in which the client of Kubernetes logs nothing: what fails is returned.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// errClosed: nothing is asked any more.
var errClosed = errors.New("the sandboxes are closed")

// claims are the requests about claims.
func (s *Sandboxes) claims() dynamic.ResourceInterface {
	return s.client.Resource(claims).Namespace(s.o.Namespace)
}

// Confirm implements [fleet.Sandboxes].
func (s *Sandboxes) Confirm(ctx context.Context, one fleet.Sandbox) error {
	c, err := s.look(ctx, one.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fleet.ErrLost
	case err != nil:
		return fmt.Errorf("look at the SandboxClaim %s: %w", one.Name, err)
	case c.uid != one.UID || c.bound.Server != one.Server:
		return fleet.ErrLost
	}
	return nil
}

// End implements [fleet.Sandboxes].
func (s *Sandboxes) End(ctx context.Context, key string) error {
	name := object(s.o.Fleet, key)
	c, err := s.look(ctx, name)
	if err == nil {
		err = s.remove(ctx, c)
	}
	switch {
	case apierrors.IsNotFound(err):
		return fleet.ErrNoSandbox
	case err != nil:
		return fmt.Errorf("delete the SandboxClaim %s: %w", name, err)
	}
	s.mu.Lock()
	delete(s.past, name) // who comes next begins anew, and knows it
	s.mu.Unlock()
	return nil
}

// remove deletes a claim, and no later one of its name.
func (s *Sandboxes) remove(ctx context.Context, c claim) error {
	uid := apiUID(c.uid)
	err := s.claims().Delete(quiet(ctx), c.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsConflict(err) {
		return nil // that one is gone
	}
	return err
}

// List implements [fleet.Sandboxes].
func (s *Sandboxes) List(ctx context.Context) ([]fleet.Sandbox, error) {
	var all []fleet.Sandbox
	_, err := s.list(quiet(ctx), func(c claim) {
		if c.bound.Server != "" && !c.going {
			all = append(all, s.told(c))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list the sandboxes: %w", err)
	}
	slices.SortFunc(all, func(a, b fleet.Sandbox) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// Close implements [fleet.Sandboxes].
func (s *Sandboxes) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.joined.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bindings {
		b.end()
	}
	clear(s.bindings)
	return nil
}

// url is where the server in a pod is.
func (s *Sandboxes) url(ip string) string {
	return s.o.Scheme + "://" + net.JoinHostPort(ip, strconv.Itoa(s.o.Port))
}
