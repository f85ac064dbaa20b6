package budget

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/test/builder"
)

var (
	rs           = budget.Owner{Group: "apps", Kind: "ReplicaSet", Name: "web-1", UID: "uid-rs"}
	deployment   = budget.Owner{Group: "apps", Kind: "Deployment", Name: "web", UID: "uid-d"}
	deletedOwner = budget.Owner{Group: "apps", Kind: "Deployment", Name: "web", UID: "uid-d", TerminatingOrGone: true}
	missing      = budget.Owner{Group: "apps", Kind: "ReplicaSet", Name: "gone", UID: "uid-rs", TerminatingOrGone: true}
	living       = chains{remembered: map[string]budget.Chain{"web-1": {rs, deployment}, "web": {deployment}, "gone": {missing}}}
)

func TestWhatARequestCosts(t *testing.T) {
	changed := func(change func(*corev1.Pod)) func(*testing.T) *admissionv1.AdmissionRequest {
		return func(t *testing.T) *admissionv1.AdmissionRequest { return updating(t, "", newPod(nil), newPod(change)) }
	}
	deleted := func(change func(*corev1.Pod)) func(*testing.T) *admissionv1.AdmissionRequest {
		return func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, newPod(change)) }
	}
	// resizedFrom changes the resources of a pod whose memory cannot be resized in place, and which is in a state before.
	resizedFrom := func(state func(*corev1.Pod), changes ...func(*corev1.Pod)) func(*testing.T) *admissionv1.AdmissionRequest {
		before := func(p *corev1.Pod) {
			p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.NotRequired},
				{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer},
			}
			state(p)
		}
		return func(t *testing.T) *admissionv1.AdmissionRequest {
			return updating(t, "resize", newPod(before), newPod(func(p *corev1.Pod) {
				before(p)
				for _, change := range changes {
					change(p)
				}
			}))
		}
	}
	resized := func(changes ...func(*corev1.Pod)) func(*testing.T) *admissionv1.AdmissionRequest {
		return resizedFrom(func(*corev1.Pod) {}, changes...)
	}
	requests := func(name corev1.ResourceName) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{name: resource.MustParse("1")}
		}
	}
	// gated writes the condition of a readiness gate of a pod that meets all of them.
	gated := func(gate corev1.PodConditionType, after corev1.ConditionStatus) func(*testing.T) *admissionv1.AdmissionRequest {
		with := func(status corev1.ConditionStatus) *corev1.Pod {
			return newPod(func(p *corev1.Pod) {
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: gate}}
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: gate, Status: status})
			})
		}
		return func(t *testing.T) *admissionv1.AdmissionRequest {
			return updating(t, "status", with(corev1.ConditionTrue), with(after))
		}
	}
	one := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1")}
	podRequests := func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: one} }
	podLimits := func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Limits: one} }
	ownLimit := func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = one }
	for _, tc := range []struct {
		name    string
		request func(*testing.T) *admissionv1.AdmissionRequest
		// charged in deletedPods or unavailablePods; the code of the denial if
		// nothing more is allowed
		deleted, changed bool
		code             int32
	}{
		{"delete", deleted(nil), true, false, 403},
		{"evict", func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, nil) }, true, false, 429},
		{"delete a pod that is not Ready", deleted(func(p *corev1.Pod) { p.Status.Conditions = nil }), false, false, 0},
		{"delete a terminating pod", deleted(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }), false, false, 0},
		{"delete a completed pod", deleted(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false, false, 0},
		{"delete an exempt pod", deleted(func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: "true"} }), false, false, 0},
		{"delete a pod of another application", deleted(func(p *corev1.Pod) { p.Labels["app"] = "db" }), false, false, 0},
		{"another image", changed(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }), false, true, 403},
		{"another image of a sidecar", changed(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh", Image: "mesh:2"}}
		}), false, true, 403},
		{"marked unavailable", changed(func(p *corev1.Pod) { p.Labels[v1alpha1.UnavailableLabelPrefix+"test"] = "true" }), false, true, 403},
		{"given a deadline", changed(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) }), false, true, 403},
		{"made exempt", changed(func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: "true"} }), false, true, 403},
		{"a label outside the selector", changed(func(p *corev1.Pod) { p.Labels["app"] = "debug" }), false, true, 403},
		{"a label inside the selector", changed(func(p *corev1.Pod) { p.Labels["more"] = "yes" }), false, false, 0},
		{"a controller that does not exist", changed(func(p *corev1.Pod) { p.OwnerReferences[0].Name = "gone" }), false, true, 403},
		{"no controller, but a label inside the selector", changed(func(p *corev1.Pod) { p.OwnerReferences = nil }), false, false, 0},
		{"annotated", changed(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }), false, false, 0},
		{"updated in place: its readiness gate is not met anymore", gated("InPlaceUpdateReady", corev1.ConditionFalse), false, true, 403},
		{"made unready by OpenKruise", gated("KruisePodReady", corev1.ConditionFalse), false, true, 403},
		{"its readiness gate is unchanged", gated("InPlaceUpdateReady", corev1.ConditionTrue), false, false, 0},
		{"a readiness gate of another program", gated("lb", corev1.ConditionFalse), false, false, 0},
		{"resized with a restart", resized(requests(corev1.ResourceMemory)), false, true, 403},
		{"resized with and without a restart", resized(requests(corev1.ResourceCPU), requests(corev1.ResourceMemory)), false, true, 403},
		{"resized as a whole with a restart", resized(podLimits), false, true, 403},
		{"resized as a whole, and its container has its own limit", resizedFrom(ownLimit, podLimits), false, false, 0},
		{"resized as a whole by a request", resized(podRequests), false, false, 0},
		{"resized in place", resized(requests(corev1.ResourceCPU)), false, false, 0},
		{"not resized", resized(), false, false, 0},
		{"restarted by OpenKruise", restart, false, true, 403},
		{"its ReplicaSet deleted", ofReplicaSet, true, false, 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
			if a := fx.ask(t, tc.request(t)); !a.Response.Allowed {
				t.Fatalf("denied: %s", a.Response.Result.Message)
			}
			s := fx.budget(t, "web").Status
			if got := len(s.DeletedPods) > 0; got != tc.deleted {
				t.Errorf("deletedPods %v", s.DeletedPods)
			}
			if got := len(s.UnavailablePods) > 0; got != tc.changed {
				t.Errorf("unavailablePods %v", s.UnavailablePods)
			}
			again := fx.ask(t, tc.request(t))
			if !again.Response.Allowed {
				t.Errorf("denied when repeated: %s", again.Response.Result.Message)
			}

			empty := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
			a := empty.ask(t, tc.request(t))
			if a.Response.Allowed != (tc.code == 0) {
				t.Fatalf("with 0 allowed: %+v", a)
			}
			if tc.code != 0 {
				checkDenial(t, a.Response, tc.code)
			}
		})
	}
}

