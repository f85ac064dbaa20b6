package networkpolicy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

var config = filepath.Join("..", "..", "config")

const part = "app.kubernetes.io/part-of"

// probed is a component with its pod.
type probed struct {
	Component
	pod    *corev1.Pod
	probes []Probe
}

// fixture has the policies of the manifests, a pod for each component and one in each place.
type fixture struct {
	State
	components []probed
	sources    map[Place]string // addresses
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	components, labels, err := Components(config)
	if err != nil {
		t.Fatal(err)
	}
	if len(components) < 10 {
		t.Fatalf("only the components %v", components)
	}
	// The pods that the controller of the Broker for RabbitMQ creates in our namespace.
	components = append(components, Another, Component{Name: "broker-ingress"})
	labels = append(labels, nil, map[string]string{"eventing.knative.dev/broker": "default", "eventing.knative.dev/brokerRole": "ingress"})
	f := &fixture{sources: map[Place]string{Outside: "192.0.2.1"}}
	f.Policies = policies(t)
	for _, name := range []string{v1alpha1.SystemNamespace, "knative-serving", "shop"} {
		f.Namespaces = append(f.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"kubernetes.io/metadata.name": name},
		}})
	}
	for i, c := range components {
		probes, err := Probes(c)
		if err != nil {
			t.Error(err)
			continue
		}
		p := f.add(v1alpha1.SystemNamespace, c.Name, labels[i])
		f.components = append(f.components, probed{c, p, probes})
	}
	f.sources[Elsewhere] = f.add("shop", "web", map[string]string{part: "breakwater"}).Status.PodIP
	f.sources[Knative] = f.add("knative-serving", "autoscaler", nil).Status.PodIP
	f.sources[Beside] = f.add(v1alpha1.SystemNamespace, "beside", nil).Status.PodIP
	f.sources[Own] = f.add(v1alpha1.SystemNamespace, "own", map[string]string{part: "breakwater"}).Status.PodIP
	return f
}

func (f *fixture) add(namespace, name string, labels map[string]string) *corev1.Pod {
	p := pod(namespace, name, fmt.Sprintf("10.0.0.%d", len(f.Pods)+1))
	p.Labels = labels
	f.Pods = append(f.Pods, p)
	return p
}

