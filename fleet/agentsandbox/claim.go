package agentsandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coppice-run/coppice/fleet"
)

// Pauses between two looks at a claim that has not changed as far as the watch says.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// What agent-sandbox says of a claim that will not be ready any more.
const (
	reasonExpired    = "ClaimExpired"
	reasonSandbox    = "SandboxExpired"
	reasonNoTemplate = "TemplateNotFound"
)

// Claim implements [fleet.Sandboxes].
func (s *Sandboxes) Claim(ctx context.Context, key string) (fleet.Sandbox, error) {
	return s.get(ctx, key, true)
}

// Find implements [fleet.Sandboxes].
func (s *Sandboxes) Find(ctx context.Context, key string) (fleet.Sandbox, error) {
	return s.get(ctx, key, false)
}

// get waits until the claim of a key is bound, and binds it.
func (s *Sandboxes) get(ctx context.Context, key string, makes bool) (fleet.Sandbox, error) {
	name := object(s.o.Fleet, key)
	for wait := firstPause; ; {
		changed := s.changes(name)
		c, err := s.look(ctx, name)
		switch {
		case apierrors.IsNotFound(err) && !makes && !isNoKind(err):
			return fleet.Sandbox{}, fleet.ErrNoSandbox
		case apierrors.IsNotFound(err) && !isNoKind(err):
			err = s.create(ctx, key)
		case err != nil:
		case c.key != key:
			return fleet.Sandbox{}, fmt.Errorf("the SandboxClaim %s is that of the key %q", name, c.key)
		case c.going:
			err = &fleet.SandboxError{Name: name, Reason: "Deleting", Message: "the one before is still being deleted"}
		case c.bound.Server != "":
			return s.told(c), nil
		default:
			err = s.bind(ctx, c)
		}
		if err == nil {
			continue // there is something else to see
		}
		if final(err) {
			return fleet.Sandbox{}, fmt.Errorf("claim a sandbox: %w", err)
		}
		if !awaits(ctx, changed, &wait) {
			return fleet.Sandbox{}, fmt.Errorf("claim a sandbox: %w", gaveUp(ctx, err))
		}
	}
}

