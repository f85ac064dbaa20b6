package deletion

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestADeletionIsChargedAndCountedOnlyIfBothAllowIt(t *testing.T) {
	const byBudget, byFlow, nobody = "PodUnavailableBudget web", "PodDeletionFlowControl cluster", ""
	none, free, spent, watching := (*v1alpha1.PodUnavailableBudget)(nil), newBudget(1, false), newBudget(0, false), newBudget(0, true)
	type flows struct {
		stored, cached *v1alpha1.PodDeletionFlowControl
	}
	known := func(limit int64, shadow bool) flows {
		return flows{newFlow("2", limit, shadow), newFlow("2", limit, shadow)}
	}
	absent, room, full, shadow := flows{}, known(9, false), known(0, false), known(0, true)
	justFull := flows{newFlow("2", 0, false), newFlow("1", 9, false)} // which the cache does not know
	for name, tc := range map[string]struct {
		budget   *v1alpha1.PodUnavailableBudget
		flow     flows
		deniedBy string
		decision string
		warnings int
		want     state
	}{
		"no budget, no flow control":                 {none, absent, nobody, budget.DecisionNoBudget, 0, state{0, 0}},
		"no budget, room":                            {none, room, nobody, budget.DecisionNoBudget, 0, state{0, 1}},
		"no budget, full":                            {none, full, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"no budget, just full":                       {none, justFull, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"no budget, full in shadow mode":             {none, shadow, nobody, budget.DecisionNoBudget, 1, state{0, 1}},
		"one allowed, no flow control":               {free, absent, nobody, budget.DecisionCharged, 0, state{1, 0}},
		"one allowed, room":                          {free, room, nobody, budget.DecisionCharged, 0, state{1, 1}},
		"one allowed, full":                          {free, full, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"one allowed, just full":                     {free, justFull, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"one allowed, full in shadow mode":           {free, shadow, nobody, budget.DecisionCharged, 1, state{1, 1}},
		"none allowed, no flow control":              {spent, absent, byBudget, budget.DecisionDenied, 0, state{0, 0}},
		"none allowed, room":                         {spent, room, byBudget, budget.DecisionDenied, 0, state{0, 0}},
		"none allowed, full":                         {spent, full, byBudget, budget.DecisionDenied, 0, state{0, 0}},
		"none allowed, just full":                    {spent, justFull, byBudget, budget.DecisionDenied, 0, state{0, 0}},
		"none allowed, full in shadow mode":          {spent, shadow, byBudget, budget.DecisionDenied, 0, state{0, 0}},
		"a budget in shadow mode, no flow control":   {watching, absent, nobody, budget.DecisionShadow, 1, state{0, 0}},
		"a budget in shadow mode, room":              {watching, room, nobody, budget.DecisionShadow, 1, state{0, 1}},
		"a budget in shadow mode, full":              {watching, full, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"a budget in shadow mode, just full":         {watching, justFull, byFlow, DecisionFlowControl, 0, state{0, 0}},
		"a budget in shadow mode, both in that mode": {watching, shadow, nobody, budget.DecisionShadow, 2, state{0, 1}},
	} {
		for verb, request := range map[string]func(*testing.T, string, bool) *admissionv1.AdmissionRequest{"delete": deletion, "evict": eviction} {
			for _, dryRun := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/dry run %t", name, verb, dryRun), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						fx := newFixture(t, tc.budget, tc.flow.stored, tc.flow.cached)
						got := fx.handler.Admit(t.Context(), request(t, "web-1", dryRun))
						afterRefunds()
						if got.Decision != tc.decision || got.Response.Allowed != (tc.deniedBy == nobody) {
							t.Errorf("%s, allowed %t: %v", got.Decision, got.Response.Allowed, got.Response.Result)
						}
						if tc.deniedBy != nobody && !strings.Contains(got.Response.Result.Message, "is denied by "+tc.deniedBy) {
							t.Error(got.Response.Result.Message)
						}
						if len(got.Response.Warnings) != tc.warnings {
							t.Errorf("warnings %q", got.Response.Warnings)
						}
						want := tc.want
						if dryRun {
							want = state{}
						}
						if diff := cmp.Diff(want, fx.state(t), cmp.AllowUnexported(state{})); diff != "" {
							t.Error(diff)
						}
					})
				})
			}
		}
	}
}

// A charge uses up the allowed deletion until the controller computes the budget again.
func TestWhileFlowControlDeniesABudgetIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := newFlow("2", 0, false)
		fx := newFixture(t, newBudget(1, false), full, full)
		for range 20 {
			fx.handler.Admit(t.Context(), deletion(t, "web-1", false))
		}
		afterRefunds()
		if n := fx.budgetWrites(); n > 0 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestAnEvictionThatAPodDisruptionBudgetDeniesCostsNothing(t *testing.T) {
	pdb := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
	for name, b := range map[string]*v1alpha1.PodUnavailableBudget{"with a budget": newBudget(1, false), "without a budget": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				room := newFlow("2", 9, false)
				fx := newFixture(t, b, room, room, pdb)
				got := fx.handler.Admit(t.Context(), eviction(t, "web-1", false))
				afterRefunds()
				if got.Response.Allowed || !strings.Contains(got.Response.Result.Message, "PodDisruptionBudget web") || fx.state(t) != (state{}) {
					t.Errorf("%+v, %+v", got.Response, fx.state(t))
				}
			})
		})
	}
}

