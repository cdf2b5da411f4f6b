// Package loopback says whether a name or an address is this machine's alone. It is
// the one rule for it: what servers listen on, the Host and Origin of requests, and
// whether a Jupyter server is on this machine.
//
// It resolves nothing: a name that only resolves to a loopback address is refused,
// since whoever owns the name may let it resolve to another.
package loopback

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// Host reports whether a host without a port is the loopback interface: the name
// localhost, in any case, or a loopback address, also an IPv6 one in brackets or one
// that carries an IPv4 address. An address with a zone is not. Any goroutine may
// call it.
func Host(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return false
		}
	}
	addr, err := netip.ParseAddr(inner)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback() && (!bracketed || addr.Is6())
}

// HostPort is Host for what may have a port, such as the Host header of a request.
func HostPort(s string) bool {
	if host, _, err := net.SplitHostPort(s); err == nil {
		return Host(host)
	}
	return Host(s)
}

// URL is Host for the host of a URL.
func URL(u *url.URL) bool { return HostPort(u.Host) }

// Addr reports whether a listener's or a connection's address is a TCP address of
// the loopback interface.
func Addr(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
