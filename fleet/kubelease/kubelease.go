package kubelease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	retrywatch "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"

	"github.com/coppice-run/coppice/fleet"
)

// Options says where the directory is.
type Options struct {
	// Config is how the API server is reached, and who this is: rest.InClusterConfig, or what
	// clientcmd makes of a kubeconfig. Its bounds of requests a second are not used: the
	// server has its own. Required.
	Config *rest.Config
	// Namespace is where the Lease objects are. It has to be there. Default: "default".
	Namespace string
	// Fleet is the name of the fleet, which several in a namespace differ in: letters a to z,
	// digits and '-', 40 at most. Default: "coppice".
	Fleet string
	// Lease is how long a lease of the fleet's nodes lasts, as TTL of [fleet.Options]: connections
	// on which a request has no answer are made anew well within it. Default: 15 s.
	Lease time.Duration
}

// page is how many objects are listed at once.
const page = 500

// Directory is the Lease objects of a fleet. Make one with [Open].
type Directory struct{ fleet.Directory }

// store is what the directory asks: a guard of package fleet does the rest.
type store struct {
	client    *rest.RESTClient
	params    runtime.ParameterCodec
	namespace string
	names     names
	// conns are the connections, and within is how long one request may take.
	conns  *connrotation.Dialer
	within time.Duration
}

// Open finds out that the server can be reached and does what a directory asks of it, as long
// as ctx lasts. An error of a right that is missing names it, and matches [ErrForbidden].
func Open(ctx context.Context, o Options) (*Directory, error) {
	if o.Namespace == "" {
		o.Namespace = metav1.NamespaceDefault
	}
	if o.Fleet == "" {
		o.Fleet = "coppice"
	}
	if o.Lease == 0 {
		o.Lease = fleet.DefaultTTL
	}
	if !validFleet(o.Fleet) {
		return nil, fmt.Errorf("open the directory: the name of a fleet has 1 to %d letters a to z, digits and '-', not %q", maxFleet, o.Fleet)
	}
	s, err := newStore(o)
	if err != nil {
		return nil, fmt.Errorf("make a client of Kubernetes: %w", err)
	}
	if err := s.try(quiet(ctx)); err != nil {
		_ = s.Close() // what failed is told
		return nil, fmt.Errorf("keep leases in the namespace %s of %s: %w", o.Namespace, o.Config.Host, err)
	}
	return &Directory{fleet.Guard(s)}, nil
}

func newStore(o Options) (*store, error) {
	if o.Config == nil {
		return nil, errors.New("there is no configuration")
	}
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(o.Config)
	config.APIPath, config.GroupVersion = "/apis", &coordinationv1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	config.QPS, config.RateLimiter = -1, nil
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	within := fleet.AnswerTime(o.Lease)
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: within}).DialContext
	}
	conns := connrotation.NewDialer(dial)
	config.Dial = conns.DialContext
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &store{
		client: client, params: runtime.NewParameterCodec(scheme), namespace: o.Namespace, names: names{fleet: o.Fleet},
		conns: conns, within: within,
	}, nil
}

// soon makes a request that has to be answered soon. All share one connection, to one of the servers
// behind an address: when it stands still, the client would go on with it for 45 s, which is longer
// than a lease.
func (s *store) soon(ctx context.Context, do func(context.Context) error) error {
	once, cancel := context.WithTimeout(quiet(ctx), s.within)
	defer cancel()
	err := do(once)
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		s.conns.CloseAll()
		return fmt.Errorf("the API server gave no answer within %s: %w", s.within, err)
	}
	return err
}

// quiet is a context in which the client of Kubernetes logs nothing: what fails is returned.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// leases is a request about the Lease objects, which is sent once.
func (s *store) leases(r *rest.Request) *rest.Request {
	return r.Namespace(s.namespace).Resource("leases").MaxRetries(0)
}

