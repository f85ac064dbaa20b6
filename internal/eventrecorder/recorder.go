// Package eventrecorder makes what writes our Kubernetes Events, where no generated
// reconciler brings one.
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

// New returns the recorder of the context, or one that works until it ends. It
// never makes its caller wait: Events are written in the background, and what
// comes too often is merged or dropped. The scheme has to know the kinds of the
// objects that Events are about; references need none.
func New(ctx context.Context, kube kubernetes.Interface, scheme *runtime.Scheme, source string) record.EventRecorder {
	if r := controller.GetEventRecorder(ctx); r != nil {
		return r
	}
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return b.NewRecorder(scheme, corev1.EventSource{Component: source})
}
