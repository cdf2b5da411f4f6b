// Package fleettest has what the tests of a fleet stand on: a directory in memory
// ([Memory]), a way to it that fails on command ([Link]), and the suite that every
// [fleet.Directory] passes ([Run]). It is for tests alone.
package fleettest
