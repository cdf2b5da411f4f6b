// Package checkup is the way from package coppice to what can be looked at
// without a host: the limits of the machine, who can read our files, what hosts
// that were killed left behind, whether an external server answers, and the trace of what
// passes between a host and its kernels. It holds no actor.
//
// Everything here looks and changes nothing, except [Clean] and
// [CleanGroups], which end and remove what nobody claims and is proved to be ours: see
// internal/sharedgateway, kernelserver and cgroup. Any goroutine may call it.
package checkup