func checkDenial(t *testing.T, res *admissionv1.AdmissionResponse, code int32) {
	t.Helper()
	s := res.Result
	if s.Code != code || s.Details == nil || len(s.Details.Causes) != 1 {
		t.Fatalf("got %+v", s)
	}
	if s.Details.RetryAfterSeconds != 0 {
		t.Error("Retry-After blocks a worker of client-go")
	}
	for _, words := range []string{"makes 1 available pod unavailable, and the budget allows 0 now", "kubectl -n ns get pub web", "raise spec.maxUnavailable of the budget (now 1)"} {
		if !strings.Contains(s.Message, words) {
			t.Errorf("%q is missing: %s", words, s.Message)
		}
	}
}

func TestADenialSaysWhatTheRequestMakesUnavailable(t *testing.T) {
	notReady := newPod(func(p *corev1.Pod) { p.Status.Conditions = nil })
	b := newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) { b.Spec.ProtectNotReady, b.Status.TotalReplicas = true, 1 })
	a := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{b}, notReady).ask(t, deletion(t, notReady))
	const want = "the request affects only pods that are not available, which spec.protectNotReady protects, too, and the budget allows 0 now"
	if a.Response.Allowed || !strings.Contains(a.Response.Result.Message, want) {
		t.Errorf("allowed %v: %s", a.Response.Allowed, a.Response.Result)
	}
	for needed, want := range map[int32]string{1: "makes 1 available pod unavailable", 2: "makes 2 available pods unavailable"} {
		got := denial(&Action{}, b, budget.Decision{Needed: needed}, "").Response.Result.Message
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing: %s", want, got)
		}
	}
}

