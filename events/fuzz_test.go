package events

import (
	"errors"
	"fmt"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Data that parses can be sent again, and then parses to the same fact.

func FuzzParsePodFinished(f *testing.F) { fuzz(f, ParsePodFinished, TypePodFinished) }

func FuzzParseChangePodReady(f *testing.F) { fuzz(f, ParseChangePodReady, TypeChangePodReady) }

func FuzzParseChangePodVerdict(f *testing.F) { fuzz(f, ParseChangePodVerdict, TypeChangePodVerdict) }

func FuzzParseOrderReady(f *testing.F) { fuzz(f, ParseOrderReady, TypeOrderReady) }

func FuzzParseOrderVerdict(f *testing.F) { fuzz(f, ParseOrderVerdict, TypeOrderVerdict) }

func FuzzParseReleaseDenied(f *testing.F) { fuzz(f, ParseReleaseDenied, TypeReleaseDenied) }

func FuzzParseDeletionDenied(f *testing.F) { fuzz(f, ParseDeletionDenied, TypeDeletionDenied) }

func FuzzParseDeletionFlow(f *testing.F) {
	fuzz(f, ParseDeletionFlow, TypeDeletionFlowOpened, TypeDeletionFlowClosed)
}

func FuzzParseChangeWorkload(f *testing.F) {
	fuzz(f, ParseChangeWorkload, TypeChangeWorkloadProgressed, TypeChangeWorkloadSuspended, TypeChangeWorkloadBypassed)
}

func FuzzParsePermission(f *testing.F) {
	fuzz(f, ParsePermission, TypePermissionGranted, TypePermissionLeaked)
}

func FuzzParsePodBreaker(f *testing.F) { fuzz(f, ParsePodBreaker, TypeBreakerOpened) }

func FuzzParseExternalVerdict(f *testing.F) {
	f.Add([]byte(`{"bizExecOrderId":"o","nodeId":"n","stage":"PRE","verdict":"pass","podResults":[{"pod":"a","verdict":"fail"}]}`))
	f.Add([]byte(`{"bizExecOrderId":"o","nodeId":"n","stage":"POST","verdict":"\u0000","message":"\ud800"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := ParseExternalVerdict(event(t, TypeChangePodVerdict, raw))
		if err != nil {
			return
		}
		d := verdict()
		d.BizExecOrderID, d.NodeID, d.Stage = v.BizExecOrderID, v.NodeID, v.Stage
		d.Verdict, d.Message, d.PodResults = v.Verdict, v.Message, v.PodResults
		resend(t, d)
	})
}

// FuzzNewChangePodVerdict fuzzes fields instead of JSON, which reaches more code.
func FuzzNewChangePodVerdict(f *testing.F) {
	f.Add("order", "node", "fail", "message", "pod", "pass", uint8(3))
	f.Add("order", "node", "", "\x00<>\u2028", "pod", "\xff", uint8(200))
	f.Fuzz(func(t *testing.T, order, node, received, message, pod, podVerdict string, results uint8) {
		d := verdict()
		d.BizExecOrderID, d.NodeID, d.Verdict, d.Message, d.PodResults = order, node, received, message, nil
		for i := range results {
			d.PodResults = append(d.PodResults, v1alpha1.PodSummary{
				Pod: fmt.Sprintf("%s%d", pod, i), Verdict: podVerdict, Message: message,
			})
		}
		if d.truncated(MaxText).Validate() == nil {
			resend(t, d)
		}
	})
}

func fuzz[D Data](f *testing.F, parse func(cloudevents.Event) (D, error), eventTypes ...string) {
	for _, d := range samples() {
		raw, err := marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`null`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, eventType := range eventTypes {
			if d, err := parse(event(t, eventType, raw)); err == nil {
				resend(t, d)
			}
		}
	})
}

func event(t *testing.T, eventType string, raw []byte) cloudevents.Event {
	e := cloudevents.NewEvent()
	e.SetType(eventType)
	e.SetID("1")
	e.SetSource("/test")
	if err := e.SetData(cloudevents.ApplicationJSON, raw); err != nil {
		t.Skip(err)
	}
	return e
}

func resend(t *testing.T, d Data) {
	e, err := New(d)
	var tooLarge *TooLargeError
	if errors.As(err, &tooLarge) {
		return
	}
	if err != nil {
		t.Fatalf("parsed data cannot be sent: %v", err)
	}
	if len(e.Data()) > MaxData {
		t.Fatalf("%d bytes of data", len(e.Data()))
	}
	again, err := parse(e)
	if err != nil {
		t.Fatalf("sent data does not parse: %v\n%s", err, e.Data())
	}
	if diff := cmp.Diff(d.ID(), again.ID()); diff != "" {
		t.Fatalf("id (-parsed +sent):\n%s", diff)
	}
}
