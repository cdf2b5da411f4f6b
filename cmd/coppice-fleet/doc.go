// Command coppice-fleet is the command coppice whose servers can be nodes of a fleet: many
// of them are one service then, and each session belongs to one. It is a program of its
// own, as it links the engines that a fleet can stand on.
//
// Its guarantees are those of package cmd/internal/fleetapi; docs/fleet.md is for its users.
package main
