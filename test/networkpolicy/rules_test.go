package networkpolicy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func pod(namespace, app, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Status:     corev1.PodStatus{PodIP: address, Phase: corev1.PodRunning},
	}
}

func TestWhichConnectionsAPodAccepts(t *testing.T) {
	onNode, ended, simulated := pod("a", "node", "10.0.0.8"), pod("a", "ended", "10.0.0.9"), pod("a", "simulated", "10.0.0.10")
	simulated.Spec.NodeSelector = map[string]string{"type": "kwok"}
	onNode.Spec.HostNetwork, ended.Status.Phase = true, corev1.PodSucceeded
	pods := []*corev1.Pod{pod("a", "web", "10.0.0.1"), pod("a", "db", "10.0.0.2"), pod("b", "web", "10.0.0.3"), onNode, ended, simulated}
	namespaces := []*corev1.Namespace{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"name": "a"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"name": "b"}}},
	}
	for name, tc := range map[string]struct {
		specs []string
		want  []Isolated
		err   string
	}{
		"without a policy everything": {},
		"nothing is allowed": {
			[]string{`{podSelector: {}, policyTypes: [Ingress]}`},
			[]Isolated{{Address: "10.0.0.1"}, {Address: "10.0.0.2"}}, "",
		},
		"all sources to a port, added to another policy": {
			[]string{`{podSelector: {}, policyTypes: [Ingress]}`, `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{ports: [{port: 1}, {port: 2}]}]}`},
			[]Isolated{{Address: "10.0.0.1"}, {"10.0.0.2", []Rule{{Ports: []int32{1, 2}}}}}, "",
		},
		"a namespace with all its pods": {
			[]string{`{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {name: b}}}]}]}`},
			[]Isolated{{"10.0.0.2", []Rule{{From: []string{"10.0.0.3"}}}}}, "",
		},
		"pods of all namespaces": {
			[]string{`{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}]}]}`},
			[]Isolated{{"10.0.0.2", []Rule{{From: []string{"10.0.0.1", "10.0.0.3"}}}}}, "",
		},
		"pods of the own namespace": {
			[]string{`{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 1}]}]}`},
			[]Isolated{{"10.0.0.2", []Rule{{From: []string{"10.0.0.1"}, Ports: []int32{1}}}}}, "",
		},
		"a peer that does not exist is nobody": {
			[]string{`{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: no}}}]}]}`},
			[]Isolated{{"10.0.0.2", []Rule{{From: []string{}}}}}, "",
		},
		"egress": {[]string{`{podSelector: {}, policyTypes: [Egress]}`}, nil, "only Ingress"},
		"the name of a port": {
			[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: http}]}]}`}, nil, "only numbers",
		},
		"an address range": {
			[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}`}, nil, "ipBlock",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := State{Pods: pods, Namespaces: namespaces}
			for _, spec := range tc.specs {
				policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
				if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
					t.Fatal(err)
				}
				state.Policies = append(state.Policies, policy)
			}
			got, err := state.Isolate()
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheRulesetOfIsolatedPods(t *testing.T) {
	got := Ruleset("inet test", []Isolated{
		{"10.0.0.1", []Rule{{From: []string{"10.0.0.2", "10.0.0.3"}, Ports: []int32{1, 2}}, {From: []string{}}}},
		{"10.0.0.2", []Rule{{Ports: []int32{8443}}}},
	})
	const want = `table inet test
delete table inet test
table inet test {
  chain pod0 {
    ip saddr { 10.0.0.2, 10.0.0.3 } tcp dport { 1, 2 } accept
    drop
  }
  chain pod1 {
    tcp dport { 8443 } accept
    drop
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ip daddr 10.0.0.1 jump pod0
    ip daddr 10.0.0.2 jump pod1
  }
}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
