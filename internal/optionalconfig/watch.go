// Package optionalconfig follows ConfigMaps of the system namespace that need not be
// there: a process that died for want of one would do nothing at all.
package optionalconfig

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/configmap"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Watch has observe told of each state of the ConfigMap, once cmw is started. Where
// cmw knows defaults, as those of sharedmain do, one that is not there is told of as
// one without data and UID.
func Watch(cmw configmap.Watcher, name string, observe configmap.Observer) {
	d, ok := cmw.(configmap.DefaultingWatcher)
	if !ok {
		cmw.Watch(name, observe)
		return
	}
	d.WatchWithDefault(corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: name}}, observe)
}
