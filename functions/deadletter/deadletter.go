// Package deadletter is the function that gets what could not be delivered. A
// verdict, which will not come again, goes to the inbox of its ChangeWorkload;
// everything else is a wake-up, which its reconciler sends again, and becomes a
// Kubernetes Event on the object that was not woken.
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

type function struct {
	change  versioned.Interface
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	clock   clock.PassiveClock
	letters metrics.Counter
}

// New returns the function. dynamic reads the objects that events are about.
func New(change versioned.Interface, kube kubernetes.Interface, dynamic dynamic.Interface, clock clock.PassiveClock, meter metric.Meter) functions.Function {
	f := &function{change: change, kube: kube, dynamic: dynamic, clock: clock, letters: metrics.NewCounter(meter, "breakwater_dead_letters_total")}
	return f.handle
}

func (f *function) handle(ctx context.Context, e event.Event) error {
	became, err := f.take(ctx, e)
	if err != nil {
		became = "not-stored"
	}
	eventType := e.Type()
	if !slices.Contains(events.Types(), eventType) {
		eventType = "other"
	}
	f.letters.Add(ctx, 1, eventType, became)
	return err
}

// take returns what became of the event. Only a verdict that could not be
// stored is an error: it is worth every repetition, a wake-up is not.
func (f *function) take(ctx context.Context, e event.Event) (string, error) {
	if l, isVerdict, err := read(e); isVerdict && err == nil {
		return f.keep(ctx, l)
	} else if isVerdict {
		// Nobody can read it, here or anywhere.
		logging.FromContext(ctx).Errorw("a verdict that cannot be read is lost", "error", err)
	}
	if err := f.tell(ctx, e); err != nil {
		logging.FromContext(ctx).Warnw("a dead letter could not be shown on its object", "error", err)
		return "counted", nil
	}
	return "shown", nil
}

// letter is a verdict and the release whose inbox it goes to.
type letter struct {
	namespace, release, orderID string
	entry                       v1alpha1.InboxVerdict
}

// read returns the verdict that an event brings, if it is one.
func read(e event.Event) (l letter, isVerdict bool, err error) {
	switch e.Type() {
	case events.TypeChangePodVerdict:
		said, err := events.ParseChangePodVerdict(e)
		return letter{said.Namespace, said.ChangeWorkload, said.BizExecOrderID, said.Inbox()}, true, err
	case events.TypeOrderVerdict:
		said, err := events.ParseOrderVerdict(e)
		return letter{said.Namespace, said.Name, said.BizExecOrderID, said.Inbox()}, true, err
	default:
		return letter{}, false, nil
	}
}

// keep puts a verdict into the inbox of its release, if that is still there.
func (f *function) keep(ctx context.Context, l letter) (string, error) {
	release, err := f.change.AppV1alpha1().ChangeWorkloads(l.namespace).Get(ctx, l.release, metav1.GetOptions{})
	if err == nil && release.Spec.OrderID != l.orderID {
		return "outdated", nil
	}
	if err == nil {
		err = functions.AddToInbox(ctx, f.change, release.Namespace, release.Name, release.UID, l.entry)
	}
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, functions.ErrReleaseReplaced):
		return "outdated", nil
	case err != nil:
		logging.FromContext(ctx).Errorw("a verdict is not stored yet", "node", l.entry.NodeID, "stage", l.entry.Stage, "error", err)
		return "", fmt.Errorf("keep the verdict of node %s: %w", l.entry.NodeID, err)
	default:
		return "inbox", nil
	}
}
