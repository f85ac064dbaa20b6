// Package deadletter is the function that receives undelivered events. It stores
// a verdict of the server in the inbox of its ChangeWorkload, because the server does
// not repeat it. For another event of the controller, and for a malformed verdict, it creates a
// Kubernetes Event on the object, at a limited rate; the controller repeats wake-ups, but neither
// reports nor malformed verdicts. It only counts verdicts of other judges, whose keys it does not
// have and which their judge sends again, and events without a valid signature.
package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

type function struct {
	change  versioned.Interface
	inbox   *functions.Inbox
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	clock   clock.PassiveClock
	// verifiers verify verdicts of the server and events of the controller.
	verifiers Verifiers
	// limiter limits Kubernetes Events. shown has those that need no further attempt: created,
	// forbidden, or on an object that does not exist.
	limiter *rate.Limiter
	shown   *cache.LRUExpireCache
	letters metrics.Counter
}

// Verifiers verify the signatures of dead letters.
type Verifiers struct {
	// Verdicts verifies verdicts of the server.
	Verdicts functions.Verifier
	// Events verifies the other events of the controller.
	Events functions.Verifier
}

// of returns what verifies an event; nil for the verdict of another judge.
func (v Verifiers) of(e event.Event) functions.Verifier {
	switch e.Type() {
	case events.TypeOrderVerdict:
		return v.Verdicts
	case events.TypeChangePodVerdict:
		if events.JudgeOf(e) != "" {
			return nil
		}
		return v.Verdicts
	}
	return v.Events
}

// New returns the function. dynamic reads the objects of events.
func New(change versioned.Interface, kube kubernetes.Interface, dynamic dynamic.Interface, verifiers Verifiers, clock clock.PassiveClock, meter metric.Meter) functions.Function {
	f := &function{
		change: change, inbox: functions.NewInbox(change), kube: kube, dynamic: dynamic, verifiers: verifiers, clock: clock,
		limiter: rate.NewLimiter(rate.Every(eventInterval), eventBurst),
		shown:   cache.NewLRUExpireCacheWithClock(maxShown, clock),
		letters: metrics.NewCounter(meter, "breakwater_dead_letters_total"),
	}
	return f.handle
}

func (f *function) handle(ctx context.Context, e event.Event) error {
	result, err := f.store(ctx, e)
	if err != nil {
		result = "not-stored"
	}
	f.letters.Add(ctx, 1, events.TypeLabel(e.Type()), result)
	return err
}

// store stores the event and returns the result for the metric. Only a verdict that could not
// be stored, or a key that could not be read, is an error and is retried.
func (f *function) store(ctx context.Context, e event.Event) (string, error) {
	verifier := f.verifiers.of(e)
	if verifier == nil {
		return "counted", nil
	}
	err := verifier.Verify(ctx, e)
	if errors.Is(err, eventsigning.ErrNotAuthentic) {
		logging.FromContext(ctx).Warnw("Dropped an event without a valid signature")
		return "not-authentic", nil
	} else if err != nil {
		return "", err
	}
	if v, isVerdict, malformed := read(e); isVerdict {
		if malformed == nil {
			return f.storeVerdict(ctx, v)
		}
		// A retry would fail, too.
		logging.FromContext(ctx).Errorw("A malformed verdict is not stored in an inbox; it becomes a Kubernetes Event", "error", malformed)
	}
	if err = f.createEvent(ctx, e); err != nil {
		logging.FromContext(ctx).Warnw("Could not create a Kubernetes Event for an undelivered event", "error", err)
		return "counted", nil
	}
	return "shown", nil
}

// undeliveredVerdict is a verdict, and the release whose inbox stores it.
type undeliveredVerdict struct {
	namespace, release, orderID string
	entry                       v1alpha1.InboxVerdict
}

// read returns the verdict of an event, if it has one.
func read(e event.Event) (v undeliveredVerdict, isVerdict bool, err error) {
	switch e.Type() {
	case events.TypeChangePodVerdict:
		d, err := events.ParseChangePodVerdict(e)
		return undeliveredVerdict{d.Namespace, d.ChangeWorkload, d.BizExecOrderID, d.Inbox()}, true, err
	case events.TypeOrderVerdict:
		d, err := events.ParseOrderVerdict(e)
		return undeliveredVerdict{d.Namespace, d.Name, d.BizExecOrderID, d.Inbox()}, true, err
	default:
		return undeliveredVerdict{}, false, nil
	}
}

// storeVerdict stores a verdict in the inbox of its release, if the release
// exists. A pass for which there is no room is retrieved from the server again.
func (f *function) storeVerdict(ctx context.Context, v undeliveredVerdict) (string, error) {
	release, err := f.change.AppV1alpha1().ChangeWorkloads(v.namespace).Get(ctx, v.release, metav1.GetOptions{})
	if err == nil && release.Spec.OrderID != v.orderID {
		return "outdated", nil
	}
	if err == nil {
		err = f.inbox.Add(ctx, types.NamespacedName{Namespace: release.Namespace, Name: release.Name}, release.UID, v.entry)
	}
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, functions.ErrReleaseReplaced):
		return "outdated", nil
	case errors.Is(err, functions.ErrNoRoomForPass):
		return "no-room", nil
	case err != nil:
		logging.FromContext(ctx).Errorw("Could not store a verdict; the Broker retries", "node", v.entry.NodeID, "stage", v.entry.Stage, "error", err)
		return "", fmt.Errorf("store verdict of node %s: %w", v.entry.NodeID, err)
	default:
		return "inbox", nil
	}
}
