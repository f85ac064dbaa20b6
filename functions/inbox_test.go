package functions_test

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// release is the ChangeWorkload of ft.NewRelease.
var release = types.NamespacedName{Namespace: ft.Namespace, Name: ft.Release}

func failVerdict(id string) v1alpha1.InboxVerdict {
	return v1alpha1.InboxVerdict{ID: id, NodeID: "n", Stage: v1alpha1.StagePost, Verdict: "fail", Time: metav1.NewMicroTime(ft.Now())}
}

func TestTheInboxHasEachVerdictOnce(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	for _, id := range []string{"a", "b", "a"} {
		if err := functions.NewInbox(c.Change).Add(t.Context(), release, "release", failVerdict(id)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.ChangeWorkload(ft.Release).Status.Inbox); n != 2 || c.Patches() != 2 {
		t.Errorf("%d verdicts after %d writes", n, c.Patches())
	}
}

// Otherwise the batch would stay without a verdict until the pass is retrieved.
func TestAPassWithRulesReplacesOneWithoutInTheInbox(t *testing.T) {
	without := failVerdict("pass")
	without.Verdict, without.WithoutRules = "pass", true
	with := without
	with.WithoutRules = false
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		w.Status.Inbox = append(w.Status.Inbox, without)
		for i := range functions.MaxInbox - 1 {
			w.Status.Inbox = append(w.Status.Inbox, failVerdict(fmt.Sprint(i)))
		}
	}))
	for _, v := range []v1alpha1.InboxVerdict{with, without} {
		if err := functions.NewInbox(c.Change).Add(t.Context(), release, "release", v); err != nil {
			t.Fatal(err)
		}
		inbox := c.ChangeWorkload(ft.Release).Status.Inbox
		if len(inbox) != functions.MaxInbox || inbox[0].ID != "pass" || inbox[0].WithoutRules {
			t.Errorf("%d verdicts, the first is %+v", len(inbox), inbox[0])
		}
	}
}

// Without shared writes, nearly all writes failed with a conflict while the Broker was slow, and
// slowed the judging further.
func TestVerdictsThatArriveTogetherShareWritesWithoutConflicts(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	inbox := functions.NewInbox(c.Change)
	var group errgroup.Group
	const verdicts = 40
	for i := range verdicts {
		group.Go(func() error { return inbox.Add(t.Context(), release, "release", failVerdict(fmt.Sprint(i))) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := len(c.ChangeWorkload(ft.Release).Status.Inbox); n != verdicts || c.Patches() == verdicts || c.SentPatches("changeworkloads") != c.Patches() {
		t.Errorf("%d verdicts, %d of %d writes", n, c.Patches(), c.SentPatches("changeworkloads"))
	}
}

func TestConcurrentVerdictsAreBothAdded(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	c.BeforeNextPatch(func() {
		w := c.ChangeWorkload(ft.Release)
		w.Status.Inbox = append(w.Status.Inbox, failVerdict("a"))
		c.Write(w)
	})
	if err := functions.NewInbox(c.Change).Add(t.Context(), release, "release", failVerdict("b")); err != nil {
		t.Fatal(err)
	}
	if n := len(c.ChangeWorkload(ft.Release).Status.Inbox); n != 2 {
		t.Errorf("%d verdicts", n)
	}
}

func TestAFullInboxRejectsFurtherFails(t *testing.T) {
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		for i := range functions.MaxInbox {
			w.Status.Inbox = append(w.Status.Inbox, failVerdict(fmt.Sprint(i)))
		}
	}))
	err := functions.NewInbox(c.Change).Add(t.Context(), release, "release", failVerdict("new"))
	if !errors.Is(err, functions.ErrInboxFull) || functions.ResultOf(err) != functions.ResultRetry {
		t.Errorf("got %v", err)
	}
	if err := functions.NewInbox(c.Change).Add(t.Context(), release, "release", failVerdict("0")); err != nil {
		t.Errorf("adding a verdict again: %v", err)
	}
	if inbox := c.ChangeWorkload(ft.Release).Status.Inbox; len(inbox) != functions.MaxInbox || inbox[0].ID != "0" {
		t.Error("the inbox has changed")
	}
}

func TestAFailReplacesAPassInAFullInbox(t *testing.T) {
	pass := failVerdict("pass")
	pass.Verdict = "pass"
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		w.Status.Inbox = append(w.Status.Inbox, failVerdict("first"), pass)
		for i := range functions.MaxInbox - 2 {
			w.Status.Inbox = append(w.Status.Inbox, failVerdict(fmt.Sprint(i)))
		}
	}))
	add := func(v v1alpha1.InboxVerdict) error {
		return functions.NewInbox(c.Change).Add(t.Context(), release, "release", v)
	}
	another := pass
	another.ID = "another"
	if err := add(another); !errors.Is(err, functions.ErrInboxFull) {
		t.Errorf("a pass replaced another: %v", err)
	}
	if err := add(failVerdict("fail")); err != nil {
		t.Error(err)
	}
	inbox := c.ChangeWorkload(ft.Release).Status.Inbox
	if len(inbox) != functions.MaxInbox || inbox[0].ID != "first" || inbox[1].ID != "0" || inbox[functions.MaxInbox-1].ID != "fail" {
		t.Errorf("inbox is %+v", inbox)
	}
	if err := add(failVerdict("one more")); !errors.Is(err, functions.ErrInboxFull) {
		t.Errorf("a fail replaced a fail: %v", err)
	}
}

func TestALaterReleaseOfTheSameNameGetsNoVerdict(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	err := functions.NewInbox(c.Change).Add(t.Context(), release, "earlier", failVerdict("a"))
	if !errors.Is(err, functions.ErrReleaseReplaced) || c.Patches() != 0 {
		t.Errorf("got %v", err)
	}
}
