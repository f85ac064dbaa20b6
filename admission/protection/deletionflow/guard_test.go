package deletionflow

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
)

func TestWhatARequestIsAnsweredAndCounted(t *testing.T) {
	now := metav1.NewTime(zero)
	full := func(change func(*v1alpha1.PodDeletionFlowControl)) *v1alpha1.PodDeletionFlowControl {
		return newFlow("cluster", 0, change)
	}
	inShadow := func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.Shadow = true }
	rejectsWrites := func(fx *fixture) {
		fx.client.PrependReactor("update", "poddeletionflowcontrols", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "cluster", errors.New("a quota"))
		})
	}
	room := newFlow("cluster", 9, nil)
	pod, shop := newPod("a", nil), newNamespace(nil)
	unscheduled := newPod("b", func(p *corev1.Pod) { p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending} })
	for name, tc := range map[string]struct {
		objects []runtime.Object
		req     func(t *testing.T) *admissionv1.AdmissionRequest
		before  func(*fixture)
		want    string
		code    int32
		counted int64
	}{
		"a deletion within the limit": {[]runtime.Object{room, shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			nil, DecisionCounted, 0, 1},
		"a deletion beyond the limit": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			nil, DecisionDenied, http.StatusForbidden, 0},
		"an eviction within the limit": {[]runtime.Object{room, shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, "a", nil) },
			nil, DecisionCounted, 0, 1},
		"an eviction beyond the limit": {[]runtime.Object{full(nil), shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, "a", nil) },
			nil, DecisionDenied, http.StatusTooManyRequests, 0},
		"an eviction of an unknown pod": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, "a", nil) },
			nil, DecisionPodNotFound, 0, 0},
		"an eviction of an earlier pod of this name": {[]runtime.Object{full(nil), shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return eviction(t, "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(types.UID("earlier"))}})
		}, nil, DecisionPodNotFound, 0, 0},
		"an eviction of this pod": {[]runtime.Object{room, shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return eviction(t, "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
		}, nil, DecisionCounted, 0, 1},
		"the dry run of an eviction": {[]runtime.Object{room, shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return eviction(t, "a", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}, nil, DecisionCounted, 0, 0},
		"an eviction that a PodDisruptionBudget will deny": {[]runtime.Object{room, shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest { return eviction(t, "a", nil) },
			func(fx *fixture) {
				fx.pdbs.refusal = &metav1.Status{Code: http.StatusInternalServerError}
			},
			DecisionDisruptionBudget, http.StatusInternalServerError, 0},
		"a dry run": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest {
			req := deletion(t, pod)
			req.DryRun = new(true)
			return req
		}, nil, DecisionDenied, http.StatusForbidden, 0},
		"shadow": {[]runtime.Object{full(inShadow), shop},
			func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) }, nil, DecisionShadow, 0, 1},
		"a terminating pod": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return deletion(t, newPod("a", func(p *corev1.Pod) { p.DeletionTimestamp = &now }))
		}, nil, deletionflow.PodTerminating, 0, 0},
		"a completed pod": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return deletion(t, newPod("a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))
		}, nil, deletionflow.PodCompleted, 0, 0},
		"an unscheduled pod": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return deletion(t, unscheduled)
		}, nil, deletionflow.PodUnscheduled, 0, 0},
		"an eviction of an unscheduled pod": {[]runtime.Object{full(nil), shop, unscheduled}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return eviction(t, "b", nil)
		}, nil, deletionflow.PodUnscheduled, 0, 0},
		"a pod of a terminating namespace": {[]runtime.Object{full(nil), newNamespace(func(n *corev1.Namespace) { n.DeletionTimestamp = &now })},
			func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) }, nil, deletionflow.NamespaceTerminating, 0, 0},
		"a namespace within the limit": {[]runtime.Object{room, shop, pod, newPod("b", nil)},
			func(t *testing.T) *admissionv1.AdmissionRequest { return ofNamespace(t, shop) }, nil, DecisionCounted, 0, 2},
		"a namespace beyond the limit": {[]runtime.Object{newFlow("cluster", 1, nil), shop, pod, newPod("b", nil)},
			func(t *testing.T) *admissionv1.AdmissionRequest { return ofNamespace(t, shop) }, nil, DecisionDenied, http.StatusForbidden, 0},
		"an empty namespace": {[]runtime.Object{full(nil), shop},
			func(t *testing.T) *admissionv1.AdmissionRequest { return ofNamespace(t, shop) }, nil, deletionflow.NothingActive, 0, 0},
		"a repeated deletion of a namespace": {[]runtime.Object{full(nil), shop, pod}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return ofNamespace(t, newNamespace(func(n *corev1.Namespace) { n.DeletionTimestamp = &now }))
		}, nil, deletionflow.NamespaceTerminating, 0, 0},
		"a clock that is off": {[]runtime.Object{room, shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			func(fx *fixture) { fx.clock.off = errors.New("an hour") }, DecisionDeniedClockSkew, http.StatusTooManyRequests, 0},
		"a clock that is off, in shadow mode": {[]runtime.Object{full(inShadow), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			func(fx *fixture) { fx.clock.off = errors.New("an hour") }, DecisionUncounted, 0, 0},
		"a status that cannot be written": {[]runtime.Object{room, shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			rejectsWrites, "Error", http.StatusTooManyRequests, 0},
		"a status that cannot be written, in shadow mode": {[]runtime.Object{full(inShadow), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			rejectsWrites, DecisionUncounted, 0, 0},
		"a namespace that is missing in the cache, in shadow mode": {[]runtime.Object{full(inShadow)}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			nil, DecisionUncounted, 0, 0},
		"a clock that is off, one of two in shadow mode": {[]runtime.Object{room, newFlow("zz", 0, inShadow), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			func(fx *fixture) { fx.clock.off = errors.New("an hour") }, DecisionDeniedClockSkew, http.StatusTooManyRequests, 0},
		"a status in shadow mode that cannot be written, beside another": {[]runtime.Object{room, newFlow("zz", 0, inShadow), shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			func(fx *fixture) {
				fx.client.PrependReactor("update", "poddeletionflowcontrols", func(a clienttesting.Action) (bool, runtime.Object, error) {
					written := a.(clienttesting.UpdateAction).GetObject().(*v1alpha1.PodDeletionFlowControl)
					return written.Name == "zz", nil, apierrors.NewForbidden(schema.GroupResource{}, "zz", errors.New("a quota"))
				})
			}, DecisionUncounted, 0, 1},
		"a flow control that was deleted, and the cache still has it": {[]runtime.Object{newFlow("aa", 0, nil), room, shop}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			func(fx *fixture) {
				if err := fx.client.Tracker().Delete(v1alpha1.SchemeGroupVersion.WithResource("poddeletionflowcontrols"), "", "aa"); err != nil {
					t.Fatal(err)
				}
			}, DecisionCounted, 0, 1},
		"a clock that is off, for a pod that is not counted": {[]runtime.Object{full(nil), shop}, func(t *testing.T) *admissionv1.AdmissionRequest {
			return deletion(t, newPod("a", func(p *corev1.Pod) { p.DeletionTimestamp = &now }))
		}, func(fx *fixture) { fx.clock.off = errors.New("an hour") }, deletionflow.PodTerminating, 0, 0},
		"a namespace that is missing in the cache": {[]runtime.Object{room}, func(t *testing.T) *admissionv1.AdmissionRequest { return deletion(t, pod) },
			nil, "Error", http.StatusTooManyRequests, 0},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, tc.objects...)
			if tc.before != nil {
				tc.before(fx)
			}
			answer := fx.ask(t, tc.req(t))
			if answer.Decision != tc.want || answer.Response.Allowed != (tc.code == 0) {
				t.Errorf("%s, allowed %t: %v", answer.Decision, answer.Response.Allowed, answer.Response.Result)
			}
			if tc.code != 0 && answer.Response.Result.Code != tc.code {
				t.Errorf("code %d", answer.Response.Result.Code)
			}
			if got := fx.counted(t, "cluster"); got != tc.counted {
				t.Errorf("%d counted", got)
			}
		})
	}
}

func TestADenialIsLikelyAtTheLimitAndWithAnInvalidRule(t *testing.T) {
	flow := func(limit int64, change func(*v1alpha1.PodDeletionFlowControl)) []runtime.Object {
		return []runtime.Object{newNamespace(nil), newFlow("cluster", limit, change)}
	}
	req := deletion(t, newPod("a", nil))
	for name, tc := range map[string]struct {
		objects []runtime.Object
		req     *admissionv1.AdmissionRequest
		want    bool
	}{
		"no flow control":      {[]runtime.Object{newNamespace(nil)}, req, false},
		"room":                 {flow(1, nil), req, false},
		"at its limit":         {flow(0, nil), req, true},
		"evictions":            {flow(0, nil), eviction(t, "a", nil), true},
		"in shadow mode":       {flow(0, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.Shadow = true }), req, false},
		"evictions are free":   {flow(0, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.CountEvictions = new(false) }), eviction(t, "a", nil), false},
		"an unknown namespace": {[]runtime.Object{newFlow("cluster", 0, nil)}, req, false},
		"another namespace": {flow(0, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
		}), req, false},
		"an invalid rule": {flow(9, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "soon" }), req, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newFixture(t, tc.objects...).guard.LikelyDenies(tc.req); got != tc.want {
				t.Errorf("likely denies: %t", got)
			}
		})
	}
}

