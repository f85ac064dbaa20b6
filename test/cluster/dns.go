// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

// startDNS runs CoreDNS as a process at the node's address. That saves an image
// and a Pod, and the host can query it too.
func (c *cluster) startDNS(ctx context.Context) error {
	config := fmt.Sprintf(corefile, c.nodeAddress, domain, c.kubeconfig("dns"))
	if err := writeFile(c.in("Corefile"), []byte(config), 0o644); err != nil {
		return err
	}
	if err := c.start(ctx, process{Name: "coredns", Command: []string{c.binary(coredns, "coredns"), "-conf", c.in("Corefile")}}); err != nil {
		return err
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, c.nodeAddress+":53")
	}}
	return waiting{what: "DNS to answer", log: c.log("coredns"), deadline: 30 * time.Second, alive: c.check("coredns")}.
		until(ctx, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err := resolver.LookupHost(ctx, "kubernetes.default.svc."+domain+".")
			return err
		})
}

// Names outside the cluster do not resolve, because the namespace has no route
// to them. There are two blocks, because the template plugin answers before the
// kubernetes plugin. The TTL is one second, because tests recreate Services.
const corefile = `%[2]s:53 in-addr.arpa:53 ip6.arpa:53 {
    bind %[1]s
    errors
    kubernetes %[2]s in-addr.arpa ip6.arpa {
        kubeconfig %[3]s
        pods insecure
        ttl 1
    }
}
.:53 {
    bind %[1]s
    template ANY ANY . {
        rcode NXDOMAIN
    }
}
`
