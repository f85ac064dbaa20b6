// Package optionalconfig watches ConfigMaps of the system namespace that may be
// missing. A plain watch would end the process if its ConfigMap is missing.
package optionalconfig

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Watch calls observe with each state of the ConfigMap, once cmw is started. If
// cmw supports defaults, as that of sharedmain does, a missing ConfigMap is
// passed as one without data and UID.
func Watch(cmw configmap.Watcher, name string, observe configmap.Observer) {
	d, ok := cmw.(configmap.DefaultingWatcher)
	if !ok {
		cmw.Watch(name, observe)
		return
	}
	d.WatchWithDefault(corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}}, observe)
}