func TestADenialSaysForWhatToWait(t *testing.T) {
	const ready, done, unfinished = "wait until more pods are Ready", "wait until the requests in progress have taken effect", "; allowed requests in progress: 1"
	for name, tc := range map[string]struct {
		decision      budget.Decision
		says, saysNot []string
	}{
		"a pod is not available": {budget.Decision{Numbers: budget.Numbers{Current: 2, Total: 3, Desired: 2}, Needed: 1},
			[]string{ready}, []string{done, unfinished}},
		"all pods are available": {budget.Decision{Numbers: budget.Numbers{Current: 3, Total: 3, Desired: 3}, Needed: 1},
			nil, []string{ready, done, unfinished}},
		"all pods are available after an allowed request": {budget.Decision{Numbers: budget.Numbers{Current: 4, Total: 4, Desired: 3}, Needed: 1, EarlierCharges: 1},
			[]string{done, "(4 of 4 pods are available, and 3 must be available" + unfinished + ")"}, []string{ready}},
		"the number is not known": {budget.Decision{UnknownReplicas: "the replicas are unknown", Needed: 1, EarlierCharges: 1},
			[]string{ready}, []string{done, unfinished}},
	} {
		t.Run(name, func(t *testing.T) {
			got := denial(&Action{}, newBudget("web", 0, func(*v1alpha1.PodUnavailableBudget) {}), tc.decision, "").Response.Result.Message
			for _, words := range tc.says {
				if !strings.Contains(got, words) {
					t.Errorf("%q is missing: %s", words, got)
				}
			}
			for _, words := range tc.saysNot {
				if strings.Contains(got, words) {
					t.Errorf("it says %q: %s", words, got)
				}
			}
		})
	}
}

// The controller ends the charge when the kubelet has replaced the containers.
func TestTheChargeOfAnInPlaceChangeNamesItsContainers(t *testing.T) {
	running := newPod(func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://1"}}
	})
	updated := running.DeepCopy()
	updated.Spec.Containers[0].Image = "web:2"
	again := restart(t)
	again.Object = builder.Raw(t, map[string]any{"spec": map[string]any{"podName": running.Name, "containers": []any{map[string]any{"name": "web"}}}})
	for name, tc := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		want []budget.Effect
	}{
		"another image": {updating(t, "", running, updated), budget.EffectsOf(running, updated)},
		"a restart":     {again, budget.EffectsOfRestart(running, []string{"web"}, budget.Restart{})},
	} {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, running)
		if a := fx.ask(t, tc.req); !a.Response.Allowed {
			t.Fatal(a.Response.Result.Message)
		}
		got := budget.ParseEntry(fx.budget(t, "web").Status.UnavailablePods[running.Name]).Effects
		if diff := cmp.Diff(tc.want, got); diff != "" || len(got) != 1 {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// kruise-daemon waits for the unready grace period, and then stops one container after the other, each for the
// grace period of the request, or else of the pod.
func TestTheChargeOfARestartHasItsGracePeriods(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy map[string]any
		deadline any
		want     time.Duration
	}{
		"of the pod":        {nil, nil, 60 * time.Second},
		"of the request":    {map[string]any{"terminationGracePeriodSeconds": 600}, nil, 1200 * time.Second},
		"0 of the request":  {map[string]any{"terminationGracePeriodSeconds": 0}, nil, 0},
		"unready":           {map[string]any{"unreadyGracePeriodSeconds": 100}, nil, 160 * time.Second},
		"both":              {map[string]any{"terminationGracePeriodSeconds": 600, "unreadyGracePeriodSeconds": 100}, nil, 1300 * time.Second},
		"longer than a day": {map[string]any{"terminationGracePeriodSeconds": math.MaxInt64, "unreadyGracePeriodSeconds": math.MaxInt64}, nil, 24 * time.Hour},
		"0 as a Duration":   {map[string]any{"terminationGracePeriodSeconds": 1 << 55}, nil, 24 * time.Hour},
		// One container may stop at the deadline, and no other one is stopped after it.
		"the deadline":             {map[string]any{"terminationGracePeriodSeconds": 600, "unreadyGracePeriodSeconds": 100}, 300, 900 * time.Second},
		"a later deadline":         {nil, 300, 60 * time.Second},
		"the deadline in a day":    {map[string]any{"terminationGracePeriodSeconds": math.MaxInt64}, math.MaxInt64, 24 * time.Hour},
		"unready for the deadline": {map[string]any{"unreadyGracePeriodSeconds": 3600}, 60, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			running := newPod(func(p *corev1.Pod) {
				p.Spec.TerminationGracePeriodSeconds = new(int64(30))
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ContainerID: "containerd://1"}, {Name: "mesh", ContainerID: "containerd://2"}}
			})
			req := restart(t)
			req.Object = builder.Raw(t, map[string]any{"spec": map[string]any{"podName": running.Name, "strategy": tc.strategy, "activeDeadlineSeconds": tc.deadline,
				"containers": []any{map[string]any{"name": "web"}, map[string]any{"name": "mesh"}}}})
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, running)
			fx.ask(t, req)
			entry := fx.budget(t, "web").Status.UnavailablePods[running.Name]
			if got := budget.ParseEntry(entry).Grace(); got != tc.want {
				t.Errorf("%s: %s, want %s", entry, got, tc.want)
			}
		})
	}
}

