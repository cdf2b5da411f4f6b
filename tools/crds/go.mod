// What examples/kubernetes is held against besides an API server: definitions of objects that
// others have, for their files. No Go file imports it, so that go mod tidy would take it out.
module github.com/coppice-run/coppice/tools/crds

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.88.0
