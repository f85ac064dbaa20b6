package deadletter_test

import (
	"testing"

	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

func TestADeadLetterThatWeDidNotSignIsNotStored(t *testing.T) {
	c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	e := undelivered(t, fail())
	e.SetExtension(eventsigning.Extension, nil)
	if err := newFunction(t, c)(t.Context(), e); err != nil {
		t.Errorf("the Broker would repeat it: %v", err)
	}
	if got := c.ChangeWorkload(ft.Release).Status.Inbox; len(got) > 0 || c.Patches() != 0 {
		t.Errorf("stored %v", got)
	}
}

// A dead letter may be older than the key.
func TestADeadLetterOutlivesARotationOfTheKey(t *testing.T) {
	c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	if err := newFunctionWith(t, c, ft.Rotated())(t.Context(), undelivered(t, fail())); err != nil {
		t.Fatal(err)
	}
	if got := c.ChangeWorkload(ft.Release).Status.Inbox; len(got) != 1 {
		t.Errorf("inbox %v, want the verdict", got)
	}
}