func restart(t *testing.T) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: "ns", Name: "again",
		Resource: metav1.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "containerrecreaterequests"},
		Object:   builder.Raw(t, map[string]any{"spec": map[string]any{"podName": "web-1-a"}}),
	}
}

// The deletion of a ReplicaSet costs nothing for a pod that is not Ready. That pod is not
// deleted, becomes Ready, and is deleted by another request.
func TestAPodThatCostNothingIsChargedWhenItIsAvailable(t *testing.T) {
	unready := newPod(func(p *corev1.Pod) { p.Name, p.UID, p.Status.Conditions = "web-1-b", "uid-b", nil })
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil), unready)
	if a := fx.ask(t, ofReplicaSet(t)); !a.Response.Allowed {
		t.Fatal(a.Response.Result.Message)
	}
	req := deletion(t, newPod(func(p *corev1.Pod) { p.Name, p.UID = "web-1-b", "uid-b" }))
	if a := fx.ask(t, req); a.Response.Allowed {
		t.Errorf("%s, charged %v", a.Decision, fx.budget(t, "web").Status.DeletedPods)
	}
}

func TestABudgetWithATarget(t *testing.T) {
	target := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "apps", Kind: "Deployment", Name: "web"}
	}
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, target)}, newPod(nil))
	if fx.ask(t, deletion(t, newPod(nil))).Response.Allowed {
		t.Error("allowed")
	}
	orphan := newPod(func(p *corev1.Pod) { p.OwnerReferences = nil })
	if !fx.ask(t, deletion(t, orphan)).Response.Allowed {
		t.Error("an orphan was denied")
	}
}

// A pod that is not covered costs nothing, so a cached answer does not suffice for that.
func TestABudgetOfAKnativeServiceDecidesByTheTrafficAtTheRequest(t *testing.T) {
	target := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "web"}
	}
	revision := budget.Owner{Group: "serving.knative.dev", Kind: "Revision", Name: "web-00001", UID: "uid-revision"}
	labeled := newPod(func(p *corev1.Pod) { p.Labels["serving.knative.dev/revision"] = "web-00001" })
	ofRevision := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Delete, Namespace: "ns", Name: "web-00001",
		Resource: metav1.GroupVersionResource{Group: "serving.knative.dev", Version: "v1", Resource: "revisions"},
		OldObject: builder.Raw(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-00001", UID: "uid-revision",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Configuration", Name: "web", Controller: new(true)}}}}),
	}
	this, another := []string{"web-00001"}, []string{"web-00002"}
	for name, tc := range map[string]struct {
		chain       budget.Chain
		cached, now []string
		want        bool
	}{
		"its Revision has traffic":          {budget.Chain{rs, deployment, revision}, this, this, false},
		"it has got traffic since the read": {budget.Chain{rs, deployment, revision}, another, this, false},
		"it has lost its traffic since":     {budget.Chain{rs, deployment, revision}, this, another, true},
		"another Revision has the traffic":  {budget.Chain{rs, deployment, revision}, another, another, true},
		"the Service is deleted":            {budget.Chain{rs, deployment, revision}, this, nil, true},
		"a pod of a Deployment":             {budget.Chain{rs, deployment}, this, this, true},
	} {
		t.Run(name, func(t *testing.T) {
			above := chains{remembered: map[string]budget.Chain{"web-1": tc.chain, "web": {{Group: "serving.knative.dev", Kind: "Configuration", Name: "web"}}}, cachedTraffic: map[string][]string{"web": tc.cached}, traffic: map[string][]string{"web": tc.now}}
			fx := newFixture(t, above, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, target)}, labeled)
			for _, req := range []*admissionv1.AdmissionRequest{deletion(t, labeled), eviction(t, nil), ofRevision} {
				if a := fx.ask(t, req); a.Response.Allowed != tc.want {
					t.Errorf("%s: %+v", req.Operation, a)
				}
			}
		})
	}
}

