package workload

import (
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
)

// clusterNameKey is the key of the cluster's name in config-altershield.
const clusterNameKey = "cluster-name"

// cluster knows what this cluster is called at the server.
type cluster struct {
	configured atomic.Pointer[string]
	namespaces corelisters.NamespaceLister
}

// watchCluster returns a cluster that follows config-altershield.
func watchCluster(cmw configmap.Watcher, namespaces corelisters.NamespaceLister) *cluster {
	c := &cluster{namespaces: namespaces}
	c.observe(&corev1.ConfigMap{})
	optionalconfig.Follow(cmw, altershield.ConfigMapName, c.observe)
	return c
}

func (c *cluster) observe(cm *corev1.ConfigMap) {
	name := strings.TrimSpace(cm.Data[clusterNameKey])
	c.configured.Store(&name)
}

// name returns what config-altershield says. Without it, the UID of
// kube-system: no two clusters share one, and it lives as long as the cluster.
func (c *cluster) name() (string, error) {
	if name := *c.configured.Load(); name != "" {
		return name, nil
	}
	ns, err := c.namespaces.Get(metav1.NamespaceSystem)
	if err != nil {
		return "", fmt.Errorf("name the cluster after namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}
