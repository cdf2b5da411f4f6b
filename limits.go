package coppice

import "github.com/coppice-run/coppice/actors/kernel"

type (
	// Limits bound what one session uses.
	Limits = kernel.Limits
	// Isolation says what sessions are kept from.
	Isolation = kernel.Isolation
)

// Rungs of Isolation.Level.
const (
	IsolationOff        = kernel.IsolationOff
	IsolationPrivileges = kernel.IsolationPrivileges
	IsolationLandlock   = kernel.IsolationLandlock
	IsolationBubblewrap = kernel.IsolationBubblewrap
	IsolationStrongest  = kernel.IsolationStrongest
)
