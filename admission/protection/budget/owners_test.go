package budget

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// countedOwners counts the reads of owners, and the live ones among them.
type countedOwners struct {
	Owners
	all, live int
	// onRead is called before each read; nil if nothing happens.
	onRead func()
}

func (c *countedOwners) count(live bool) {
	c.all++
	if live {
		c.live++
	}
	if c.onRead != nil {
		c.onRead()
	}
}

func (c *countedOwners) Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	c.count(live)
	return c.Owners.Chain(ctx, namespace, refs, live)
}

func (c *countedOwners) RevisionsWithTraffic(ctx context.Context, namespace, service string, live bool) ([]string, error) {
	c.count(live)
	return c.Owners.RevisionsWithTraffic(ctx, namespace, service, live)
}

// podsOf returns n pods of ReplicaSet web-1.
func podsOf(n int, change func(*corev1.Pod)) (pods []runtime.Object) {
	for i := range n {
		pods = append(pods, newPod(func(p *corev1.Pod) {
			p.Name, p.UID = fmt.Sprintf("web-1-%d", i), types.UID(fmt.Sprint("uid-", i))
			if change != nil {
				change(p)
			}
		}))
	}
	return pods
}

// A live read takes some milliseconds, and a request has at most 5 s.
func TestARequestReadsAnOwnerFromTheAPIServerOnce(t *testing.T) {
	const services = 20
	var ofServices []*v1alpha1.PodUnavailableBudget
	traffic := map[string][]string{}
	for i := range services {
		service := fmt.Sprintf("service-%02d", i)
		traffic[service] = []string{service + "-00001"}
		ofServices = append(ofServices, newBudget(service, 0, func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: service}
		}))
	}
	revision := budget.Owner{Group: "serving.knative.dev", Kind: "Revision", Name: "service-00-00000", UID: "uid-r"}
	below := chains{remembered: map[string]budget.Chain{"web-1": {rs, deployment, revision}, "web": {deployment, revision}}, cachedTraffic: traffic, traffic: traffic}
	labelled := func(p *corev1.Pod) { p.Labels["serving.knative.dev/service"] = "service-00" }
	for name, tc := range map[string]struct {
		above   chains
		budgets []*v1alpha1.PodUnavailableBudget
		pods    []runtime.Object
		denied  bool
		// live is the maximum number of live reads, including one for the owner of the ReplicaSet.
		live int
	}{
		"a ReplicaSet that is denied":                           {living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, podsOf(300, nil), true, 2},
		"pods without traffic, budgets of many Services":        {below, ofServices, podsOf(50, nil), false, 1 + services},
		"labelled pods without traffic, budgets of many others": {below, ofServices, podsOf(50, labelled), false, 1 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, tc.above, tc.budgets, tc.pods...)
			counted := &countedOwners{Owners: tc.above}
			fx.guard.Owners = counted
			if a := fx.ask(t, ofReplicaSet(t)); a.Response.Allowed == tc.denied {
				t.Errorf("allowed %t: %s", a.Response.Allowed, a.Decision)
			}
			if counted.live > tc.live {
				t.Errorf("%d live reads, want at most %d", counted.live, tc.live)
			}
		})
	}
}

func TestNothingIsReadAfterTheDeadline(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, podsOf(50, nil)...)
	ctx, cancel := context.WithCancel(t.Context())
	counted := &countedOwners{Owners: living, onRead: cancel}
	fx.guard.Owners = counted
	a := fx.guard.Admit(ctx, ofReplicaSet(t))
	if a.Decision != admission.DecisionDeniedTimeout || counted.all != 1 {
		t.Errorf("%s after %d reads", a.Decision, counted.all)
	}
}
