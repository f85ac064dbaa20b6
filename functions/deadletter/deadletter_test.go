package deadletter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// maxBatches is the number of batches in the cluster.
const maxBatches = 200

func newFunction(t *testing.T, c *ft.Cluster) functions.Function {
	t.Helper()
	return newFunctionWith(t, c, deadletter.Verifiers{Verdicts: ft.Keys(), Events: ft.EventKeys()})
}

func newFunctionWith(t *testing.T, c *ft.Cluster, keys deadletter.Verifiers) functions.Function {
	t.Helper()
	var batches []runtime.Object
	for n := range maxBatches {
		batches = append(batches, batch(n+1, fmt.Sprintf("batch-%d", n+1)))
	}
	batches = append(batches,
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ChangeWorkload",
			"metadata": map[string]any{"namespace": ft.Namespace, "name": ft.Release, "uid": "release"},
		}},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet",
			"metadata": map[string]any{"namespace": ft.Namespace, "name": "sleep", "uid": "workload"},
		}})
	objects := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), batches...)
	return deadletter.New(c.Change, c.Kube, objects, keys, clocktesting.NewFakePassiveClock(ft.Now()), noop.Meter{})
}

// batch returns the ChangePod of a batch.
func batch(number int, uid string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": "ChangePod",
		"metadata": map[string]any{"namespace": ft.Namespace, "name": ft.BatchName(number), "uid": uid},
	}}
}

// undelivered returns an event as a Broker sends it to a dead-letter sink.
func undelivered(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	e.SetExtension("knativeerrordest", "http://submit.altershieldoperator-system.svc.cluster.local")
	e.SetExtension("knativeerrorcode", 503)
	if strings.Contains(e.Type(), ".verdict.") {
		return ft.SignedVerdict(t, e)
	}
	return ft.SignedByController(t, e)
}

func fail() events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release, Version: ft.Version,
		BizExecOrderID: ft.OrderID, NodeID: "n", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "because",
		Time: metav1.NewMicroTime(ft.Now()),
	}
}

func wakeUp() events.ChangePodReady {
	return events.ChangePodReady{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", ChangeWorkload: ft.Release,
		Version: ft.Version, Attempt: 1, Stage: v1alpha1.StagePre,
	}
}

func TestAVerdictIsStoredInTheInboxOnce(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	for range 2 {
		if err := f(t.Context(), undelivered(t, fail())); err != nil {
			t.Fatal(err)
		}
	}
	inbox := c.ChangeWorkload(ft.Release).Status.Inbox
	if len(inbox) != 1 || inbox[0].ID != fail().ID() || inbox[0].NodeID != "n" || inbox[0].Message != "because" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictOfAnOrderIsStoredInTheInbox(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	verdict := events.OrderVerdict{
		Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, BizExecOrderID: ft.OrderID,
		NodeID: "o", Stage: v1alpha1.StagePost, Verdict: "fail", Message: "because", Time: metav1.NewMicroTime(ft.Now()),
	}
	if err := newFunction(t, c)(t.Context(), undelivered(t, verdict)); err != nil {
		t.Fatal(err)
	}
	if inbox := c.ChangeWorkload(ft.Release).Status.Inbox; len(inbox) != 1 || inbox[0].ID != verdict.ID() || inbox[0].NodeID != "o" {
		t.Errorf("inbox is %+v", inbox)
	}
}

func TestAVerdictThatCannotBeStoredIsRetried(t *testing.T) {
	t.Run("inbox is full", func(t *testing.T) {
		c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
			for i := range functions.MaxInbox {
				w.Status.Inbox = append(w.Status.Inbox, v1alpha1.InboxVerdict{ID: fmt.Sprint(i)})
			}
		}))
		if result := functions.ResultOf(newFunction(t, c)(t.Context(), undelivered(t, fail()))); result != functions.ResultRetry {
			t.Errorf("result is %s", result)
		}
	})
	t.Run("API server is unreachable", func(t *testing.T) {
		c := ft.New(t, ft.NewRelease())
		c.FailPatches(errors.New("connection refused"))
		if result := functions.ResultOf(newFunction(t, c)(t.Context(), undelivered(t, fail()))); result != functions.ResultRetry {
			t.Errorf("result is %s", result)
		}
	})
}

