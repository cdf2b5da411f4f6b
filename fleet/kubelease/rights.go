package kubelease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ErrForbidden says that who this is may not do what a directory does.
var ErrForbidden = errors.New("the rights for it are missing")

// verbs are what a directory does to leases.
var verbs = []string{"get", "list", "watch", "create", "update", "delete"}

func addToScheme(scheme *runtime.Scheme) error {
	return errors.Join(coordinationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme))
}

// try finds out that the server does what a directory asks of it: the rights are asked for by
// name, for one that is missing would come up in the middle of the work; a Lease that is not
// kept tells whether the namespace is there.
func (s *store) try(ctx context.Context) error {
	var missing []string
	for _, verb := range verbs {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.namespace, Verb: verb, Group: coordinationv1.GroupName, Resource: "leases"},
		}}
		err := s.client.Post().AbsPath("/apis", authorizationv1.GroupName, "v1", "selfsubjectaccessreviews").Body(review).Do(ctx).Into(review)
		if apierrors.IsForbidden(err) {
			break // who may not ask finds out below
		}
		if err != nil {
			return err
		}
		if !review.Status.Allowed {
			missing = append(missing, verb)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: to %s leases of %s", ErrForbidden, strings.Join(missing, ", "), coordinationv1.GroupName)
	}
	dry := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	err := s.leases(s.client.Post()).VersionedParams(dry, s.params).Body(s.names.lease("try.it", nil)).Do(ctx).Error()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case apierrors.IsAlreadyExists(err):
		return nil
	default:
		return err
	}
}