func TestOnlyProtectedOperationsAreDecidedByTheBudget(t *testing.T) {
	evictions := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.ProtectOperations = []v1alpha1.PodOperation{v1alpha1.OperationEvict}
	}
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, evictions)}, newPod(nil))
	if !fx.ask(t, deletion(t, newPod(nil))).Response.Allowed || fx.ask(t, eviction(t, nil)).Response.Allowed {
		t.Error("an unprotected operation was denied, or a protected one allowed")
	}
}

func TestADryRunChargesNothing(t *testing.T) {
	deleted, evicted := deletion(t, newPod(nil)), eviction(t, nil)
	deleted.DryRun, evicted.DryRun = new(true), new(true)
	for name, req := range map[string]*admissionv1.AdmissionRequest{
		"a deletion": deleted, "an eviction": evicted,
		"an eviction whose body says so": eviction(t, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
	} {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
		if a := fx.ask(t, req); !a.Response.Allowed || fx.budget(t, "web").Status.UnavailableAllowed != 1 {
			t.Errorf("%s: got %+v", name, a)
		}
		none := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
		if none.ask(t, req).Response.Allowed {
			t.Errorf("%s: a dry run does not return the decision", name)
		}
		if len(none.events.Events) > 0 {
			t.Errorf("%s: a dry run recorded an Event", name)
		}
	}
}

func TestShadowModeAllowsAndWarns(t *testing.T) {
	shadow := func(b *v1alpha1.PodUnavailableBudget) { b.Spec.Shadow = true }
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, shadow)}, newPod(nil))
	a := fx.ask(t, deletion(t, newPod(nil)))
	if !a.Response.Allowed || a.Decision != DecisionShadow || len(a.Response.Warnings) != 1 {
		t.Errorf("got %+v", a)
	}
	if e := <-fx.events.Events; !strings.Contains(e, v1alpha1.ReasonDisruptionWouldBeDenied) {
		t.Error(e)
	}
}

func TestAChargeIsRefundedWhenAnotherBudgetDenies(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("a", 1, nil), newBudget("b", 1, nil)}, newPod(nil))
	fx.useUp(t, "b")
	if fx.ask(t, deletion(t, newPod(nil))).Response.Allowed {
		t.Fatal("allowed")
	}
	if fx.writes("a") == 0 {
		t.Error("a was not charged")
	}
	fx.untilRefunded(t, "a")
}

// useUp leaves nothing allowed by a budget. The cache does not show it yet.
func (fx *fixture) useUp(t *testing.T, name string) {
	t.Helper()
	now := newBudget(name, 0, func(b *v1alpha1.PodUnavailableBudget) { b.ResourceVersion = "2" })
	if err := fx.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), now, "ns"); err != nil {
		t.Fatal(err)
	}
}

// writes returns how often the status of a budget was written.
func (fx *fixture) writes(name string) (n int) {
	for _, a := range fx.client.Actions() {
		if w, ok := a.(clienttesting.UpdateAction); ok && w.GetObject().(*v1alpha1.PodUnavailableBudget).Name == name {
			n++
		}
	}
	return n
}

// untilRefunded waits until nothing is charged. The controller then computes again what
// is allowed.
func (fx *fixture) untilRefunded(t *testing.T, name string) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		s := fx.budget(t, name).Status
		return len(s.DeletedPods)+len(s.UnavailablePods) == 0, nil
	}); err != nil {
		t.Errorf("not refunded: %+v", fx.budget(t, name).Status)
	}
}

