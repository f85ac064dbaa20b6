package events

import (
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// VerifySource returns an error unless the source of an event is that of its data. The event was signed by the
// controller or the callback; the signature does not cover the source.
func VerifySource(e cloudevents.Event) error {
	d, err := dataOf(e)
	if err != nil {
		return err
	}
	if e.Source() != d.Source() {
		return fmt.Errorf("the source %q is not that of the data, %q", e.Source(), d.Source())
	}
	return nil
}

// dataOf returns the data, which may be invalid.
func dataOf(e cloudevents.Event) (Data, error) {
	switch e.Type() {
	case TypePodFinished:
		return decode[PodFinished](e, TypePodFinished)
	case TypeChangePodReady:
		return decode[ChangePodReady](e, TypeChangePodReady)
	case TypeChangePodVerdict:
		return decode[ChangePodVerdict](e, TypeChangePodVerdict)
	case TypeOrderReady:
		return decode[OrderReady](e, TypeOrderReady)
	case TypeOrderVerdict:
		return decode[OrderVerdict](e, TypeOrderVerdict)
	default:
		return decode[ChangeWorkload](e, changeWorkloadTypes()...)
	}
}