// answering is a flow control that answers as told and counts the requests.
type answering struct {
	answer func(context.Context) admission.Answer
	full   bool
	asked  int
}

func (a *answering) LikelyDenies(*admissionv1.AdmissionRequest) bool { return a.full }

func (a *answering) Admit(ctx context.Context, _ *admissionv1.AdmissionRequest) admission.Answer {
	a.asked++
	return a.answer(ctx)
}

func allowing(context.Context) admission.Answer {
	return admission.Allow(deletionflow.DecisionCounted)
}

func denying(context.Context) admission.Answer {
	return admission.Deny(deletionflow.DecisionDenied, metav1.Status{Message: "full"})
}

// The API server repeats requests, and so do users.
func TestADeniedRepetitionKeepsTheChargeOfADeletionUnderWay(t *testing.T) {
	for name, repeated := range map[string]func(*testing.T, string, bool) *admissionv1.AdmissionRequest{"by a deletion": deletion, "by an eviction": eviction} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, newBudget(2, false), nil, nil)
				flow := &answering{answer: allowing}
				fx.handler.FlowControl = flow
				fx.handler.Admit(t.Context(), deletion(t, "web-1", false))
				flow.answer = denying
				for _, req := range []*admissionv1.AdmissionRequest{repeated(t, "web-1", false), deletion(t, "web-2", false)} {
					if got := fx.handler.Admit(t.Context(), req); got.Response.Allowed {
						t.Errorf("%s of %s is allowed: %s", req.Operation, req.Name, got.Decision)
					}
				}
				afterRefunds()
				b, err := fx.client.PolicyV1alpha1().PodUnavailableBudgets("shop").Get(t.Context(), "web", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := b.Status.DeletedPods["uid-web-1"]; !ok || len(b.Status.DeletedPods) != 1 {
					t.Errorf("charged %v", b.Status.DeletedPods)
				}
			})
		})
	}
}

// The API server has denied the request, because there was no answer in time.
func TestAnAnswerAfterTheDeadlineIsADenialThatCostsNoCharge(t *testing.T) {
	for name, answer := range map[string]func(context.Context) admission.Answer{"allowed": allowing, "denied": denying} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fx := newFixture(t, newBudget(1, false), nil, nil)
				fx.handler.FlowControl = &answering{answer: func(ctx context.Context) admission.Answer {
					<-ctx.Done()
					return answer(ctx)
				}}
				r := &http.Request{URL: &url.URL{Path: "/admission/v.kb.io", RawQuery: "timeout=5s"}}
				got := fx.handler.Admit(apis.WithHTTPRequest(t.Context(), r), deletion(t, "web-1", false))
				afterRefunds()
				if got.Response.Allowed || fx.state(t) != (state{}) {
					t.Errorf("%s %+v, %+v", got.Decision, got.Response, fx.state(t))
				}
			})
		})
	}
}

func TestOnlyDeletionsOfPodsAreDecidedByFlowControl(t *testing.T) {
	update := newRequest(admissionv1.Update, "", "web-1", false)
	changed := newPod("web-1")
	changed.Labels = map[string]string{"app": "db"}
	update.OldObject, update.Object = builder.Raw(t, newPod("web-1")), builder.Raw(t, changed)
	owner := newRequest(admissionv1.Delete, "", "web", false)
	owner.Resource = metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	owner.OldObject = builder.Raw(t, newPod("web"))
	for name, tc := range map[string]struct {
		req  *admissionv1.AdmissionRequest
		want int
	}{
		"a deletion":              {deletion(t, "web-1", false), 1},
		"an eviction":             {eviction(t, "web-1", false), 1},
		"an update":               {update, 0},
		"a deletion of its owner": {owner, 0},
	} {
		for _, full := range []bool{false, true} { // according to the cache
			t.Run(fmt.Sprintf("%s/full %t", name, full), func(t *testing.T) {
				fx, flow := newFixture(t, newBudget(1, false), nil, nil), &answering{answer: allowing, full: full}
				fx.handler.FlowControl = flow
				if got := fx.handler.Admit(t.Context(), tc.req); !got.Response.Allowed || flow.asked != tc.want {
					t.Errorf("%+v, asked %d times", got.Response, flow.asked)
				}
			})
		}
	}
}

func TestFlowControlThatIsNotRegisteredIsNotAsked(t *testing.T) {
	fx, flow := newFixture(t, newBudget(1, false), nil, nil), &answering{answer: denying}
	fx.handler.FlowControl, fx.handler.ConfigurationExists = flow, func() bool { return false }
	if got := fx.handler.Admit(t.Context(), deletion(t, "web-1", false)); !got.Response.Allowed || flow.asked > 0 {
		t.Errorf("%+v, asked %d times", got.Response, flow.asked)
	}
}

func TestDecisionsOfFlowControlAreCountedAsThoseOfItsWebhook(t *testing.T) {
	room, full := newFlow("2", 9, false), newFlow("2", 0, false)
	for name, tc := range map[string]struct {
		flow *v1alpha1.PodDeletionFlowControl
		want map[string]string
	}{
		"no flow control": {nil, map[string]string{}},
		"room":            {room, map[string]string{deletionflow.Webhook: deletionflow.DecisionCounted}},
		"full":            {full, map[string]string{deletionflow.Webhook: deletionflow.DecisionDenied}},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, newBudget(1, false), tc.flow, tc.flow)
			fx.handler.Admit(t.Context(), deletion(t, "web-1", false))
			if diff := cmp.Diff(tc.want, fx.decisions(t)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
