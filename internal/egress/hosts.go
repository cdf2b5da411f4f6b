package egress

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Hosts are those that may be reached.
type Hosts []host

// host is one of them, or with below set all whose names end with it.
type host struct {
	name  string // in lower case, without a dot at its end; an address without brackets
	below bool
	port  int // 0: those of HTTP
	text  string
}

// The ports that are meant where none is named.
const (
	portHTTP  = 80
	portHTTPS = 443
	mostPort  = 1<<16 - 1
)

// Parse reads hosts: a name ("api.example.com"), all names below one ("*.example.org") or an address,
// each with a port where it is not 80 and 443 ("git.example.net:8443", "[::1]:80"). The error names
// the one that cannot be read, and what can.
func Parse(list []string) (Hosts, error) {
	all := make(Hosts, 0, len(list))
	for _, text := range list {
		h, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("the host %.100q: %w; write a name like api.example.com, *.example.org or git.example.net:8443, or an address", text, err)
		}
		all = append(all, h)
	}
	return all, nil
}

func parse(text string) (h host, err error) {
	h.text, h.name = text, text
	if name, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > mostPort {
			return h, fmt.Errorf("its port is not one from 1 to %d", mostPort)
		}
		h.name, h.port = name, n
	}
	h.name = strings.Trim(h.name, "[]")
	if _, err := netip.ParseAddr(h.name); err == nil {
		return h, nil
	}
	h.name, h.below = strings.CutPrefix(h.name, "*.")
	if h.name, err = canonical(h.name); err != nil {
		return h, err
	}
	if h.name == local || strings.HasSuffix(h.name, "."+local) {
		return h, errLocal
	}
	return h, nil
}

// names are those of hosts: what a browser takes, and no label without a letter.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// errName is the error about a name that none is.
var errName = errors.New("it is no name of a host")

// local stands for this machine, with all names below it, on every system.
const local = "localhost"

// errLocal is the error about a name that would never be connected to, see [Proxy].
var errLocal = errors.New("it stands for this machine, which is reached by its address: list 127.0.0.1 or ::1, with the port")

// canonical returns a name as it is compared.
func canonical(name string) (string, error) {
	name, err := names.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil || name == "" {
		return "", errName
	}
	return strings.ToLower(name), nil
}

// allow reports whether a host may be reached at a port, and whether by its address.
func (all Hosts) allow(name string, port int) (ok, address bool) {
	if at, err := netip.ParseAddr(name); err == nil {
		for _, h := range all {
			if listed, err := netip.ParseAddr(h.name); err == nil && listed.Unmap() == at.Unmap() && h.at(port) {
				return true, true
			}
		}
		return false, true
	}
	name, err := canonical(name)
	if err != nil {
		return false, false
	}
	for _, h := range all {
		if h.at(port) && (name == h.name && !h.below || h.below && strings.HasSuffix(name, "."+h.name)) {
			return true, false
		}
	}
	return false, false
}

func (h host) at(port int) bool {
	return port == h.port || h.port == 0 && (port == portHTTP || port == portHTTPS)
}

// String lists them.
func (all Hosts) String() string {
	texts := make([]string, 0, len(all))
	for _, h := range all {
		texts = append(texts, h.text)
	}
	return strings.Join(texts, ", ")
}
