package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// ErrNotAllowed says that the centre is not configured to call that host or address.
var ErrNotAllowed = errors.New("not allowed")

// Egress is where the centre may connect to. A provider's endpoint is what its
// owner typed; without this it would reach whatever the centre can reach.
type Egress struct {
	hosts    []string
	networks []netip.Prefix
	never    []netip.Addr
}

// NewEgress takes patterns of hosts (name, *.domain, an address, each with or
// without :port) and networks (CIDR). Loopback, link-local, multicast and
// unspecified addresses are connected to only when a network names them, and
// no other network is when one is given. never are addresses that are refused
// whatever is configured: the API server's.
func NewEgress(hosts, networks, never []string) (*Egress, error) {
	e := &Egress{}
	for _, h := range hosts {
		if strings.ContainsAny(h, "/@ ") || strings.Contains(strings.TrimPrefix(h, "*."), "*") {
			return nil, fmt.Errorf("host %q is none of name, *.domain, address, each with or without :port", h)
		}
		e.hosts = append(e.hosts, strings.ToLower(h))
	}
	for _, n := range networks {
		prefix, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("network %q: %w", n, err)
		}
		e.networks = append(e.networks, prefix)
	}
	for _, n := range never {
		if addr, err := netip.ParseAddr(n); err == nil {
			e.never = append(e.never, addr)
		}
	}
	return e, nil
}

// CheckHost says whether an endpoint may name this host and port.
func (e *Egress) CheckHost(host, port string) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, pattern := range e.hosts {
		name := host
		if h, p, err := net.SplitHostPort(pattern); err == nil {
			if p != port {
				continue
			}
			pattern = h
		}
		if suffix, ok := strings.CutPrefix(pattern, "*."); ok {
			if strings.HasSuffix(name, "."+suffix) {
				return nil
			}
			continue
		}
		if pattern == name {
			return nil
		}
	}
	return fmt.Errorf("host %s (port %s) is none of those that PROVIDER_HOSTS lists: %w", host, port, ErrNotAllowed)
}

// CheckAddress says whether a name's address may be connected to.
func (e *Egress) CheckAddress(addr netip.Addr) error {
	addr = addr.Unmap()
	for _, n := range e.never {
		if addr == n {
			return fmt.Errorf("address %s is the API server's: %w", addr, ErrNotAllowed)
		}
	}
	for _, n := range e.networks {
		if n.Contains(addr) {
			return nil
		}
	}
	if len(e.networks) > 0 || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() {
		return fmt.Errorf("address %s is in none of the networks that PROVIDER_NETWORKS lists: %w", addr, ErrNotAllowed)
	}
	return nil
}

// Dial connects, and looks at the address after the name was resolved: a name
// that is allowed may lead anywhere.
func (e *Egress) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("address %q: %w", address, ErrNotAllowed)
			}
			return e.CheckAddress(at.Addr())
		}}
	return dialer.DialContext(ctx, network, address)
}
