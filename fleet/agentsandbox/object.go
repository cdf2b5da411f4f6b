package agentsandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is asked of the API server.
var (
	claims    = schema.GroupVersionResource{Group: "extensions.agents.x-k8s.io", Version: "v1alpha1", Resource: "sandboxclaims"}
	sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1alpha1", Resource: "sandboxes"}
	pods      = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// What a claim carries: the label of its fleet, its key, and what it is bound to. The key stands
// in an annotation, as a label may not have all that a key has.
const (
	fleetLabel      = "coppice-fleet/name"
	keyAnnotation   = "coppice-fleet/key"
	boundAnnotation = "coppice-fleet/bound"
	afterAnnotation = "coppice-fleet/after"
)

// podAnnotation is where agent-sandbox notes which pod of a warm pool a sandbox has.
const podAnnotation = "agents.x-k8s.io/pod-name"

// maxFleet is the length of the name of a fleet: with the hash of a key behind it, it is that of
// a service.
const maxFleet = 20

// validFleet reports whether a name can begin those of services.
func validFleet(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= maxFleet && name[0] >= 'a' && name[0] <= 'z'
}

// object is the name of the claim of a key, and of all that is made for it.
func object(fleet, key string) string {
	sum := sha256.Sum256([]byte(key))
	return fleet + "-" + hex.EncodeToString(sum[:20])
}

// claim is a SandboxClaim, as much of it as counts here.
type claim struct {
	name, uid, version string
	key                string
	// going says that it is being deleted.
	going bool
	// ready says that its sandbox is; else reason and message say why not.
	ready           bool
	reason, message string
	bound           bound
	// first is its first epoch, after the last one that is known to have been before it; 0: none.
	first, after uint64
}

// bound is what a claim is bound to, as its annotation says.
type bound struct {
	// Server is "" as long as it is not bound.
	Server string `json:"server"`
	URL    string `json:"url"`
	Epoch  uint64 `json:"epoch"`
	// Before is the epoch before, 0: there was none.
	Before uint64 `json:"before,omitempty"`
}

// read reads a claim.
func read(u *unstructured.Unstructured) (claim, error) {
	notes := u.GetAnnotations()
	c := claim{
		name: u.GetName(), uid: string(u.GetUID()), version: u.GetResourceVersion(), key: notes[keyAnnotation], going: u.GetDeletionTimestamp() != nil,
		first: firstEpoch(u.GetCreationTimestamp().Time, string(u.GetUID())),
	}
	c.ready, c.reason, c.message = condition(u)
	for name, into := range map[string]any{boundAnnotation: &c.bound, afterAnnotation: &c.after} {
		if text := notes[name]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				return claim{}, fmt.Errorf("read %s of the SandboxClaim %s: %w", name, c.name, err)
			}
		}
	}
	return c, nil
}

// epochBits are those of an epoch below the time. JavaScript knows numbers of 53 bits, and
// seconds have 32 until the year 2106.
const epochBits = 20

// firstEpoch is the first one of a claim.
func firstEpoch(made time.Time, uid string) uint64 {
	sum := sha256.Sum256([]byte(uid))
	return uint64(max(made.Unix(), 0))<<epochBits | uint64(binary.BigEndian.Uint32(sum[:4])>>(32-epochBits)) //nolint:gosec // it is not negative
}

// condition is whether an object is ready, or why not.
func condition(u *unstructured.Unstructured) (ready bool, reason, message string) {
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return false, "", ""
	}
	for _, one := range list {
		var c metav1.Condition
		fields, is := one.(map[string]any)
		if is && runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c) == nil && c.Type == "Ready" {
			return c.Status == metav1.ConditionTrue, c.Reason, c.Message
		}
	}
	return false, "", ""
}

// text is a text of an object, "" where there is none.
func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...) // what is none says nothing
	return s
}

// claimOf is the claim of a key that is to be made.
func (s *Sandboxes) claimOf(key string) *unstructured.Unstructured {
	name := object(s.o.Fleet, key)
	spec := map[string]any{"sandboxTemplateRef": map[string]any{"name": s.o.Template}}
	if s.o.Lifetime > 0 {
		until := time.Now().Add(s.o.Lifetime).UTC().Format(time.RFC3339)
		spec["lifecycle"] = map[string]any{"shutdownTime": until, "shutdownPolicy": "Delete"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(claims.GroupVersion().WithKind("SandboxClaim"))
	u.SetName(name)
	u.SetLabels(map[string]string{fleetLabel: s.o.Fleet})
	notes := map[string]string{keyAnnotation: key}
	if after := s.ended(name); after != 0 {
		notes[afterAnnotation] = fmt.Sprint(after)
	}
	u.SetAnnotations(notes)
	return u
}
