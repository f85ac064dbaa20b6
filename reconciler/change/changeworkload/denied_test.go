package changeworkload

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/controller"
	fakedynamicclient "knative.dev/pkg/injection/clients/dynamicclient/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

// Any policy may deny the controller's writes of workloads.
func TestADeniedChangeOfTheWorkloadDelaysNoStatus(t *testing.T) {
	forbidden := apierrs.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("only the deployer may change workloads"))
	invalid := apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web", nil)
	for name, tc := range map[string]struct {
		denied    error
		verdict   string
		phase     v1alpha1.ReleasePhase
		announced string
		// held is the reason of condition Held, then that after the write succeeded.
		held, then string
	}{
		"the hold of a fail":                            {forbidden, "fail", v1alpha1.ReleaseSuspend, "suspended", v1alpha1.ReasonWorkloadUnchanged, v1alpha1.ReasonSuspended},
		"the hold of a fail, as policies do by default": {invalid, "fail", v1alpha1.ReleaseSuspend, "suspended", v1alpha1.ReasonWorkloadUnchanged, v1alpha1.ReasonSuspended},
		"the label of a release that passed":            {forbidden, "pass", v1alpha1.ReleaseSuccess, "succeeded", v1alpha1.ReasonNotSuspended, v1alpha1.ReasonNotSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			version := strings.Repeat("0", 32)
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: "web", UID: "d", ResourceVersion: "7", Labels: map[string]string{v1alpha1.VersionKey: version},
					Annotations: map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: "2"},
				},
				Spec:   appsv1.DeploymentSpec{Replicas: new(int32(1))},
				Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1},
			}
			ctx, r, events := newTestReconciler(t, d)
			r.enqueueAfter = func(types.NamespacedName, time.Duration) {}
			pod := changed("p")
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			add(t, podinformer.Get(ctx).Informer().GetIndexer(), pod)
			c := &v1alpha1.ChangeWorkload{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web--x--" + version, UID: "c"},
				Spec: v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: 2,
					WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d"}},
			}
			batch := newChangePod(c, position{n: 1, total: 1, last: true}, []v1alpha1.PodSummary{{Pod: "p", UID: "p"}}, t0)
			batch.Status.Phase = v1alpha1.BatchExecuteDone
			batch.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: tc.verdict}}
			add(t, changepodinformer.Get(ctx).Informer().GetIndexer(), batch)
			releases := changeclient.Get(ctx).AppV1alpha1().ChangeWorkloads("default")
			if _, err := releases.Create(ctx, c, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			denied, denials := tc.denied, 0
			fakedynamicclient.Get(ctx).PrependReactor("patch", "deployments", func(clientgotesting.Action) (bool, runtime.Object, error) {
				if denied != nil {
					denials++
				}
				return denied != nil, nil, denied
			})

			for attempt := 1; attempt <= 2; attempt++ {
				if err := r.ReconcileKind(ctx, c.DeepCopy()); !errors.Is(err, tc.denied) || denials != attempt {
					t.Fatalf("attempt %d: %d denials, %v", attempt, denials, err)
				}
				var err error
				if c, err = releases.Get(ctx, c.Name, metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
				if c.Status.Phase != tc.phase || !slices.ContainsFunc(c.Status.Announcements, func(a v1alpha1.Announcement) bool { return a.Verb == tc.announced }) {
					t.Errorf("attempt %d: phase %q, announcements %+v", attempt, c.Status.Phase, c.Status.Announcements)
				}
				held := c.Status.GetCondition(v1alpha1.ReleaseHeld)
				if unchanged := tc.held == v1alpha1.ReasonWorkloadUnchanged; !held.IsFalse() || held.Reason != tc.held || strings.Contains(held.Message, tc.denied.Error()) != unchanged {
					t.Errorf("attempt %d: Held is %+v", attempt, held)
				}
			}
			told := 0
			for len(events.Events) > 0 {
				if e := <-events.Events; strings.Contains(e, v1alpha1.ReasonWorkloadUnchanged) {
					told++
				}
			}
			if want := map[bool]int{true: 1}[tc.held == v1alpha1.ReasonWorkloadUnchanged]; told != want {
				t.Errorf("%d Events, want %d", told, want)
			}

			denied = nil
			if err := r.ReconcileKind(ctx, c.DeepCopy()); err != nil {
				if again, _ := controller.IsRequeueKey(err); !again {
					t.Fatal(err)
				}
			}
			c, err := releases.Get(ctx, c.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if held := c.Status.GetCondition(v1alpha1.ReleaseHeld); c.Status.Phase != tc.phase || held.GetReason() != tc.then {
				t.Errorf("phase %q, Held is %+v", c.Status.Phase, held)
			}
		})
	}
}

