package v1alpha1

import (
	"strings"
	"unicode"
)

// Annotations of a replay: an undelivered CloudEvent is sent again on request of a person.
const (
	// CloudEventAnnotation on a Kubernetes Event with ReasonEventUndelivered is the
	// undelivered CloudEvent with its signature, as JSON. Written by function deadletter.
	CloudEventAnnotation = "app.ops.cloud.alipay.com/cloudevent"
	// ReplayedAnnotation on the Kubernetes Event is the time at which the Broker accepted the
	// CloudEvent again, in RFC 3339. Written by the controller.
	ReplayedAnnotation = "app.ops.cloud.alipay.com/replayed"
	// ReplayRequestAnnotation on a workload requests replays: the names of Kubernetes Events,
	// at most MaxReplays, separated by commas or spaces. A person writes it, the controller removes it.
	ReplayRequestAnnotation = "altershield.defense.antgroup.com/replay-request"
	// MaxReplays is the maximum number of names in one request.
	MaxReplays = 20
)

// ReplayRequestOf returns the names in ReplayRequestAnnotation, at most MaxReplays.
func ReplayRequestOf(annotations map[string]string) []string {
	names := strings.FieldsFunc(annotations[ReplayRequestAnnotation], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	return names[:min(len(names), MaxReplays)]
}
