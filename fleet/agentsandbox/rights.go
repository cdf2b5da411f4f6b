package agentsandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// ErrForbidden says that who this is may not do what has to be done.
var ErrForbidden = errors.New("the rights for it are missing")

// needs are what is done to which objects.
var needs = []struct {
	of    schema.GroupVersionResource
	verbs []string
}{
	{claims, []string{"get", "list", "watch", "create", "patch", "delete"}},
	{sandboxes, []string{"get"}},
	{pods, []string{"get"}},
}

// reviews is where it is asked what one may do.
var reviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// apiUID is a UID as the API has it.
func apiUID(uid string) types.UID { return types.UID(uid) }

// try finds out that the server does what is asked of it: the rights are asked for by name, for
// one that is missing would come up in the middle of the work; a claim that is not kept tells
// whether agent-sandbox and the namespace are there.
func (s *Sandboxes) try(ctx context.Context) error {
	var missing []string
	for _, need := range needs {
		var lack []string
		for _, verb := range need.verbs {
			may, err := s.may(ctx, need.of, verb)
			if err != nil {
				return err
			}
			if !may {
				lack = append(lack, verb)
			}
		}
		if len(lack) > 0 {
			missing = append(missing, strings.Join(lack, ", ")+" "+need.of.GroupResource().String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: to %s", ErrForbidden, strings.Join(missing, "; to "))
	}
	_, err := s.claims().Create(ctx, s.claimOf("try it"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	case apierrors.IsAlreadyExists(err):
		return nil
	case isNoKind(err):
		return fmt.Errorf("the cluster does not know a SandboxClaim: install agent-sandbox with its extensions: %w", err)
	default:
		return err
	}
}

// isNoKind reports whether there is no such kind of object, and not one object of it.
func isNoKind(err error) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	return is && apierrors.IsNotFound(err) && (status.ErrStatus.Details == nil || status.ErrStatus.Details.Name == "")
}

// may asks for one right. Who may not even ask finds out when it is needed.
func (s *Sandboxes) may(ctx context.Context, of schema.GroupVersionResource, verb string) (bool, error) {
	review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
		"namespace": s.o.Namespace, "verb": verb, "group": of.Group, "resource": of.Resource,
	}}}}
	review.SetGroupVersionKind(reviews.GroupVersion().WithKind("SelfSubjectAccessReview"))
	answer, err := s.client.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, err
}
