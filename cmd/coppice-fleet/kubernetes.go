package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/coppice-run/coppice/cmd/internal/cli"
	"github.com/coppice-run/coppice/fleet"
	"github.com/coppice-run/coppice/fleet/kubelease"
)

// openKubernetes opens a directory over Lease objects, in the namespace that is the host of
// kubernetes://NAMESPACE, or else that of the pod or of the context. kubeconfig and context
// say which cluster, fleet which of several fleets of a namespace.
func openKubernetes(ctx context.Context, o cli.DirectoryOptions) (fleet.Directory, error) {
	given, err := parameters(o, "kubeconfig", "context", "fleet")
	if err != nil {
		return nil, err
	}
	config, namespace, err := cluster(o, given)
	if err != nil {
		return nil, err
	}
	with := kubelease.Options{Config: config, Namespace: namespace, Fleet: given.Get("fleet"), Lease: o.TTL}
	return await(ctx, o, func(try context.Context) (*kubelease.Directory, error) { return kubelease.Open(try, with) }, func(err error) bool {
		_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
		return unverified || errors.Is(err, kubelease.ErrForbidden) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	})
}

// cluster says how the cluster of kubernetes://NAMESPACE is reached, and which namespace is meant:
// that of the pod or of the context where none is named.
func cluster(o cli.DirectoryOptions, given url.Values) (config *rest.Config, namespace string, err error) {
	u := o.URLs[0]
	if len(o.URLs) > 1 || u.Port() != "" || u.Path != "" {
		return nil, "", usage("kubernetes://NAMESPACE names one namespace; which cluster it is in, a kubeconfig says: kubernetes://NAMESPACE?kubeconfig=FILE&context=NAME")
	}
	klog.SetLogger(logr.FromSlogHandler(o.Logger.Handler())) // what clientcmd has to say
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = given.Get("kubeconfig")
	where := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: given.Get("context")})
	config, err = where.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the cluster of kubernetes://: %w (in a pod its service account says it, elsewhere KUBECONFIG or kubernetes://NAMESPACE?kubeconfig=FILE)", err)
	}
	namespace, _, err = where.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the namespace of kubernetes://: %w", err)
	}
	return config, cmp.Or(u.Host, namespace), nil
}