func TestNothingIsReadWithoutAFlowControl(t *testing.T) {
	fx := newFixture(t)
	if answer := fx.ask(t, deletion(t, newPod("a", nil))); !answer.Response.Allowed || answer.Decision != DecisionNoFlowControl || len(fx.kube.Actions()) > 0 {
		t.Errorf("%+v", answer)
	}
}

// With Retry-After, client-go sleeps and blocks a worker of the controller.
func TestADenialHasTheRoomTimeAndNoRetryAfter(t *testing.T) {
	fx := newFixture(t, newFlow("cluster", 1, nil), newNamespace(nil), newPod("b", nil))
	fx.ask(t, deletion(t, newPod("a", nil)))
	fx.clock.SetTime(zero.Add(100 * time.Second))
	for _, req := range []*admissionv1.AdmissionRequest{deletion(t, newPod("b", nil)), eviction(t, "b", nil)} {
		result := fx.ask(t, req).Response.Result
		if result.Details.RetryAfterSeconds != 0 {
			t.Errorf("Retry-After %d s", result.Details.RetryAfterSeconds)
		}
		at := zero.Add(611 * time.Second).UTC().Format(time.RFC3339)
		for _, want := range []string{"of pod shop/b is denied by PodDeletionFlowControl cluster", "1 deletions were counted in 10m (limit 1), and this is one more", "allowed again at " + at + " (in 8m31s)",
			"kubectl annotate pdfc cluster --overwrite policy.breakwater.dev/closed=$(date -u +%FT%TZ)"} {
			if !strings.Contains(result.Message, want) {
				t.Errorf("%q does not say %q", result.Message, want)
			}
		}
		is := func(c metav1.StatusCause) bool { return c.Type == causeRoomTime && c.Message == at }
		if !slices.ContainsFunc(result.Details.Causes, is) {
			t.Errorf("causes %v", result.Details.Causes)
		}
	}
	if event := <-fx.events.Events; !strings.Contains(event, v1alpha1.ReasonDeletionDenied) {
		t.Errorf("recorded %q", event)
	}
}

