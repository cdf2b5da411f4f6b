package fleettest

import (
	"encoding/json"
	"strings"
	"testing"
)

// Kubernetes is a real API server over a real etcd, without nodes: it keeps objects, and has
// who may do what checked by roles. It ends with the test.
type Kubernetes struct {
	*Process
	// URL is where it is, CA the file of its authority, Token that of an administrator.
	URL, CA, Token string
	// Etcd is where it keeps what it is given.
	Etcd *Etcd
}

// StartKubernetes starts one, and returns when it is ready.
func StartKubernetes(t *testing.T) *Kubernetes {
	t.Helper()
	path := program(t, "COPPICE_TEST_KUBE_APISERVER")
	etcd := StartEtcd(t, 1, nil)
	at, certs, dir := ports(t, 1)[0], NewCertificates(t), t.TempDir()
	k := &Kubernetes{URL: "https://" + at, CA: certs.CA, Token: "the-token-of-an-administrator", Etcd: etcd}
	tokens := write(t, []byte(k.Token+",admin,admin,system:masters\n"), dir, "tokens.csv")
	_, port, _ := strings.Cut(at, ":")
	k.Process = &Process{name: "kube-apiserver", ready: answers(t, k.URL+"/readyz", k.Token, &certs), args: []string{
		path, "--etcd-servers", strings.Join(etcd.URLs(), ","), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port,
		"--tls-cert-file", certs.Cert, "--tls-private-key-file", certs.Key, "--cert-dir", dir, "--token-auth-file", tokens,
		"--authorization-mode", "RBAC", "--endpoint-reconciler-type", "none", "--service-cluster-ip-range", "10.0.0.0/24",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", certs.Key, "--service-account-signing-key-file", certs.Key,
		// The controller that makes the account of a pod is not here.
		"--disable-admission-plugins", "ServiceAccount",
	}}
	t.Cleanup(func() { k.finish(t) })
	k.Launch(t)
	k.Ready(t)
	return k
}

// Config writes a kubeconfig for whoever has the token, in a namespace, and returns its path.
func (k *Kubernetes) Config(t *testing.T, token, namespace string) string {
	t.Helper()
	type named map[string]any
	config, err := json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []named{{"name": "test", "cluster": named{"server": k.URL, "certificate-authority": k.CA}}},
		"users":    []named{{"name": "test", "user": named{"token": token}}},
		"contexts": []named{{"name": "test", "context": named{"cluster": "test", "user": "test", "namespace": namespace}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, config, t.TempDir(), "kubeconfig")
}