// awaits waits for a change, and a while at most, and reports whether ctx goes on.
func awaits(ctx context.Context, changed <-chan struct{}, wait *time.Duration) bool {
	t := time.NewTimer(*wait)
	defer t.Stop()
	*wait = min(2**wait, mostPause)
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// endError is a SandboxError that waiting does not help against.
type endError struct{ *fleet.SandboxError }

// Unwrap returns the SandboxError.
func (e endError) Unwrap() error { return e.SandboxError }

// final reports whether an error is one that waiting does not help against.
func final(err error) bool {
	_, ends := errors.AsType[endError](err)
	return ends || errors.Is(err, errClosed) || isNoKind(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// gaveUp is the error of who waits no longer, after err.
func gaveUp(ctx context.Context, err error) error {
	if not, is := errors.AsType[*fleet.SandboxError](err); is {
		with := *not
		with.Err = ctx.Err()
		return &with
	}
	return fmt.Errorf("%w: %w: %w", fleet.ErrUnknown, ctx.Err(), err)
}

// create makes the claim of a key. nil: it is there now, whoever has made it.
func (s *Sandboxes) create(ctx context.Context, key string) error {
	_, err := s.claims().Create(quiet(ctx), s.claimOf(key), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Renew implements [fleet.Sandboxes].
func (s *Sandboxes) Renew(ctx context.Context, one fleet.Sandbox) error {
	c, err := s.look(ctx, one.Name)
	if apierrors.IsNotFound(err) || err == nil && (c.uid != one.UID || c.bound.Server != one.Server || c.going) {
		return nil // it is known
	}
	if err == nil {
		err = s.bind(ctx, c)
	}
	if err != nil {
		return fmt.Errorf("renew the sandbox %s: %w", one.Name, err)
	}
	return nil
}

// bind binds a claim to the life of the server in its pod. nil: the claim is not what it was, or
// that server has it already. A claim that can be of no use any more is deleted.
func (s *Sandboxes) bind(ctx context.Context, c claim) error {
	url, err := s.place(ctx, c)
	if ends, over := errors.AsType[endError](err); over {
		return s.drop(ctx, c, ends)
	}
	if err != nil {
		return err
	}
	server, err := s.o.Server(ctx, url)
	if err == nil && server == "" {
		err = errors.New("the server does not say who it is")
	}
	if err != nil {
		return &fleet.SandboxError{Name: c.name, Reason: "Unreachable", Message: err.Error()}
	}
	if server == c.bound.Server {
		return nil
	}
	before := max(c.bound.Epoch, c.after)
	note, err := json.Marshal(bound{Server: server, URL: url, Epoch: max(c.first, before+1), Before: before})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.uid, "resourceVersion": c.version, "annotations": map[string]string{boundAnnotation: string(note)},
	}})
	if err != nil {
		return err
	}
	_, err = s.claims().Patch(quiet(ctx), c.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// drop deletes a claim that can be of no use any more. One that was bound makes room for the
// next; of another its caller is told, who else would wait for what fails again and again.
func (s *Sandboxes) drop(ctx context.Context, c claim, why endError) error {
	if c.bound.Server != "" {
		s.mu.Lock()
		s.past[c.name] = c.bound.Epoch
		s.mu.Unlock()
	}
	err := s.remove(ctx, c)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case c.bound.Server == "":
		return why
	}
	return nil
}

// ended is the last epoch of a claim of a name that this process has found to be over.
func (s *Sandboxes) ended(name string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.past[name]
}

// place is where the server of a claim is. An endError: it will not be anywhere.
func (s *Sandboxes) place(ctx context.Context, c claim) (string, error) {
	not := func(reason, message string) error {
		return &fleet.SandboxError{Name: c.name, Reason: cmp.Or(reason, "Pending"), Message: message}
	}
	over := func(reason, message string) error {
		return endError{&fleet.SandboxError{Name: c.name, Reason: reason, Message: message}}
	}
	if c.reason == reasonExpired || c.reason == reasonSandbox || c.reason == reasonNoTemplate && c.bound.Server == "" {
		return "", over(c.reason, c.message)
	}
	sandbox, err := s.client.Resource(sandboxes).Namespace(s.o.Namespace).Get(quiet(ctx), c.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", not(c.reason, c.message)
	}
	if err != nil {
		return "", err
	}
	if !owned(sandbox, c.uid) {
		return "", not("Deleting", "the sandbox of a claim before is still there")
	}
	name := sandbox.GetAnnotations()[podAnnotation]
	pod, err := s.client.Resource(pods).Namespace(s.o.Namespace).Get(quiet(ctx), cmp.Or(name, c.name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && name != "":
		return "", over("PodGone", "the pod "+name+", which came from a warm pool, is gone")
	case apierrors.IsNotFound(err):
		return "", not(c.reason, c.message)
	case err != nil:
		return "", err
	case !owned(pod, string(sandbox.GetUID())):
		return "", not("Deleting", "the pod of a sandbox before is still there")
	}
	switch phase := text(pod, "status", "phase"); phase {
	case "Failed", "Succeeded":
		return "", over("Pod"+phase, text(pod, "status", "message"))
	}
	ip := text(pod, "status", "podIP")
	if ready, _, _ := condition(pod); !ready || ip == "" || !c.ready {
		return "", not(c.reason, c.message)
	}
	return s.url(ip), nil
}

// owned reports whether an object is there for the one of that UID.
func owned(u *unstructured.Unstructured, uid string) bool {
	for _, o := range u.GetOwnerReferences() {
		if o.Controller != nil && *o.Controller && string(o.UID) == uid {
			return true
		}
	}
	return false
}