// A pass can be retrieved from the server again.
func TestAPassForWhichTheInboxHasNoRoomIsNotRetried(t *testing.T) {
	c := ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) {
		for i := range functions.MaxInbox {
			w.Status.Inbox = append(w.Status.Inbox, v1alpha1.InboxVerdict{ID: fmt.Sprint(i)})
		}
	}))
	pass := fail()
	pass.Verdict = "pass"
	if err := newFunction(t, c)(t.Context(), undelivered(t, pass)); err != nil {
		t.Error(err)
	}
}

func TestAVerdictForADeletedOrReplacedReleaseIsDropped(t *testing.T) {
	for name, c := range map[string]*ft.Cluster{
		"deleted":  ft.New(t),
		"replaced": ft.New(t, ft.NewRelease(func(w *v1alpha1.ChangeWorkload) { w.Spec.OrderID = "another" })),
	} {
		t.Run(name, func(t *testing.T) {
			if err := newFunction(t, c)(t.Context(), undelivered(t, fail())); err != nil {
				t.Error(err)
			}
			if c.Patches() != 0 {
				t.Error("the status was written")
			}
		})
	}
}

func TestAWakeUpCreatesOneKubernetesEventOnItsObject(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	for range 3 {
		if err := f(t.Context(), undelivered(t, wakeUp())); err != nil {
			t.Fatal(err)
		}
	}
	created := kubernetesEvents(t, c)
	if len(created) != 1 {
		t.Fatalf("%d Kubernetes Events", len(created))
	}
	got := created[0]
	if got.InvolvedObject.Kind != "ChangePod" || got.InvolvedObject.UID != "batch-1" || got.Count != 1 ||
		got.Reason != v1alpha1.ReasonEventUndelivered || got.Message != "event dev.breakwater.changepod.ready.v1 could not be delivered to submit: status 503" {
		t.Errorf("got %+v", got)
	}
	if len(c.ChangeWorkload(ft.Release).Status.Inbox) != 0 {
		t.Error("the wake-up is in the inbox")
	}
}

func TestAWakeUpOfAnObjectThatWasCreatedAgainCreatesAKubernetesEventOfItsOwn(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	objects := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), batch(1, "before"))
	f := deadletter.New(c.Change, c.Kube, objects, deadletter.Verifiers{Verdicts: ft.Keys(), Events: ft.EventKeys()},
		clocktesting.NewFakePassiveClock(ft.Now()), noop.Meter{})
	send := func(uid types.UID) {
		d := wakeUp()
		d.UID = uid
		if err := f(t.Context(), undelivered(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	if err := objects.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("changepods"), batch(1, "now"), ft.Namespace); err != nil {
		t.Fatal(err)
	}
	send("now")
	var uids []types.UID
	for _, e := range kubernetesEvents(t, c) {
		uids = append(uids, e.InvolvedObject.UID)
	}
	if slices.Sort(uids); !slices.Equal(uids, []types.UID{"before", "now"}) {
		t.Errorf("Kubernetes Events on %v", uids)
	}
}

func TestAnEventThatCannotBeReportedIsNotRetried(t *testing.T) {
	deleted := wakeUp()
	deleted.Name = "deleted"
	otherSource := undelivered(t, wakeUp())
	otherSource.SetSource("/somewhere/else")
	unreadable := undelivered(t, fail())
	if err := unreadable.SetData(event.ApplicationJSON, "no"); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]event.Event{
		"object deleted":        undelivered(t, deleted),
		"source without object": otherSource,
		"malformed verdict":     unreadable,
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			if err := newFunction(t, c)(t.Context(), e); err != nil {
				t.Error(err)
			}
			if c.Patches() != 0 {
				t.Error("the status was written")
			}
		})
	}
}

func kubernetesEvents(t *testing.T, c *ft.Cluster) []corev1.Event {
	t.Helper()
	list, err := c.Kube.CoreV1().Events(ft.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}
