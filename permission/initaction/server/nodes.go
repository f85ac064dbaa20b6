package server

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// remembered is how long a node's addresses count as read.
const nodeTTL = 5 * time.Minute

// nodes knows the addresses of nodes: for providers that grant to nodes, and for
// pods that have their node's network.
type nodeCache struct {
	kube  kubernetes.Interface
	cache *utilcache.Expiring
}

// node is what is known of one.
type node struct {
	// addresses are its own.
	addresses []string
	// gateways are the first addresses of the networks of its pods: its own in
	// these, by which its processes reach its pods where a bridge joins them.
	gateways []string
}

func newNodes(kube kubernetes.Interface, c clock.Clock) *nodeCache {
	return &nodeCache{kube, utilcache.NewExpiringWithClock(c)}
}

func (n *nodeCache) get(ctx context.Context, name string) (node, error) {
	if one, ok := n.cache.Get(name); ok {
		return one.(node), nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object, err := n.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return node{}, fmt.Errorf("read node %s: %w", name, err)
	}
	var one node
	for _, a := range object.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			one.addresses = append(one.addresses, a.Address)
		}
	}
	for _, cidr := range object.Spec.PodCIDRs {
		if network, err := netip.ParsePrefix(cidr); err == nil {
			one.gateways = append(one.gateways, network.Masked().Addr().Next().String())
		}
	}
	n.cache.Set(name, one, nodeTTL)
	return one, nil
}
