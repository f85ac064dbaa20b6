package events

import (
	"fmt"
	"slices"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// The Parse functions return the data of an event and reject other types and
// invalid data. Their errors are permanent, so functions answer 400.

// ParsePodFinished returns the data of a TypePodFinished event.
func ParsePodFinished(e cloudevents.Event) (PodFinished, error) {
	d, err := decode[PodFinished](e, TypePodFinished)
	return valid(e, d, err)
}

// ParseChangePodReady returns the data of a TypeChangePodReady event.
func ParseChangePodReady(e cloudevents.Event) (ChangePodReady, error) {
	d, err := decode[ChangePodReady](e, TypeChangePodReady)
	return valid(e, d, err)
}

// ParseChangePodVerdict returns the data of a TypeChangePodVerdict event from
// the Broker.
func ParseChangePodVerdict(e cloudevents.Event) (ChangePodVerdict, error) {
	d, err := decode[ChangePodVerdict](e, TypeChangePodVerdict)
	return valid(e, d, err)
}

// ParseExternalVerdict returns the data of a TypeChangePodVerdict event from the
// server, with truncated messages. The caller limits the size of the event.
func ParseExternalVerdict(e cloudevents.Event) (ExternalVerdict, error) {
	d, err := decode[ExternalVerdict](e, TypeChangePodVerdict)
	return valid(e, d.truncated(MaxText), err)
}

// ParseOrderReady returns the data of a TypeOrderReady event.
func ParseOrderReady(e cloudevents.Event) (OrderReady, error) {
	d, err := decode[OrderReady](e, TypeOrderReady)
	return valid(e, d, err)
}

// ParseOrderVerdict returns the data of a TypeOrderVerdict event.
func ParseOrderVerdict(e cloudevents.Event) (OrderVerdict, error) {
	d, err := decode[OrderVerdict](e, TypeOrderVerdict)
	return valid(e, d, err)
}

// ParseChangeWorkload returns the data of an event of any changeworkload type.
func ParseChangeWorkload(e cloudevents.Event) (ChangeWorkload, error) {
	d, err := decode[ChangeWorkload](e, changeWorkloadTypes()...)
	d.Verb = verbOf[Verb](e, changeWorkloadPrefix)
	return valid(e, d, err)
}

func changeWorkloadTypes() []string {
	return []string{
		TypeChangeWorkloadStarted, TypeChangeWorkloadProgressed, TypeChangeWorkloadSucceeded,
		TypeChangeWorkloadSuspended, TypeChangeWorkloadFailed, TypeChangeWorkloadRolledBack,
		TypeChangeWorkloadBypassed,
	}
}

// ParseReleaseDenied returns the data of a TypeReleaseDenied event.
func ParseReleaseDenied(e cloudevents.Event) (ReleaseDenied, error) {
	d, err := decode[ReleaseDenied](e, TypeReleaseDenied)
	return valid(e, d, err)
}

// ParsePermission returns the data of an event of any permission type.
func ParsePermission(e cloudevents.Event) (Permission, error) {
	d, err := decode[Permission](e, TypePermissionRequested, TypePermissionGranted, TypePermissionDenied,
		TypePermissionRevoked, TypePermissionLeaked)
	d.Verb = verbOf[PermissionVerb](e, permissionPrefix)
	return valid(e, d, err)
}

// ParsePodBreaker returns the data of a TypeBreakerOpened or TypeBreakerClosed event.
func ParsePodBreaker(e cloudevents.Event) (PodBreaker, error) {
	d, err := decode[PodBreaker](e, TypeBreakerOpened, TypeBreakerClosed)
	d.Verb = verbOf[PodBreakerVerb](e, breakerPrefix)
	return valid(e, d, err)
}

// ParseDeletionDenied returns the data of a TypeDeletionDenied event.
func ParseDeletionDenied(e cloudevents.Event) (DeletionDenied, error) {
	d, err := decode[DeletionDenied](e, TypeDeletionDenied)
	return valid(e, d, err)
}

// ParseDeletionFlow returns the data of an event of any deletionflow type.
func ParseDeletionFlow(e cloudevents.Event) (DeletionFlow, error) {
	d, err := decode[DeletionFlow](e, TypeDeletionFlowOpened, TypeDeletionFlowClosed)
	d.Open = e.Type() == TypeDeletionFlowOpened
	return valid(e, d, err)
}

func decode[D any](e cloudevents.Event, types ...string) (D, error) {
	var d D
	if !slices.Contains(types, e.Type()) {
		return d, fmt.Errorf("event type %q: want %q", e.Type(), types)
	}
	if err := e.DataAs(&d); err != nil {
		return d, fmt.Errorf("parse event %s %s: %w", e.Type(), e.ID(), err)
	}
	return d, nil
}

func valid[D interface{ Validate() error }](e cloudevents.Event, d D, err error) (D, error) {
	if err == nil {
		if invalid := d.Validate(); invalid != nil {
			err = fmt.Errorf("parse event %s %s: %w", e.Type(), e.ID(), invalid)
		}
	}
	if err != nil {
		var none D
		return none, err
	}
	return d, nil
}

// verbOf returns the verb in the type of an event.
func verbOf[V ~string](e cloudevents.Event, prefix string) V {
	return V(strings.TrimSuffix(strings.TrimPrefix(e.Type(), prefix), versionSuffix))
}
