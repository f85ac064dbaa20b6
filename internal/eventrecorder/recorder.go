// Package eventrecorder creates recorders of Kubernetes Events.
package eventrecorder

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"

	versionedscheme "github.com/breakwater-dev/breakwater/client/clientset/versioned/scheme"
)

const (
	// Breakwater is the source of Kubernetes Events of code that has no source of its own.
	Breakwater = "breakwater"
	// RepeatAfter is the time after which the Event of a state that lasts is recorded again. The API
	// server deletes an Event an hour after it was last recorded (--event-ttl).
	RepeatAfter = 30 * time.Minute
	// qps is how many Events an object may get per second after a burst of 25. With the default of
	// client-go, one in 5 minutes, more than six repeated Events of an object would be dropped.
	qps = 1. / 60
	// unmerged is how many Events of a reason with different messages an object may have. It is far above the number of
	// the guards of a part.
	unmerged = 1000
)

// kinds returns the kinds of objects that have Events. All recorders of a process share them: they need 170 KB.
var kinds = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(all))
	utilruntime.Must(versionedscheme.AddToScheme(all))
	return all
})

// New returns the recorder of the context, or a new one that works until the
// context ends. A recorder does not block: Events are written in the
// background, and repeated Events are merged or dropped.
func New(ctx context.Context, kube kubernetes.Interface, source string) record.EventRecorder {
	if r := controller.GetEventRecorder(ctx); r != nil {
		return r
	}
	return newRecorder(ctx, kube, source, record.CorrelatorOptions{QPS: qps})
}

// NewUnmerged returns a new recorder that does not merge or drop Events whose messages differ. It is
// for code that limits its Events: an object may get one per second after a burst of 1000.
func NewUnmerged(ctx context.Context, kube kubernetes.Interface, source string) record.EventRecorder {
	return newRecorder(ctx, kube, source, record.CorrelatorOptions{QPS: 1, BurstSize: unmerged, MaxEvents: unmerged})
}

func newRecorder(ctx context.Context, kube kubernetes.Interface, source string, limits record.CorrelatorOptions) record.EventRecorder {
	b := record.NewBroadcaster(record.WithContext(ctx), record.WithCorrelatorOptions(limits))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return b.NewRecorder(kinds(), corev1.EventSource{Component: source})
}
