package changeworkload

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// deleted is deleted at t0, and keeps its finalizer.
func deleted(in *Input) {
	at := metav1.NewTime(t0)
	in.ServerConfigured = true
	in.ChangeWorkload.DeletionTimestamp, in.ChangeWorkload.Finalizers = &at, []string{v1alpha1.OrderFinalizer}
}

func TestADeletedReleaseIsKeptUntilItsOrderIsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		options  []func(*Input)
		optedOut bool
		state    v1alpha1.OrderState // of the call; empty if none is made
		release  bool
	}{
		"an open order is canceled":                    {options: []func(*Input){orderOpen}, state: v1alpha1.OrderCancel},
		"that of a Success is closed as that":          {options: []func(*Input){orderOpen, was(v1alpha1.ReleaseSuccess)}, state: v1alpha1.OrderSuccess},
		"a call that was begun is not changed":         {options: []func(*Input){orderOpen, atStep(v1alpha1.OrderStepClose, v1alpha1.OrderRollback)}, state: v1alpha1.OrderRollback},
		"after an error it is called again":            {options: []func(*Input){closedAs(v1alpha1.OrderCancel, 1, false, "Timeout")}, state: v1alpha1.OrderCancel},
		"a closed order needs nothing":                 {options: []func(*Input){closedAs(v1alpha1.OrderCancel, 1, true, "")}, release: true},
		"a rejected call is not repeated":              {options: []func(*Input){closedAs(v1alpha1.OrderCancel, 1, false, v1alpha1.ReasonServerRejected)}, release: true},
		"an unreachable server is not waited for long": {options: []func(*Input){orderOpen, after(closingTimeout)}, release: true},
		"a new process begins to count":                {options: []func(*Input){orderOpen, after(closingTimeout), func(in *Input) { in.DecidingSince = in.Now }}, state: v1alpha1.OrderCancel},
		"an order that is being opened":                {},
		"an order that was not opened":                 {options: []func(*Input){after(openingTimeout)}, release: true},
		"no server is configured any more":             {options: []func(*Input){orderOpen, func(in *Input) { in.ServerConfigured = false }}, release: true},
		"the namespace is opted out":                   {options: []func(*Input){orderOpen}, optedOut: true, release: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := decideDeletion(release(3, append([]func(*Input){deleted}, tc.options...)...), !tc.optedOut)
			state := v1alpha1.OrderState("")
			if got.Step != nil && got.Step.Name == v1alpha1.OrderStepClose {
				state = got.Step.State
			}
			if state != tc.state || got.RemoveFinalizer != tc.release || got.RemoveFinalizer == (got.Reason == "") || got.RemoveFinalizer != got.Deadline.IsZero() {
				t.Errorf("step %+v, %+v; want state %q, release %t", got.Step, got, tc.state, tc.release)
			}
		})
	}
}

func TestTheFinalizerIsSetWhileTheOrderMayBeOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		options []func(*Input)
		before  bool
		want    bool
	}{
		"the order is to be opened":       {want: true},
		"it is open":                      {options: []func(*Input){orderOpen}, before: true, want: true},
		"the release failed":              {options: []func(*Input){orderOpen, judged(1, "fail"), finished(1, 1)}, before: true, want: true},
		"the release succeeded":           {options: []func(*Input){orderOpen, was(v1alpha1.ReleaseSuccess)}, before: true, want: true},
		"the order is closed":             {options: []func(*Input){closedAs(v1alpha1.OrderSuccess, 1, true, ""), was(v1alpha1.ReleaseSuccess)}, before: true},
		"a suspended release is replaced": {options: []func(*Input){closedAs(v1alpha1.OrderCancel, 1, true, ""), was(v1alpha1.ReleaseSuspend), newer}, before: true},
		"a baseline":                      {options: []func(*Input){func(in *Input) { in.ChangeWorkload.Spec.Attempt, in.Workload.Attempt = 0, 0 }}},
		"without a server":                {options: []func(*Input){func(in *Input) { in.ServerConfigured = false }}},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(3, append([]func(*Input){func(in *Input) { in.ServerConfigured = true }}, tc.options...)...)
			c := in.ChangeWorkload
			c.Namespace = "default"
			if tc.before {
				c.Finalizers = []string{v1alpha1.OrderFinalizer}
			}
			client := fake.NewSimpleClientset(c)
			r, d := &Reconciler{client: client}, Decide(in)
			if _, err := r.addFinalizer(t.Context(), in, d); err != nil {
				t.Fatal(err)
			}
			if err := r.removeFinalizer(t.Context(), in, d); err != nil {
				t.Fatal(err)
			}
			stored, err := client.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), c.Name, metav1.GetOptions{})
			if err != nil || slices.Contains(stored.Finalizers, v1alpha1.OrderFinalizer) != tc.want {
				t.Errorf("finalizers %v, %v; want it: %t", stored.Finalizers, err, tc.want)
			}
		})
	}
}

// The workload is deleted in the middle of its release: nothing else would close the order.
func TestTheOrderOfADeletedReleaseIsClosedOnce(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(t0)
	in := release(3, orderOpen, deleted, was(v1alpha1.ReleaseRunning))
	c := in.ChangeWorkload
	c.Namespace, c.UID = "default", "u"
	client := fake.NewSimpleClientset(c)
	optedIn := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if err := optedIn.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled},
	}}); err != nil {
		t.Fatal(err)
	}
	sent := &outbox{}
	r := &Reconciler{client: client, sender: sent, namespaces: corelisters.NewNamespaceLister(optedIn), clock: clock,
		probationWakeUps: resend.New(clock), wakeups: resend.New(clock), calls: callqueue.New(clock), serverConfigured: func() bool { return true }}
	stored := func() *v1alpha1.ChangeWorkload {
		found, err := client.AppV1alpha1().ChangeWorkloads("default").Get(t.Context(), c.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for range 2 {
		if ok, wait := controller.IsRequeueKey(r.finalize(t.Context(), stored())); !ok || wait <= 0 || wait > closingTimeout {
			t.Fatalf("reconciled again: %t, after %s", ok, wait)
		}
	}
	c = stored()
	if step := c.Status.OrderStep; step == nil || step.Name != v1alpha1.OrderStepClose || step.State != v1alpha1.OrderCancel {
		t.Errorf("step %+v", step)
	}
	if !slices.Equal(sent.sent, []string{events.TypeOrderReady}) {
		t.Errorf("sent %q, want one wake-up", sent.sent)
	}
	at := metav1.NewMicroTime(t0.Add(time.Second))
	c.Status.Order.Closing = &v1alpha1.OrderClosing{State: v1alpha1.OrderCancel, Attempts: 1, AnsweredTime: &at}
	if _, err := client.AppV1alpha1().ChangeWorkloads("default").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.finalize(t.Context(), stored()); err != nil {
		t.Fatal(err)
	}
	if got := stored().Finalizers; len(got) > 0 {
		t.Errorf("finalizers %v", got)
	}
}
