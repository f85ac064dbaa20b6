// Package recorder makes what writes our Kubernetes Events, for controllers
// that no generator gave one.
package recorder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
)

// agentName is the source of our Kubernetes Events.
const agentName = "breakwater"

// New returns the recorder of the context, or one that works until it ends.
func New(ctx context.Context, kube kubernetes.Interface) record.EventRecorder {
	if r := controller.GetEventRecorder(ctx); r != nil {
		return r
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: agentName})
}
