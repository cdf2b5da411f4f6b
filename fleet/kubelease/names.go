package kubelease

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coppice-run/coppice/fleet"
)

// What a Lease carries: the labels by which it is found, and the entry. The key stands in an
// annotation, as the name of an object has no capital letters, and no '_' and '='.
const (
	fleetLabel      = "coppice-fleet/name"
	kindLabel       = "coppice-fleet/kind"
	keyAnnotation   = "coppice-fleet/key"
	valueAnnotation = "coppice-fleet/value"
)

// maxFleet is the length of the name of a fleet.
const maxFleet = 40

func validFleet(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= maxFleet && name[0] != '-' && name[len(name)-1] != '-'
}

// names are those of the objects of a fleet.
type names struct{ fleet string }

// kind is what the label of a key says: its first part, or what stands for one that a label
// cannot say. Two may have the same.
func kind(key string) string {
	first, _, _ := strings.Cut(key, ".")
	for _, c := range first {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "other"
		}
	}
	if first == "" || len(first) > 30 {
		return "other"
	}
	return first
}

// object is the name of the object of a key.
func (n names) object(key string) string {
	sum := sha256.Sum256([]byte(key))
	return n.fleet + "." + kind(key) + "." + hex.EncodeToString(sum[:20])
}

// selector finds the objects of a prefix, and perhaps others.
func (n names) selector(prefix string) string {
	s := fleetLabel + "=" + n.fleet
	if prefix != "" {
		s += "," + kindLabel + "=" + kind(prefix)
	}
	return s
}

// lease is the object of an entry.
func (n names) lease(key string, value []byte) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name:        n.object(key),
		Labels:      map[string]string{fleetLabel: n.fleet, kindLabel: kind(key)},
		Annotations: map[string]string{keyAnnotation: key, valueAnnotation: base64.StdEncoding.EncodeToString(value)},
	}}
}

// entry is that of an object.
func entry(l *coordinationv1.Lease) (fleet.Entry, error) {
	value, err := base64.StdEncoding.DecodeString(l.Annotations[valueAnnotation])
	if err != nil {
		return fleet.Entry{}, fmt.Errorf("read the Lease %s: %w", l.Name, err)
	}
	return fleet.Entry{Key: l.Annotations[keyAnnotation], Value: value, Rev: revision(l)}, nil
}

// revision is that of an object: of one that was made again, too, it is another.
func revision(l *coordinationv1.Lease) fleet.Revision {
	return fleet.Revision(string(l.UID) + "/" + l.ResourceVersion)
}

// split is the object that a revision names.
func split(rev fleet.Revision) (uid types.UID, version string, ok bool) {
	before, after, ok := strings.Cut(string(rev), "/")
	return types.UID(before), after, ok && before != "" && after != ""
}
