//go:build !linux

package cli

import "github.com/coppice-run/coppice/cmd/internal/handover"

// onReplace does nothing: no server can be replaced here.
func (*app) onReplace(*handover.Offer) (stop func()) { return func() {} }
