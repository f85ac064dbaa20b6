// Package nodestate reports which nodes are not Ready: the node exists, and its condition Ready
// is not True. No pod of such a node can become Ready, whatever version it has.
package nodestate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	nodeinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/node"
)

// Nodes are the nodes of the cluster, read from a cache.
type Nodes struct{ Lister corelisters.NodeLister }

// Get returns the nodes of the shared informer. It is called before informers start,
// because it sets a transform.
func Get(ctx context.Context) (Nodes, error) {
	informer := nodeinformer.Get(ctx)
	if err := informer.Informer().SetTransform(Trim); err != nil {
		return Nodes{}, fmt.Errorf("set the transform of nodes: %w", err)
	}
	return Nodes{informer.Lister()}, nil
}

// NotReady reports whether the node exists and is not Ready. It is false for a pod without a
// node, and for a node that was deleted.
func (n Nodes) NotReady(name string) bool {
	node, err := n.Lister.Get(name)
	return err == nil && !Ready(node)
}

// Ready reports whether the condition Ready of a node is True.
func Ready(n *corev1.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

var _ cache.TransformFunc = Trim

// Trim reduces a node to its name and condition Ready before it is cached. The list of images
// alone is larger than all fields that are read.
func Trim(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	out := &corev1.Node{TypeMeta: n.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion}}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Status.Conditions = []corev1.NodeCondition{c}
		}
	}
	return out, nil
}
