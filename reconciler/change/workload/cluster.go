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

// cluster holds the name of this cluster at the server.
type cluster struct {
	configured atomic.Pointer[string]
	namespaces corelisters.NamespaceLister
}

// watchCluster returns a cluster that watches config-altershield.
func watchCluster(cmw configmap.Watcher, namespaces corelisters.NamespaceLister) *cluster {
	c := &cluster{namespaces: namespaces}
	c.observe(&corev1.ConfigMap{})
	optionalconfig.Watch(cmw, altershield.ConfigMapName, c.observe)
	return c
}

func (c *cluster) observe(cm *corev1.ConfigMap) {
	name := strings.TrimSpace(cm.Data[clusterNameKey])
	c.configured.Store(&name)
}

// name returns the name in config-altershield, or else the UID of namespace
// kube-system, which is unique and lives as long as the cluster.
func (c *cluster) name() (string, error) {
	if name := *c.configured.Load(); name != "" {
		return name, nil
	}
	ns, err := c.namespaces.Get(metav1.NamespaceSystem)
	if err != nil {
		return "", fmt.Errorf("read the UID of namespace %s as cluster name: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}
