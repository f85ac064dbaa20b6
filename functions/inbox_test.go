package functions_test

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func letter(id string) v1alpha1.InboxVerdict {
	return v1alpha1.InboxVerdict{ID: id, NodeID: "n", Stage: v1alpha1.StagePost, Verdict: "fail", Time: metav1.NewMicroTime(ft.Now())}
}

func TestTheInboxTakesEachVerdictOnce(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	for _, id := range []string{"a", "b", "a"} {
		if err := functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "release", letter(id)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.ChangeWorkload(ft.Release).Status.Inbox); n != 2 || c.Patches() != 2 {
		t.Errorf("%d verdicts after %d writes", n, c.Patches())
	}
}

func TestTwoThatWriteAtOnceBothGetIn(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	c.BeforeNextPatch(func() {
		w := c.ChangeWorkload(ft.Release)
		w.Status.Inbox = append(w.Status.Inbox, letter("a"))
		c.Write(w)
	})
	if err := functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "release", letter("b")); err != nil {
		t.Fatal(err)
	}
	if n := len(c.ChangeWorkload(ft.Release).Status.Inbox); n != 2 {
		t.Errorf("%d verdicts", n)
	}
}

func TestAFullInboxKeepsWhatItHas(t *testing.T) {
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		for i := range functions.MaxInbox {
			w.Status.Inbox = append(w.Status.Inbox, letter(fmt.Sprint(i)))
		}
	}))
	err := functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "release", letter("new"))
	if !errors.Is(err, functions.ErrInboxFull) || functions.FateOf(err) != functions.FateRetry {
		t.Errorf("got %v", err)
	}
	if err := functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "release", letter("0")); err != nil {
		t.Errorf("what is there already is a success, got %v", err)
	}
	if inbox := c.ChangeWorkload(ft.Release).Status.Inbox; len(inbox) != functions.MaxInbox || inbox[0].ID != "0" {
		t.Error("the inbox has changed")
	}
}

func TestAFailTakesThePlaceOfAPassInAFullInbox(t *testing.T) {
	passes := letter("pass")
	passes.Verdict = "pass"
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		w.Status.Inbox = append(w.Status.Inbox, letter("first"), passes)
		for i := range functions.MaxInbox - 2 {
			w.Status.Inbox = append(w.Status.Inbox, letter(fmt.Sprint(i)))
		}
	}))
	put := func(v v1alpha1.InboxVerdict) error {
		return functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "release", v)
	}
	another := passes
	another.ID = "another"
	if err := put(another); !errors.Is(err, functions.ErrInboxFull) {
		t.Errorf("a pass took the place of another: %v", err)
	}
	if err := put(letter("fail")); err != nil {
		t.Error(err)
	}
	inbox := c.ChangeWorkload(ft.Release).Status.Inbox
	if len(inbox) != functions.MaxInbox || inbox[0].ID != "first" || inbox[1].ID != "0" || inbox[functions.MaxInbox-1].ID != "fail" {
		t.Errorf("inbox is %+v", inbox)
	}
	if err := put(letter("one more")); !errors.Is(err, functions.ErrInboxFull) {
		t.Errorf("a fail took the place of a fail: %v", err)
	}
}

func TestALaterReleaseOfTheNameGetsNothing(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	err := functions.PutIntoInbox(t.Context(), c.Change, ft.Namespace, ft.Release, "earlier", letter("a"))
	if !errors.Is(err, functions.ErrOtherRelease) || c.Patches() != 0 {
		t.Errorf("got %v", err)
	}
}
