package replay

import (
	"context"
	"errors"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/replay"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Action is what is done about a requested replay.
type Action string

// The actions.
const (
	// Send: the event is sent.
	Send Action = "Send"
	// Done: the event was replayed before.
	Done Action = "Done"
	// Drop: the event cannot be replayed.
	Drop Action = "Drop"
)

// Decision is the decision about one Kubernetes Event of a request.
type Decision struct {
	Action Action
	// Event is the event to send.
	Event cloudevents.Event
	// Message says why the request is dropped.
	Message string
}

// Verifier verifies the signature of an event; *eventsigning.Store implements it.
type Verifier interface {
	Verify(ctx context.Context, e cloudevents.Event) error
}

// Decide decides about the Kubernetes Event k, or nil if it does not exist. Whoever may create
// Kubernetes Events writes k, so only the signature and the signed data count. The request is
// on a workload, so whoever may write this workload can replay events about it and no others.
// An error is transient: the key could not be read.
func Decide(ctx context.Context, k *corev1.Event, namespace string, workload events.Workload, verifier Verifier) (Decision, error) {
	if k == nil {
		return Decision{Action: Drop, Message: "it does not exist; Kubernetes deletes Events after an hour"}, nil
	}
	if k.Annotations[v1alpha1.ReplayedAnnotation] != "" {
		return Decision{Action: Done}, nil
	}
	stored, ok := k.Annotations[v1alpha1.CloudEventAnnotation]
	if k.Reason != v1alpha1.ReasonEventUndelivered || !ok {
		return Decision{Action: Drop, Message: "it stores no event that can be replayed"}, nil
	}
	e, subject, malformed := replay.Decode(stored)
	want := replay.Subject{Namespace: namespace, Workload: workload}
	switch {
	case malformed != nil:
		return Decision{Action: Drop, Message: malformed.Error()}, nil //nolint:nilerr // a retry does not help, and the message has it
	case subject != want:
		return Decision{Action: Drop, Message: fmt.Sprintf("its event is about %s %s/%s", subject.Workload.Kind, subject.Namespace, subject.Workload.Name)}, nil
	}
	err := verifier.Verify(ctx, e)
	if errors.Is(err, eventsigning.ErrNotAuthentic) {
		return Decision{Action: Drop, Message: "the controller did not sign its event, or its key was replaced"}, nil
	} else if err != nil {
		return Decision{}, fmt.Errorf("verify the event of Kubernetes Event %s: %w", k.Name, err)
	}
	e.SetExtension(eventsigning.ReplayExtension, k.Name)
	e.SetExtension(eventsigning.Extension, nil) // the sender signs it
	return Decision{Action: Send, Event: e}, nil
}
