package authorizer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// remembered is how long a node's addresses count as read.
const remembered = 5 * time.Minute

// nodes knows the addresses of nodes, for providers that grant to nodes.
type nodes struct {
	kube  kubernetes.Interface
	known *utilcache.Expiring
}

func newNodes(kube kubernetes.Interface, c clock.Clock) *nodes {
	return &nodes{kube, utilcache.NewExpiringWithClock(c)}
}

func (n *nodes) addresses(ctx context.Context, name string) ([]string, error) {
	if ips, ok := n.known.Get(name); ok {
		return ips.([]string), nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := n.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	var ips []string
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ips = append(ips, a.Address)
		}
	}
	n.known.Set(name, ips, remembered)
	return ips, nil
}
