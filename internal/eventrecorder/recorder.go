// Package eventrecorder creates recorders of Kubernetes Events for code without
// a generated reconciler.
package eventrecorder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
)

// Breakwater is the source of our Kubernetes Events.
const Breakwater = "breakwater"

// New returns the recorder of the context, or a new one that works until the
// context ends. A recorder does not block: Events are written in the
// background, and repeated Events are merged or dropped. The scheme must
// contain the kinds of the objects that Events are recorded on, except for
// object references.
func New(ctx context.Context, kube kubernetes.Interface, scheme *runtime.Scheme, source string) record.EventRecorder {
	if r := controller.GetEventRecorder(ctx); r != nil {
		return r
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return b.NewRecorder(scheme, corev1.EventSource{Component: source})
}
