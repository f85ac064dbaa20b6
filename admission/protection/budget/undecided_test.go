package budget

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// disconnect makes every call of the replica to the API server fail. Its caches stay.
func (fx *fixture) disconnect() {
	fail := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no route to host")
	}
	fx.client.PrependReactor("*", "*", fail)
	kube := kubefake.NewClientset()
	kube.PrependReactor("*", "*", fail)
	fx.guard.Pods, fx.guard.PDBs.Client = kube.CoreV1(), kube.PolicyV1()
}

// decidingPeer is the replica that decides for every namespace.
type decidingPeer struct{ handler admission.Handler }

func (p decidingPeer) DecidingPeer(string) affinity.Peer { return p }

func (p decidingPeer) Do(r *http.Request) (*http.Response, error) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return nil, err
	}
	review.Response = p.handler.Admit(apis.WithHTTPRequest(r.Context(), r), review.Request).Response
	review.Response.UID = review.Request.UID
	w := httptest.NewRecorder()
	if err := json.NewEncoder(w).Encode(review); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func TestAReplicaThatCannotReachTheAPIServerLeavesTheDecisionToAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		req     *admissionv1.AdmissionRequest
		allowed int32
		want    string
	}{
		"a deletion within the budget": {deletion(t, newPod(nil)), 1, DecisionCharged},
		"a deletion above the budget":  {deletion(t, newPod(nil)), 0, DecisionDenied},
		"an eviction":                  {eviction(t, nil), 1, DecisionCharged},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a replica tries until its deadline
				budgets := []*v1alpha1.PodUnavailableBudget{newBudget("web", tc.allowed, nil)}
				broken, working := newFixture(t, living, budgets, newPod(nil)), newFixture(t, living, budgets, newPod(nil))
				broken.disconnect()
				if got := broken.ask(t, tc.req); !admission.Undecided(got.Response) {
					t.Errorf("alone: %s %+v", got.Decision, got.Response.Result)
				}
				f := affinity.Forwarder{Next: working.guard, Matches: working.guard.MayCharge, Peers: decidingPeer{broken.guard}}
				r := &http.Request{URL: &url.URL{Path: "/admission/v.kb.io", RawQuery: "timeout=5s"}, Header: http.Header{}}
				if got := f.Admit(apis.WithHTTPRequest(t.Context(), r), tc.req); got.Decision != tc.want {
					t.Errorf("got %s %+v, want %s", got.Decision, got.Response.Result, tc.want)
				}
			})
		})
	}
}

// It does not receive the renewals of the Lease either. The deletion of a pod without a controller needs no
// other read before.
func TestAReplicaThatCannotReachTheAPIServerDoesNotDecideByItsOldLease(t *testing.T) {
	pod := newPod(func(p *corev1.Pod) { p.OwnerReferences = nil })
	for name, tc := range map[string]struct {
		// renewed reports whether the working replica receives the renewals.
		renewed bool
		want    string
	}{
		"the controller works": {true, DecisionCharged},
		"no controller works":  {false, DecisionStale},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budgets := []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}
				broken, working := newFixture(t, living, budgets, pod), newFixture(t, living, budgets, pod)
				acquired := time.Now().Add(-time.Hour)
				for _, fx := range []*fixture{broken, working} {
					fx.guard.Controller = NewControllerLeases(clock.RealClock{}, time.Minute, "lease")
					fx.guard.Controller.Observe("lease", time.Now(), acquired)
				}
				broken.disconnect()
				for range 10 {
					time.Sleep(10 * time.Second)
					if tc.renewed {
						working.guard.Controller.Observe("lease", time.Now(), acquired)
					}
				}
				f := affinity.Forwarder{Next: working.guard, Matches: working.guard.MayCharge, Peers: decidingPeer{broken.guard}}
				r := &http.Request{URL: &url.URL{Path: "/admission/v.kb.io", RawQuery: "timeout=5s"}, Header: http.Header{}}
				if got := f.Admit(apis.WithHTTPRequest(t.Context(), r), deletion(t, pod)); got.Decision != tc.want {
					t.Errorf("got %s %+v, want %s", got.Decision, got.Response.Result, tc.want)
				}
			})
		})
	}
}