// policies returns the NetworkPolicies of the parts and of the overlays. Those of samples are for
// other namespaces.
func policies(t *testing.T) (all []*networkingv1.NetworkPolicy) {
	t.Helper()
	err := objects(config, append([]string{"overlays/*"}, parts...), func(raw []byte) error {
		policy := &networkingv1.NetworkPolicy{}
		var kind metav1.TypeMeta
		if err := json.Unmarshal(raw, &kind); err != nil || kind.Kind != "NetworkPolicy" {
			return err
		}
		all = append(all, policy)
		return json.Unmarshal(raw, policy)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d policies", len(all))
	}
	return all
}

// isolate returns the isolated pods. It compares all pods with all policies.
func (f *fixture) isolate(t *testing.T) []Isolated {
	t.Helper()
	isolated, err := f.Isolate()
	if err != nil {
		t.Fatal(err)
	}
	return isolated
}

// results returns for the ports of a component from where the policies accept connections.
func (f *fixture) results(isolated []Isolated, c probed) map[int32][]Place {
	i := slices.IndexFunc(isolated, func(i Isolated) bool { return i.Address == c.pod.Status.PodIP })
	results := map[int32][]Place{}
	for _, probe := range c.probes {
		results[probe.Port] = nil
		for _, place := range Anyone {
			if i < 0 || accepts(isolated[i], f.sources[place], probe.Port) {
				results[probe.Port] = append(results[probe.Port], place)
			}
		}
	}
	return results
}

func accepts(to Isolated, from string, port int32) bool {
	return slices.ContainsFunc(to.Allowed, func(r Rule) bool {
		return (r.From == nil || slices.Contains(r.From, from)) && (r.Ports == nil || slices.Contains(r.Ports, port))
	})
}

func TestThePoliciesAcceptWhatTheProbesName(t *testing.T) {
	f := newFixture(t)
	isolated := f.isolate(t)
	for _, c := range f.components {
		want := map[int32][]Place{}
		for _, probe := range c.probes {
			want[probe.Port] = probe.From
		}
		if diff := cmp.Diff(want, f.results(isolated, c)); diff != "" {
			t.Errorf("%s (-probes +policies):\n%s", c.Name, diff)
		}
	}
}

// Each change of a line that makes it allow less or more has to change a result of each pod
// that the policy selects. So each line has a probe from a place that it names and, unless it
// names every place, one from a place that it does not name.
func TestEachLineOfEachPolicyHasItsProbes(t *testing.T) {
	f := newFixture(t)
	before := f.isolate(t)
	for i, policy := range f.Policies {
		selected := slices.DeleteFunc(slices.Clone(f.components), func(c probed) bool {
			matches, err := selects(&policy.Spec.PodSelector, c.pod.Labels)
			return err != nil || !matches
		})
		if len(policy.Spec.Ingress) == 0 { // other policies select most of the pods too
			selected = slices.DeleteFunc(selected, func(c probed) bool { return c.Component != Another })
		}
		if len(selected) == 0 {
			t.Errorf("policy %s selects no component", policy.Name)
		}
		for what, changed := range changes(policy) {
			f.Policies[i] = changed
			after := f.isolate(t)
			f.Policies[i] = policy
			for _, c := range selected {
				if cmp.Equal(f.results(before, c), f.results(after, c)) {
					t.Errorf("policy %s %s: no probe of %s has another result", policy.Name, what, c.Name)
				}
			}
		}
	}
}

// changes returns what a policy is with one change.
func changes(of *networkingv1.NetworkPolicy) map[string]*networkingv1.NetworkPolicy {
	all := map[string]*networkingv1.NetworkPolicy{}
	change := func(what string, with func(*networkingv1.NetworkPolicySpec)) {
		all[what] = of.DeepCopy()
		with(&all[what].Spec)
	}
	change("that selects no pod", func(s *networkingv1.NetworkPolicySpec) {
		s.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"no": "pod"}}
	})
	for r, rule := range of.Spec.Ingress {
		name := fmt.Sprintf("with rule %d ", r)
		change(name+"for all ports", func(s *networkingv1.NetworkPolicySpec) { s.Ingress[r].Ports = nil })
		for p := range rule.Ports {
			change(name+"without port "+rule.Ports[p].Port.String(), func(s *networkingv1.NetworkPolicySpec) {
				if s.Ingress[r].Ports = slices.Delete(s.Ingress[r].Ports, p, p+1); len(s.Ingress[r].Ports) == 0 {
					s.Ingress = slices.Delete(s.Ingress, r, r+1)
				}
			})
		}
		for p := range rule.From {
			change(fmt.Sprintf("%swithout peer %d", name, p), func(s *networkingv1.NetworkPolicySpec) {
				if s.Ingress[r].From = slices.Delete(s.Ingress[r].From, p, p+1); len(s.Ingress[r].From) == 0 {
					s.Ingress = slices.Delete(s.Ingress, r, r+1)
				}
			})
			change(fmt.Sprintf("%sand peer %d widened", name, p), func(s *networkingv1.NetworkPolicySpec) { widen(&s.Ingress[r], p) })
		}
	}
	return all
}

// widen lets a peer name all pods, or everyone if it names all pods already.
func widen(rule *networkingv1.NetworkPolicyIngressRule, p int) {
	peer := &rule.From[p]
	switch {
	case peer.PodSelector != nil && len(peer.PodSelector.MatchLabels)+len(peer.PodSelector.MatchExpressions) > 0:
		peer.PodSelector = &metav1.LabelSelector{}
	case peer.NamespaceSelector != nil && len(peer.NamespaceSelector.MatchLabels)+len(peer.NamespaceSelector.MatchExpressions) > 0:
		peer.NamespaceSelector = &metav1.LabelSelector{}
	default:
		rule.From = nil
	}
}