// After the timeout of the request, the API server ignores the answer, and a replica
// that forwarded the request decides it itself.
func TestAChargeIsRefundedWhenTheAnswerIsIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		denies, forwarded bool
		kept              int
	}{
		"the API server denies":          {true, false, 0},
		"the API server allows":          {false, false, 1},
		"the forwarding replica decides": {true, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
			fx.guard.FailsClosed = func() bool { return tc.denies }
			asked := &http.Request{URL: &url.URL{}, Header: http.Header{}}
			if tc.forwarded {
				affinity.MarkForwarded(asked.Header)
			}
			ctx, cancel := context.WithCancel(apis.WithHTTPRequest(t.Context(), asked))
			defer cancel()
			fx.guard.Recorder = fx.events
			// The client disconnects between the commit and the answer.
			ask := evaluation{Guard: fx.guard, admissionID: 1, action: &Action{Operation: v1alpha1.OperationDelete, Pods: []*corev1.Pod{newPod(nil)}}, decision: DecisionNotCharged}
			if _, denial := ask.evaluate(ctx, newBudget("web", 1, nil)); denial != nil {
				t.Fatal(denial.Response.Result.Message)
			}
			cancel()
			if a := (Charges{&ask}).Finish(ctx, admission.Allow(DecisionCharged)); a.Response.Allowed == tc.denies {
				t.Errorf("answered %+v", a)
			}
			if tc.kept == 0 {
				fx.untilRefunded(t, "web")
				return
			}
			fx.settled(t)
			if got := fx.budget(t, "web").Status; len(got.DeletedPods) != tc.kept {
				t.Errorf("refunded, but the charge may be used: %+v", got)
			}
		})
	}
}

// Two replicas, each with a cache that is never updated, and more requests than the
// budget allows: exactly as many pass as are allowed.
func TestConcurrentDeletionsAtTwoReplicasDoNotExceedTheBudget(t *testing.T) {
	const allowed, asked = 30, 200
	b := newBudget("web", allowed, nil)
	one, two := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{b}), newFixture(t, living, []*v1alpha1.PodUnavailableBudget{b})
	two.guard.Commit = NewCommitter(two.guard.Budgets, one.guard.Client, two.guard.References, nil)
	var passed atomic.Int64
	var all sync.WaitGroup
	for i := range asked {
		guard := []Guard{one.guard, two.guard}[i%2]
		req := deletion(t, newPod(func(p *corev1.Pod) { p.Name, p.UID = fmt.Sprint(i), types.UID(fmt.Sprint(i)) }))
		all.Go(func() {
			if guard.Admit(t.Context(), req).Response.Allowed {
				passed.Add(1)
			}
		})
	}
	all.Wait()
	if s := one.budget(t, "web").Status; passed.Load() != allowed || len(s.DeletedPods) != allowed || s.UnavailableAllowed != 0 {
		t.Errorf("%d allowed, %d charged, %d left", passed.Load(), len(s.DeletedPods), s.UnavailableAllowed)
	}
}

func TestAnUncomputedBudgetDeniesAndAsksToRetry(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 5, func(b *v1alpha1.PodUnavailableBudget) {
		b.Status.ObservedGeneration = 0
	})}, newPod(nil))
	s := fx.ask(t, deletion(t, newPod(nil))).Response.Result
	if s == nil || s.Code != 429 || s.Details.RetryAfterSeconds != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestPodsAreChosenAgainAfterAChangeOfTheBudget(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
	other := newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) {
		b.Generation, b.Status.ObservedGeneration, b.ResourceVersion = 2, 2, "2"
		b.Spec.Selector.MatchLabels["app"] = "db"
	})
	if err := fx.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), other, "ns"); err != nil {
		t.Fatal(err)
	}
	if a := fx.ask(t, deletion(t, newPod(nil))); !a.Response.Allowed {
		t.Error(a.Response.Result.Message)
	}
}

// The cache of the webhook has the former limit, which allows the deletion.
func TestADeletionAfterAChangeOfTheBudgetIsNotAllowedByTheFormerLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed int32
		// computed is the generation that the controller has computed.
		computed int64
	}{"the budget is not computed yet": {1, 1}, "the budget is computed": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
			changed := newBudget("web", tc.allowed, func(b *v1alpha1.PodUnavailableBudget) {
				b.Generation, b.Status.ObservedGeneration, b.ResourceVersion = 2, tc.computed, "2"
			})
			if err := fx.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), changed, "ns"); err != nil {
				t.Fatal(err)
			}
			if a := fx.ask(t, deletion(t, newPod(nil))); a.Response.Allowed {
				t.Errorf("got %s", a.Decision)
			}
		})
	}
}