func TestADenialOfANamespaceAboveTheLimitHasNoRetryAfter(t *testing.T) {
	fx := newFixture(t, newFlow("cluster", 1, nil), newNamespace(nil), newPod("a", nil), newPod("b", nil))
	message := fx.ask(t, ofNamespace(t, newNamespace(nil))).Response.Result.Message
	if strings.Contains(message, "wait") || !strings.Contains(message, "the limit never allows 2 at once") || !strings.Contains(message, "deletes 2 pods") {
		t.Error(message)
	}
}

func TestEveryApplicableFlowControlHasToAllow(t *testing.T) {
	elsewhere := newFlow("elsewhere", 0, func(f *v1alpha1.PodDeletionFlowControl) {
		f.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "test"}}
	})
	fx := newFixture(t, newFlow("b-strict", 1, nil), newFlow("a-wide", 9, nil), elsewhere, newNamespace(nil))
	if a := fx.ask(t, deletion(t, newPod("a", nil))); !a.Response.Allowed {
		t.Fatalf("%+v", a.Response.Result)
	}
	a := fx.ask(t, deletion(t, newPod("b", nil)))
	if a.Response.Allowed || a.Response.Result.Details.Name != "b-strict" {
		t.Errorf("%+v", a.Response)
	}
	if fx.counted(t, "elsewhere") != 0 || fx.counted(t, "b-strict") != 1 {
		t.Errorf("counted %d elsewhere, %d here", fx.counted(t, "elsewhere"), fx.counted(t, "b-strict"))
	}
}

