package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrNotAllowed is returned for a host or address that the centre must not call.
var ErrNotAllowed = errors.New("not allowed")

// Egress restricts where the centre may connect to. Without it, a provider's
// endpoint could reach every address that the centre can reach.
type Egress struct {
	hosts    []string
	networks []netip.Prefix
	denied   []netip.Addr
}

// NewEgress takes host patterns (name, *.domain or address, with or without
// :port) and networks (CIDR). With networks, only addresses in them are allowed.
// Without networks, all are allowed except loopback, link-local, multicast and
// unspecified addresses, and the metadata services of clouds. denied addresses (the API
// server) are never allowed.
func NewEgress(hosts, networks, denied []string) (*Egress, error) {
	e := &Egress{}
	for _, h := range hosts {
		if strings.ContainsAny(h, "/@ ") || strings.Contains(strings.TrimPrefix(h, "*."), "*") {
			return nil, fmt.Errorf("host %q is not a name, *.domain or address, with or without :port", h)
		}
		e.hosts = append(e.hosts, strings.ToLower(h))
	}
	for _, n := range networks {
		prefix, err := netip.ParsePrefix(n)
		if err != nil {
			return nil, fmt.Errorf("parse network %q: %w", n, err)
		}
		e.networks = append(e.networks, prefix)
	}
	for _, n := range denied {
		if addr, err := netip.ParseAddr(n); err == nil {
			e.denied = append(e.denied, addr)
		}
	}
	return e, nil
}

// CheckHost checks that an endpoint may name this host and port.
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
	return fmt.Errorf("host %s, port %s is not in PROVIDER_HOSTS (key provider-hosts of ConfigMap permission-centre; restart the centre after a change): %w", host, port, ErrNotAllowed)
}

// CheckAddress checks that a resolved address may be connected to.
func (e *Egress) CheckAddress(addr netip.Addr) error {
	addr = ipv4(addr)
	for _, n := range e.denied {
		if addr == n {
			return fmt.Errorf("address %s belongs to the API server: %w", addr, ErrNotAllowed)
		}
	}
	for _, n := range e.networks {
		if n.Contains(addr) {
			return nil
		}
	}
	if len(e.networks) > 0 || addr.IsLoopback() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() ||
		slices.ContainsFunc(notByDefault, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return fmt.Errorf("address %s is not in PROVIDER_NETWORKS (key provider-networks of ConfigMap permission-centre; restart the centre after a change): %w", addr, ErrNotAllowed)
	}
	return nil
}

// notByDefault are networks that only PROVIDER_NETWORKS allows.
var notByDefault = []netip.Prefix{
	// Metadata services: they give the credentials of a machine to every process on it.
	// Those of other clouds have link-local addresses.
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::254/128"),  // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
	// NAT64 with prefixes of any length (RFC 8215), so the IPv4 address is unknown.
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// nat64 is the prefix before the IPv4 addresses that a NAT64 gateway translates (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// ipv4 returns the IPv4 address to which a connection is made, or the address itself.
func ipv4(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); nat64.Contains(addr) {
		bytes := addr.As16()
		addr, _ = netip.AddrFromSlice(bytes[12:])
	}
	return addr
}

// Dial connects to an allowed address. It checks the address after DNS, because
// an allowed name may resolve to any address.
func (e *Egress) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("parse address %q: %w", address, ErrNotAllowed)
			}
			return e.CheckAddress(at.Addr())
		}}
	return dialer.DialContext(ctx, network, address)
}
