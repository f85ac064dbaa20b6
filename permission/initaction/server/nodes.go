package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// nodeTTL is how long a node's addresses are cached. A node that is created again under its name
// has others: see nodeCache.get.
const nodeTTL = 5 * time.Minute

// unaddressedNodeTTL is nodeTTL of a node without addresses: a cloud controller adds those of a new node while pods
// run on it.
const unaddressedNodeTTL = 10 * time.Second

// nodeCache reads the addresses of nodes, for node-scoped providers and for pods
// with hostNetwork.
type nodeCache struct {
	kube  kubernetes.Interface
	cache *utilcache.Expiring
}

// node has the addresses of a node.
type node struct {
	// addresses are the internal IP addresses.
	addresses []string
	// gateways are the first addresses of the node's pod CIDRs: the addresses of the
	// node's bridge, from which processes of the node reach pods of the node.
	gateways []string
	// readFor is the hostIP for which it was read.
	readFor string
}

func newNodes(kube kubernetes.Interface, c clock.Clock) *nodeCache {
	return &nodeCache{kube, utilcache.NewExpiringWithClock(c)}
}

// get returns a node. It reads it again if hostIP, the address of the node in the status of a pod,
// is not among the cached addresses, unless they were read for it: the address can be one of another
// type.
func (n *nodeCache) get(ctx context.Context, name, hostIP string) (node, error) {
	if entry, ok := n.cache.Get(name); ok {
		if cached := entry.(node); hostIP == "" || hostIP == cached.readFor || slices.Contains(cached.addresses, hostIP) {
			return cached, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, apiServerTimeout)
	defer cancel()
	object, err := n.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return node{}, fmt.Errorf("read node %s: %w", name, err)
	}
	result := node{readFor: hostIP}
	for _, a := range object.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			result.addresses = append(result.addresses, a.Address)
		}
	}
	for _, cidr := range object.Spec.PodCIDRs {
		if network, err := netip.ParsePrefix(cidr); err == nil {
			result.gateways = append(result.gateways, network.Masked().Addr().Next().String())
		}
	}
	ttl := nodeTTL
	if len(result.addresses) == 0 {
		ttl = unaddressedNodeTTL
	}
	n.cache.Set(name, result, ttl)
	return result, nil
}