// The cache of the webhook has the former value of spec.shadow.
func TestShadowModeIsThatOfTheBudgetThatDenies(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after bool
		event         string
	}{
		"it was begun": {false, true, v1alpha1.ReasonDisruptionWouldBeDenied},
		"it was ended": {true, false, v1alpha1.ReasonDisruptionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) {
				b.Spec.Shadow = tc.before
			})}, newPod(nil))
			changed := newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) {
				b.Generation, b.Status.ObservedGeneration, b.ResourceVersion = 2, 2, "2"
				b.Spec.Shadow = tc.after
			})
			if err := fx.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), changed, "ns"); err != nil {
				t.Fatal(err)
			}
			if a := fx.ask(t, deletion(t, newPod(nil))); a.Response.Allowed != tc.after {
				t.Errorf("allowed %t: %s", a.Response.Allowed, a.Decision)
			}
			if e := <-fx.events.Events; !strings.Contains(e, tc.event) {
				t.Error(e)
			}
		})
	}
}

// A finalizer keeps a budget that a person deleted. The deletion raises its generation, and the
// controller does not compute a terminating budget.
func TestATerminatingBudgetDecidesNothing(t *testing.T) {
	terminating := newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) {
		b.Generation, b.ResourceVersion = 2, "2"
		b.DeletionTimestamp, b.Finalizers = &metav1.Time{Time: time.Unix(1000, 0)}, []string{"foregroundDeletion"}
	})
	t.Run("in the cache", func(t *testing.T) {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{terminating}, newPod(nil))
		if a := fx.ask(t, deletion(t, newPod(nil))); !a.Response.Allowed || a.Decision != DecisionNoBudget {
			t.Errorf("got %s", a.Decision)
		}
	})
	t.Run("beside another budget", func(t *testing.T) {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("other", 0, nil), terminating}, newPod(nil))
		if a := fx.ask(t, deletion(t, newPod(nil))); a.Response.Allowed || a.Decision != DecisionDenied {
			t.Errorf("got %s", a.Decision)
		}
	})
	t.Run("not in the cache yet", func(t *testing.T) {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
		if err := fx.client.Tracker().Update(v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets"), terminating.DeepCopy(), "ns"); err != nil {
			t.Fatal(err)
		}
		if a := fx.ask(t, deletion(t, newPod(nil))); !a.Response.Allowed || a.Decision != DecisionNotCharged {
			t.Errorf("got %s", a.Decision)
		}
	})
}

func TestAnEvictionThatAPodDisruptionBudgetWillDenyIsNotCharged(t *testing.T) {
	full := newPDB("web", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 0 })
	for name, tc := range map[string]struct {
		pdbs []runtime.Object
		code int32
	}{
		"it allows no disruption": {[]runtime.Object{full}, 429},
		// Kubernetes does not support it.
		"two select the pod":               {[]runtime.Object{newPDB("web", nil), newPDB("all", nil)}, 500},
		"its status is of an earlier spec": {[]runtime.Object{newPDB("web", func(b *policyv1.PodDisruptionBudget) { b.Generation++ })}, 429},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, append(tc.pdbs, newPod(nil))...)
			if a := fx.ask(t, eviction(t, nil)); a.Response.Allowed || a.Response.Result.Code != tc.code || len(fx.budget(t, "web").Status.DeletedPods) > 0 {
				t.Errorf("got %+v, %d charged", a.Response, len(fx.budget(t, "web").Status.DeletedPods))
			}
			if a := fx.ask(t, deletion(t, newPod(nil))); !a.Response.Allowed {
				t.Error("a deletion was denied like an eviction")
			}
		})
	}
	open := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil), newPDB("web", nil))
	if a := open.ask(t, eviction(t, nil)); !a.Response.Allowed || len(open.budget(t, "web").Status.DeletedPods) != 1 {
		t.Errorf("got %+v", a)
	}
}