// Otherwise the limit of one team would use up that of the cluster.
func TestWhatOneFlowControlDeniesIsNotCountedByAnother(t *testing.T) {
	shop := newNamespace(nil)
	for name, tc := range map[string]struct {
		limit   int64
		shadow  bool
		req     *admissionv1.AdmissionRequest
		allowed bool
		// wide is how many deletions a-wide counts in addition to the first.
		wide int64
	}{
		"a pod beyond the limit":               {1, false, deletion(t, newPod("b", nil)), false, 0},
		"a pod within the limit":               {2, false, deletion(t, newPod("b", nil)), true, 1},
		"a repeated deletion at the limit":     {1, false, deletion(t, newPod("a", nil)), true, 0},
		"a pod beyond the limit in shadow":     {1, true, deletion(t, newPod("b", nil)), true, 1},
		"a namespace that exceeds the limit":   {2, false, ofNamespace(t, shop), false, 0},
		"a namespace that is within a limit":   {3, false, ofNamespace(t, shop), true, 2},
		"a namespace beyond the limit, shadow": {2, true, ofNamespace(t, shop), true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			strict := newFlow("b-strict", tc.limit, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.Shadow = tc.shadow })
			fx := newFixture(t, newFlow("a-wide", 9, nil), strict, shop, newPod("c", nil), newPod("d", nil))
			if a := fx.ask(t, deletion(t, newPod("a", nil))); !a.Response.Allowed {
				t.Fatalf("%+v", a.Response.Result)
			}
			fx.updateCache(t)
			if a := fx.ask(t, tc.req); a.Response.Allowed != tc.allowed {
				t.Errorf("%+v", a.Response)
			}
			if n := fx.counted(t, "a-wide"); n != 1+tc.wide {
				t.Errorf("a-wide counted %d", n)
			}
		})
	}
}

// The order of the names is the opposite of the order in which they decide.
func TestShadowModeCountsOnlyWhatTheOthersAllow(t *testing.T) {
	shadow := newFlow("aa", 9, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.Shadow = true })
	fx := newFixture(t, shadow, newFlow("cluster", 1, nil), newNamespace(nil))
	if a := fx.ask(t, deletion(t, newPod("a", nil))); !a.Response.Allowed {
		t.Fatalf("%+v", a.Response.Result)
	}
	if a := fx.ask(t, deletion(t, newPod("b", nil))); a.Response.Allowed || a.Decision != DecisionDenied {
		t.Errorf("%s: %+v", a.Decision, a.Response.Result)
	}
	if got := fx.counted(t, "aa"); got != 1 {
		t.Errorf("shadow mode counted %d", got)
	}
}

func TestCountedDeletionsAreAttributed(t *testing.T) {
	fx := newFixture(t, newFlow("cluster", 9, nil), newNamespace(nil))
	fx.ask(t, deletion(t, newPod("a", nil)))
	f, err := fx.client.PolicyV1alpha1().PodDeletionFlowControls().Get(t.Context(), "cluster", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := f.Status.Shares
	if s == nil || s.Users[0].Name != "ann" || s.Owners[0].Name != "Deployment shop/web" || s.Namespaces[0].Name != "shop" {
		t.Errorf("%+v", s)
	}
}

// Two replicas, each with a cache that is never updated, and more requests than the
// limit: exactly as many are allowed as the limit.
func TestConcurrentDeletionsAtTwoReplicasDoNotExceedTheLimit(t *testing.T) {
	const limit, asked = 30, 200
	one := newFixture(t, newFlow("cluster", limit, nil), newNamespace(nil))
	two := newFixture(t, newFlow("cluster", limit, nil), newNamespace(nil))
	two.guard.Commit = NewCommitter(two.guard.FlowControls, one.client.PolicyV1alpha1(), one.clock, skew, nil)
	one.guard.Commit = NewCommitter(one.guard.FlowControls, one.client.PolicyV1alpha1(), one.clock, skew, nil)
	var through atomic.Int64
	var all sync.WaitGroup
	for i := range asked {
		guard := []Guard{one.guard, two.guard}[i%2]
		req := deletion(t, newPod(fmt.Sprint(i), nil))
		all.Go(func() {
			if guard.Admit(t.Context(), req).Response.Allowed {
				through.Add(1)
			}
		})
	}
	all.Wait()
	if through.Load() != limit || one.counted(t, "cluster") != limit {
		t.Errorf("%d allowed, %d counted", through.Load(), one.counted(t, "cluster"))
	}
}