// Get implements [fleet.Directory].
func (s *store) Get(ctx context.Context, key string) (fleet.Entry, error) {
	var l coordinationv1.Lease
	err := s.soon(ctx, func(ctx context.Context) error {
		return s.leases(s.client.Get()).Name(s.names.object(key)).Do(ctx).Into(&l)
	})
	if apierrors.IsNotFound(err) {
		return fleet.Entry{Key: key}, nil
	}
	if err != nil {
		return fleet.Entry{}, err
	}
	e, err := entry(&l)
	if err == nil && e.Key != key {
		err = fmt.Errorf("the Lease %s is that of the key %q", l.Name, e.Key)
	}
	return e, err
}

// Swap implements [fleet.Directory].
func (s *store) Swap(ctx context.Context, key string, value []byte, prev fleet.Revision) (fleet.Revision, error) {
	l := s.names.lease(key, value)
	request := s.client.Post()
	if prev != "" {
		uid, version, ok := split(prev)
		if !ok {
			return "", fleet.ErrConflict // no entry has it
		}
		l.UID, l.ResourceVersion = uid, version
		request = s.client.Put().Name(l.Name)
	}
	var now coordinationv1.Lease
	err := s.soon(ctx, func(ctx context.Context) error {
		return s.leases(request).Body(l).Do(ctx).Into(&now)
	})
	switch {
	case err == nil:
		return revision(&now), nil
	case apierrors.IsConflict(err), prev == "" && apierrors.IsAlreadyExists(err):
		return "", fleet.ErrConflict
	default:
		return "", err
	}
}

// Remove implements [fleet.Directory].
func (s *store) Remove(ctx context.Context, key string, prev fleet.Revision) error {
	uid, version, ok := split(prev)
	if !ok {
		return nil // no entry has it
	}
	only := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	err := s.soon(ctx, func(ctx context.Context) error {
		return s.leases(s.client.Delete()).Name(s.names.object(key)).Body(only).Do(ctx).Error()
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or a later one is there
	}
	return err
}

// Watch implements [fleet.Directory].
func (s *store) Watch(ctx context.Context, prefix string, f func(fleet.Entry)) error {
	ctx, cancel := context.WithCancel(quiet(ctx))
	defer cancel()
	tell := func(l *coordinationv1.Lease) error {
		e, err := entry(l)
		if err == nil && strings.HasPrefix(e.Key, prefix) {
			f(e)
		}
		return err
	}
	at, err := s.list(ctx, prefix, tell)
	if err != nil {
		return err
	}
	f(fleet.Entry{})
	changes, err := retrywatch.NewRetryWatcherWithContext(ctx, at, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector, o.Watch = s.names.selector(prefix), true
		return s.leases(s.client.Get()).VersionedParams(&o, s.params).Watch(ctx)
	}})
	if err != nil {
		return err
	}
	defer func() {
		changes.Stop()
		<-changes.Done()
	}()
	for e := range changes.ResultChan() {
		switch l, isLease := e.Object.(*coordinationv1.Lease); {
		case e.Type == watch.Error:
			return apierrors.FromObject(e.Object)
		case isLease && (e.Type == watch.Added || e.Type == watch.Modified):
			if err := tell(l); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// list tells the objects of a prefix as they are at one version of the store, and returns it.
func (s *store) list(ctx context.Context, prefix string, tell func(*coordinationv1.Lease) error) (at string, err error) {
	o := metav1.ListOptions{LabelSelector: s.names.selector(prefix), Limit: page}
	for {
		var list coordinationv1.LeaseList
		if err := s.leases(s.client.Get()).VersionedParams(&o, s.params).Do(ctx).Into(&list); err != nil {
			return "", err
		}
		for i := range list.Items {
			if err := tell(&list.Items[i]); err != nil {
				return "", err
			}
		}
		if list.Continue == "" {
			return list.ResourceVersion, nil
		}
		o.Continue = list.Continue
	}
}

// Close implements [fleet.Directory].
func (s *store) Close() error {
	if s.client.Client != nil {
		utilnet.CloseIdleConnectionsFor(s.client.Client.Transport)
	}
	return nil
}
