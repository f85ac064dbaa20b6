package replay

import (
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

var keys = eventsigning.Keys{Current: []byte("key")}

// suspended has characters that JSON may escape.
func suspended() events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: "default", Name: "web--x--1", UID: "u", Version: "1", Attempt: 2, EntryTimeUnix: 1,
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, Message: "p99 <5s & \"slow\" \u2028",
	}
}

func signed(t *testing.T, d events.Data) cloudevents.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAStoredEventKeepsItsSignature(t *testing.T) {
	e := signed(t, suspended())
	e.SetExtension(eventsigning.ReplayExtension, "web.1")
	if err := keys.Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	e.SetExtension("knativeerrordata", "secret of a function")
	stored, err := Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, "secret of a function") {
		t.Errorf("stored the answer of a function: %s", stored)
	}
	got, subject, err := Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Verify(t.Context(), got); err != nil {
		t.Errorf("the signature: %v", err)
	}
	if got.ID() != e.ID() || got.Source() != e.Source() || got.Subject() != e.Subject() || len(got.Extensions()) != 2 {
		t.Errorf("got %s, want %s", got, e)
	}
	if want := (Subject{"default", suspended().Workload}); subject != want {
		t.Errorf("subject %+v, want %+v", subject, want)
	}
}

func raw(t *testing.T, e cloudevents.Event) string {
	t.Helper()
	b, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The other events are repeated without a replay, or their sender is not the controller.
func TestOnlyReportsThatAreSentOnceAreReplayable(t *testing.T) {
	var got []string
	for _, eventType := range events.Types() {
		if Replayable(eventType) {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(eventType, "dev.breakwater."), ".v1"))
		}
	}
	want := "pod.finished changeworkload.started changeworkload.succeeded changeworkload.suspended changeworkload.failed changeworkload.rolledback changeworkload.bypassed"
	if strings.Join(got, " ") != want {
		t.Errorf("replayable are %v, want %s", got, want)
	}
}

func TestAnEventThatIsNotReplayableIsNeitherStoredNorRead(t *testing.T) {
	progressed := suspended()
	progressed.Verb, progressed.ProgressUnix = events.VerbProgressed, 30
	e := signed(t, progressed)
	if stored, err := Encode(e); err == nil {
		t.Errorf("stored %s", stored)
	}
	moved := signed(t, suspended())
	moved.SetSource("/apis/app.ops.cloud.alipay.com/v1alpha1/namespaces/other/changeworkloads/web--x--1")
	for name, stored := range map[string]string{
		"another source": raw(t, moved), "progress": raw(t, e),
		"no JSON":  "no",
		"no event": "{}",
		"too long": strings.Repeat(" ", MaxStored+1),
	} {
		if _, _, err := Decode(stored); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}