// The pod of a StatefulSet was replaced after the client had read it. The API server answers with a conflict.
func TestTheEvictionOfAnEarlierPodIsNotCharged(t *testing.T) {
	for name, tc := range map[string]struct {
		expected *metav1.Preconditions
		charged  bool
	}{
		"an earlier pod": {&metav1.Preconditions{UID: new(types.UID("uid-earlier"))}, false},
		"this pod":       {&metav1.Preconditions{UID: new(types.UID("uid-a"))}, true},
		"an empty UID":   {&metav1.Preconditions{UID: new(types.UID(""))}, false},
		// The API server ignores it for a pod that is not Ready.
		"an earlier version of this pod": {&metav1.Preconditions{ResourceVersion: new("4")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := eviction(t, &metav1.DeleteOptions{Preconditions: tc.expected})
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
			if a := fx.ask(t, req); !a.Response.Allowed || len(fx.budget(t, "web").Status.DeletedPods) > 0 != tc.charged {
				t.Errorf("got %s, charged %v", a.Decision, fx.budget(t, "web").Status.DeletedPods)
			}
			full := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
			if a := full.ask(t, req); a.Response.Allowed == tc.charged {
				t.Errorf("got %s by a budget that allows 0", a.Decision)
			}
		})
	}
}

// A drain evicts pods one after the other, faster than the cache is updated.
func TestAPodDisruptionBudgetIsReadLive(t *testing.T) {
	pdb := func(allowed int32) *policyv1.PodDisruptionBudget {
		return newPDB("web", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = allowed })
	}
	for name, tc := range map[string]struct{ cached, live int32 }{"the last disruption was taken": {1, 0}, "disruptions are allowed again": {0, 1}} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil), pdb(tc.cached))
			if _, err := fx.guard.PDBs.Client.PodDisruptionBudgets("ns").Update(t.Context(), pdb(tc.live), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			a := fx.ask(t, eviction(t, nil))
			if charged := len(fx.budget(t, "web").Status.DeletedPods); a.Response.Allowed != (tc.live > 0) || charged != int(tc.live) {
				t.Errorf("allowed %t, %d charged, with %d disruptions", a.Response.Allowed, charged, tc.live)
			}
		})
	}
}

// The API server may repeat a deletion with the old pod after its charge was settled.
// It is charged again only if the pod still exists.
func TestACompletedDeletionIsNotChargedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		now  []runtime.Object
		want bool
	}{
		"deleted":     {nil, true},
		"terminating": {[]runtime.Object{newPod(func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"a"} })}, true},
		"replaced":    {[]runtime.Object{newPod(func(p *corev1.Pod) { p.UID = "uid-next" })}, true},
		"running":     {[]runtime.Object{newPod(nil)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, tc.now...)
			if fx.ask(t, deletion(t, newPod(nil))).Response.Allowed {
				t.Fatal("allowed without a charge")
			}
			fx.guard.Recent.Observe(nil, newBudget("web", 0, func(b *v1alpha1.PodUnavailableBudget) {
				b.Status.DeletedPods = map[types.UID]string{"uid-a": "5"}
			}))
			if a := fx.ask(t, deletion(t, newPod(nil))); a.Response.Allowed != tc.want {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestAReplicaAnswersProbesOfBudgetsThatItKnows(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)})
	probe := func(uid types.UID, generation int64) []string {
		return fx.ask(t, &admissionv1.AdmissionRequest{
			Operation: admissionv1.Update, Namespace: "ns", Name: "web", DryRun: new(true),
			Resource: metav1.GroupVersionResource{Group: v1alpha1.GroupName, Version: "v1alpha1", Resource: "podunavailablebudgets"},
			Object: builder.Raw(t, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				UID: uid, Generation: generation, Annotations: map[string]string{v1alpha1.ProbeAnnotation: "7"}}}),
		}).Response.Warnings
	}
	if got := probe("web", 2); len(got) > 0 {
		t.Errorf("a probe of an unknown budget was answered: %v", got)
	}
	if got := probe("another", 1); len(got) > 0 {
		t.Errorf("a probe of another budget was answered: %v", got)
	}
	got := probe("web", 1)
	if len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	seen, ok := budget.ParseProbeAnswer(got[0])
	if diff := cmp.Diff(budget.ProbeAnswer{Probe: "7", Replica: "replica-1"}, seen); !ok || diff != "" {
		t.Error(diff)
	}
	if _, ok := budget.ParseProbeAnswer("some other warning"); ok {
		t.Error("another warning was parsed as an answer")
	}
}