func TestHeldSaysWhyTheWorkloadCouldNotBeChanged(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	cause := errors.New("the API server says no")
	furtherRevision := func(in *Input) { in.Revisions.Own = []string{"b"} }
	withoutLabel := func(in *Input) { in.Workload.HasDefenseStatus = false }
	for name, tc := range map[string]struct {
		in     Input
		action Action
		status corev1.ConditionStatus
		reason string
	}{
		"a fail":                         {release(2, finished(1, 1), judged(1, "fail")), ActionSuspend, no, v1alpha1.ReasonWorkloadUnchanged},
		"a fail while it is held":        {release(2, finished(1, 1), judged(1, "fail"), heldAsUnjudged), ActionSuspend, yes, v1alpha1.ReasonHeldUnjudged},
		"the traffic of a new Revision":  {release(2, finished(1, 1), judged(1, "fail"), held, furtherRevision), ActionMoveTraffic, yes, v1alpha1.ReasonSuspended},
		"unjudged":                       {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold")), ActionHold, no, v1alpha1.ReasonWorkloadUnchanged},
		"a pause that was ended":         {release(2, finished(1, 1), judged(1, "done"), noVerdict("Hold"), pauseEnded), ActionHold, no, v1alpha1.ReasonWorkloadUnchanged},
		"the end of a hold":              {release(2, finished(1, 1), judged(1, "pass"), heldAsUnjudged), ActionResume, yes, v1alpha1.ReasonHeldUnjudged},
		"the end of its suspension":      {release(2, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(v1alpha1.ReleaseSuspend)), ActionResume, yes, v1alpha1.ReasonSuspended},
		"the end of the one it repaired": {release(1, finished(1, 1), judged(1, "pass"), repairs, complete1), ActionResume, no, v1alpha1.ReasonWorkloadUnchanged},
		"the end of a wait for traffic":  {release(2, untilJudged, finished(1, 1), judged(1, "pass")), ActionResume, no, v1alpha1.ReasonWorkloadUnchanged},
		"the label of a success":         {release(1, finished(1, 1), judged(1, "pass"), complete1, withoutLabel), ActionSetDefenseStatus, no, v1alpha1.ReasonNotSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.in)
			if d.Action != tc.action {
				t.Fatalf("action %q, want %q", d.Action, tc.action)
			}
			d.ActionError = cause
			cond := derive(tc.in, d).Status.GetCondition(v1alpha1.ReleaseHeld)
			if cond.Status != tc.status || cond.Reason != tc.reason || strings.Contains(cond.Message, cause.Error()) != (tc.action != ActionSetDefenseStatus) {
				t.Errorf("Held is %+v", cond)
			}
		})
	}
}

// The JSON Patch tests of a patch fail, which is Invalid as well.
func TestAWorkloadThatKeepsChangingIsAStaleCache(t *testing.T) {
	d := rolling()
	d.Namespace = corev1.NamespaceDefault
	ctx, r, _ := newTestReconciler(t, d)
	tracker := fakedynamicclient.Get(ctx).Tracker()
	fakedynamicclient.Get(ctx).PrependReactor("patch", "deployments", func(clientgotesting.Action) (bool, runtime.Object, error) {
		d.ResourceVersion += "0"
		if err := tracker.Update(appsv1.SchemeGroupVersion.WithResource("deployments"), workloadinformertest.Unstructured(t, d), d.Namespace); err != nil {
			t.Error(err)
		}
		return true, nil, apierrs.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, d.Name, nil)
	})
	in := release(3, judged(1, "fail"))
	if err := r.act(ctx, in, of(t, d), ActionSuspend); !errors.Is(err, errStaleCache) {
		t.Errorf("got %v, want errStaleCache", err)
	}
}
