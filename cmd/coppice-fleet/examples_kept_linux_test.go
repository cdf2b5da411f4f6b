package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/coppice-run/coppice/fleet/fleettest"
	"github.com/coppice-run/coppice/messages"
)

// object is one of a file, as much as a test needs of it.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		Template struct {
			Spec struct {
				InitContainers []struct{ Command []string }
				Containers     []struct {
					Args      []string
					Lifecycle struct {
						PreStop struct{ Exec struct{ Command []string } }
					}
					ReadinessProbe, LivenessProbe struct{ Exec struct{ Command []string } }
				}
			}
		}
	}

	data []byte // as JSON
}

// examples are the objects in a folder of examples/kubernetes, in the order of kubectl.
func examples(t *testing.T, folder string) []object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../examples/kubernetes", folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []object
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			var o object
			o.data, err = yaml.YAMLToJSONStrict([]byte(part))
			require.NoError(t, err, name)
			require.NoError(t, json.Unmarshal(o.data, &o), name)
			all = append(all, o)
		}
	}
	return all
}

// setOf is the StatefulSet of a folder.
func setOf(t *testing.T, folder string) object {
	t.Helper()
	all := examples(t, folder)
	i := slices.IndexFunc(all, func(o object) bool { return o.Kind == "StatefulSet" })
	require.GreaterOrEqual(t, i, 0)
	return all[i]
}

// example runs nodes as a StatefulSet does, with folders of the test in the place of its volumes.
type example struct {
	*nodes
	args []string
	here *strings.Replacer
}

// newExample has the init container put the secrets where nodes read them. query is that of the
// directory in Kubernetes; nil: it is one that runs in the test.
func newExample(t *testing.T, set object, query url.Values) *example {
	t.Helper()
	e := &example{nodes: &nodes{t: t, work: t.TempDir(), servers: "-"}, args: set.Spec.Template.Spec.Containers[0].Args}
	directory := "kubernetes://agents?" + query.Encode()
	if query == nil {
		e.nodes = newNodes(t)
		directory = e.servers
	}
	certs := fleettest.NewCertificates(t)
	secret, kept, run := t.TempDir(), t.TempDir(), t.TempDir()
	for name, of := range map[string]string{"tls.crt": certs.Cert, "tls.key": certs.Key, "ca.crt": certs.CA} {
		data, err := os.ReadFile(of)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(secret, name), data, 0o440)) //nolint:gosec // as a secret is mounted
	}
	require.NoError(t, os.WriteFile(filepath.Join(kept, "key"), []byte(strings.Repeat("k", 32)), 0o440)) //nolint:gosec // as a secret is mounted
	e.here = strings.NewReplacer(
		"--fleet=kubernetes://agents", "--fleet="+directory, "0.0.0.0:7443", "127.0.0.1:0",
		"/kept-secret", kept, "/secret", secret, "/run/fleet", run, "/kept/sessions", filepath.Join(t.TempDir(), "sessions"), "/work", e.work,
	)
	init := set.Spec.Template.Spec.InitContainers[0].Command
	require.Equal(t, []string{"sh", "-c"}, init[:2])
	out, err := exec.CommandContext(t.Context(), "sh", "-c", e.here.Replace(init[2])).CombinedOutput() //nolint:gosec // it is that of the example
	require.NoError(t, err, string(out))
	return e
}

// node is that of a pod.
func (e *example) node(pod string) *node {
	e.t.Helper()
	own := strings.NewReplacer("$(POD_NAME)", pod, "127.0.0.1:0", fmt.Sprintf("127.0.0.1:%d", freePorts(e.t, 1)[0]))
	var args []string
	for _, arg := range e.args {
		args = append(args, own.Replace(e.here.Replace(arg)))
	}
	return e.nodes.node(pod, args...)
}

// ask runs a command of a container in it.
func (e *example) ask(n *node, command []string) {
	e.t.Helper()
	require.Equal(e.t, "coppice-fleet", command[0])
	program, err := os.Executable()
	require.NoError(e.t, err)
	c := exec.CommandContext(e.t.Context(), program, command[1:]...)
	c.Env = append(os.Environ(), asNode+"=1", "COPPICE_HOME="+n.home, "COPPICE_TOKEN="+token)
	out, err := c.CombinedOutput()
	require.NoError(e.t, err, "%q: %s", command, out)
}

// TestExampleThatKeeps: with the arguments, the init container and the preStop hook of
// examples/kubernetes/kept, what a session has when its pod is taken away is there in the next one.
func TestExampleThatKeeps(t *testing.T) {
	t.Parallel()
	set := setOf(t, "kept")
	e := newExample(t, set, nil)
	one := e.node("coppice-0")
	require.Equal(t, messages.StateFresh, one.ran("e1", "s", "x = 41", 0).State)
	e.ask(one, set.Spec.Template.Spec.Containers[0].Lifecycle.PreStop.Exec.Command)
	<-one.gone
	two := e.node("coppice-1")
	require.Equal(t, map[string]string{"s": "."}, two.asleep())
	told := two.goesOn("e2", "s", "print(x + 1)")
	require.Equal(t, messages.StateRestored, told.State)
	require.Equal(t, "42", strings.TrimSpace(told.Cells[0].Output))
	require.Equal(t, http.StatusNoContent, two.settled(http.MethodDelete, "/api/sessions/s", "", 0).status)
}

// TestExamplesAreAlike: the StatefulSet of nodes that keep sessions is the other one, with what it
// needs for that and nothing else.
func TestExamplesAreAlike(t *testing.T) {
	t.Parallel()
	lines := func(folder string) []string {
		text, err := os.ReadFile(filepath.Join("../../examples/kubernetes", folder, "statefulset.yaml"))
		require.NoError(t, err)
		_, body, found := strings.Cut(string(text), "\napiVersion: ")
		require.True(t, found)
		return strings.Split(body, "\n")
	}
	more := []string{
		"- {name: kept-secret, mountPath: /kept-secret, readOnly: true}",
		"- --hibernate=lossy", "- --fleet-store=/kept/sessions", "- --fleet-store-key=/run/fleet/kept.key",
		"- {name: kept, mountPath: /kept}",
		"- name: kept-secret", "secret: {secretName: coppice-kept}", "- name: kept", "persistentVolumeClaim: {claimName: coppice-kept}",
	}
	var left []string
	for _, line := range lines("kept") {
		if len(more) > 0 && strings.TrimSpace(line) == more[0] {
			more = more[1:]
			continue
		}
		left = append(left, strings.Replace(line, " && cp -L /kept-secret/key /run/fleet/kept.key", "", 1))
	}
	require.Empty(t, more)
	require.Equal(t, lines("."), left)
}
