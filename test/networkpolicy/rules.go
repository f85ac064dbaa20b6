package networkpolicy

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// State has the objects from which the rules are derived.
type State struct {
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
}

// Isolated is a pod that a policy selects: it accepts only what its rules allow.
type Isolated struct {
	Address string
	Allowed []Rule
}

// Rule allows connections. From has addresses, nil means all; Ports are TCP ports, nil
// means all.
type Rule struct {
	From  []string
	Ports []int32
}

// Isolate returns the isolated pods. Fields that the policies of Breakwater do not use are
// an error, so that no policy is enforced in part.
func (s State) Isolate() ([]Isolated, error) {
	var all []Isolated
	for _, pod := range s.Pods {
		if !hasNetwork(pod) {
			continue
		}
		isolated := Isolated{Address: pod.Status.PodIP}
		selected := false
		for _, policy := range s.Policies {
			matches, err := selects(&policy.Spec.PodSelector, pod.Labels)
			if err != nil {
				return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			if policy.Namespace != pod.Namespace || !matches {
				continue
			}
			selected = true
			rules, err := s.rules(policy)
			if err != nil {
				return nil, fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
			}
			isolated.Allowed = append(isolated.Allowed, rules...)
		}
		if selected {
			all = append(all, isolated)
		}
	}
	slices.SortFunc(all, func(a, b Isolated) int { return strings.Compare(a.Address, b.Address) })
	return all, nil
}

func (s State) rules(policy *networkingv1.NetworkPolicy) ([]Rule, error) {
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		return nil, fmt.Errorf("policyTypes %v: only Ingress is enforced", policy.Spec.PolicyTypes)
	}
	var rules []Rule
	for _, ingress := range policy.Spec.Ingress {
		var rule Rule
		for _, port := range ingress.Ports {
			if port.Port == nil || port.Port.Type != intstr.Int || port.EndPort != nil || port.Protocol != nil && *port.Protocol != corev1.ProtocolTCP {
				return nil, fmt.Errorf("port %v: only numbers of TCP ports are enforced", port.Port)
			}
			rule.Ports = append(rule.Ports, port.Port.IntVal)
		}
		for _, peer := range ingress.From {
			addresses, err := s.addresses(policy.Namespace, peer)
			if err != nil {
				return nil, err
			}
			rule.From = append(rule.From, addresses...)
		}
		if len(ingress.From) > 0 && rule.From == nil {
			rule.From = []string{} // nobody
		}
		slices.Sort(rule.From)
		rule.From = slices.Compact(rule.From)
		rules = append(rules, rule)
	}
	return rules, nil
}

// addresses returns the addresses of the pods of a peer.
func (s State) addresses(namespace string, peer networkingv1.NetworkPolicyPeer) ([]string, error) {
	if peer.IPBlock != nil {
		return nil, fmt.Errorf("ipBlock %s is not enforced", peer.IPBlock.CIDR)
	}
	var all []string
	for _, pod := range s.Pods {
		inNamespace := pod.Namespace == namespace
		if peer.NamespaceSelector != nil {
			i := slices.IndexFunc(s.Namespaces, func(n *corev1.Namespace) bool { return n.Name == pod.Namespace })
			matches, err := false, error(nil)
			if i >= 0 {
				matches, err = selects(peer.NamespaceSelector, s.Namespaces[i].Labels)
			}
			if err != nil {
				return nil, err
			}
			inNamespace = matches
		}
		matches, err := selects(peer.PodSelector, pod.Labels)
		if err != nil {
			return nil, err
		}
		if inNamespace && matches && hasNetwork(pod) {
			all = append(all, pod.Status.PodIP)
		}
	}
	return all, nil
}

// hasNetwork reports whether a pod has an address of its own.
func hasNetwork(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && !pod.Spec.HostNetwork && !isSimulated(pod) &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// isSimulated reports whether a pod is for a simulated node. Nothing connects from its address.
// Tests create hundreds of such pods at once, and the rules would be replaced for each.
func isSimulated(pod *corev1.Pod) bool { return pod.Spec.NodeSelector["type"] == "kwok" }

// selects reports whether a selector matches labels; a missing selector matches all.
func selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, fmt.Errorf("read the selector: %w", err)
	}
	return parsed.Matches(labels.Set(set)), nil
}

// Ruleset returns the input of `nft -f` that replaces all rules of a table at once.
func Ruleset(table string, pods []Isolated) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "table %[1]s\ndelete table %[1]s\ntable %[1]s {\n", table)
	for i, pod := range pods {
		_, _ = fmt.Fprintf(&b, "  chain pod%d {\n", i)
		for _, rule := range pod.Allowed {
			if rule.From != nil && len(rule.From) == 0 {
				continue
			}
			var match string
			if rule.From != nil {
				match = "ip saddr { " + strings.Join(rule.From, ", ") + " } "
			}
			if rule.Ports != nil {
				match += "tcp dport { " + strings.Trim(strings.ReplaceAll(fmt.Sprint(rule.Ports), " ", ", "), "[]") + " } "
			}
			_, _ = fmt.Fprintf(&b, "    %saccept\n", match)
		}
		b.WriteString("    drop\n  }\n")
	}
	b.WriteString("  chain forward {\n    type filter hook forward priority filter; policy accept;\n    ct state established,related accept\n")
	for i, pod := range pods {
		_, _ = fmt.Fprintf(&b, "    ip daddr %s jump pod%d\n", pod.Address, i)
	}
	b.WriteString("  }\n}\n")
	return b.String()
}
