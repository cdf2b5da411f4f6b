// Package egress is the way out for code that may reach some hosts of the network and no
// others: a proxy for HTTP on a loopback port, which programs find by HTTP_PROXY and
// HTTPS_PROXY, and which says what it has refused.
//
// # Guarantees
//
//   - A connection is made to hosts and ports that are listed, and to no others: by their names,
//     which the proxy looks up itself, or by their addresses where those are listed.
//   - A listed name that stands for an address of this machine, or of its link (where clouds
//     keep their metadata), is refused: such an address is reached when it is listed itself.
//   - Who does not show the token is refused (407), also on this machine.
//   - What is refused is answered with 403, whose status says what may be reached, and is told by
//     [Proxy.Refused].
//   - [Proxy.Close] ends what goes on, and returns when it has.
//
// That code has no other way out is not seen to here: package sandbox leaves it the port of the
// proxy alone.
//
// # The life of a connection
//
//	accepted ──no token──▶ 407          ┌─▶ 403, noted
//	         └─token─▶ asked ──not listed┤
//	                         └─listed──▶ dialled ──▶ tunnel or answer ──▶ closed
//
// A [Proxy] may be used from any goroutine.
package egress
