//go:build e2e

package permission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	names "github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// The kubelet cannot write an address to the status of the pod, so the grant is for the address
// that the CNI plugin announces.
func TestAPodIsGrantedItsSetsForItsAnnouncedAddressBeforeItsStatusHasOne(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() {
		if err := testCluster.IgnoreAnnouncements(context.Background(), "../../.."); err != nil {
			t.Error(err)
		}
	})
	if err := testCluster.UseAnnouncements(t.Context(), "../../.."); err != nil {
		t.Fatal(err)
	}
	n := newNamespace(t, enabled)
	allowAllSources(t)
	release := n.denyAddresses(t)
	n.mustApply(t, podWith("web", "web", "Always", "sleep 1000"))
	n.waitForReason(t, "web", names.ReasonPermissionGranted)
	p := n.get(t, "web")
	announced := p.Annotations[setup.Announcement]
	if held := grantsOf(t, p); len(names.IPs(p)) > 0 || announced == "" || len(held) != 1 || held[0].IP != announced {
		t.Errorf("the status has %v, announced is %q, grants %v", names.IPs(p), announced, held)
	}
	release()
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
	p = n.get(t, "web")
	if held := grantsOf(t, p); p.Status.PodIP != announced || len(held) != 1 || held[0].IP != announced {
		t.Errorf("the status has %s, announced is %q, grants %v", p.Status.PodIP, announced, held)
	}

	r := n.apply(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: forged, annotations: {stke.io/permission-set: web, %s: %q}},
 spec: {containers: [{name: app, image: busybox}]}}`, setup.Announcement, announced))
	if r.Code == 0 || !strings.Contains(r.Stderr, "only "+setup.Announcer+" sets the annotation "+setup.Announcement) {
		t.Errorf("a pod with a forged announcement: %s", r)
	}
}

// allowAllSources lets pods without an address in their status connect to the init-action-server.
// The tests enforce its NetworkPolicy by the addresses in the status of pods, as some network plugins do.
func allowAllSources(t *testing.T) {
	t.Helper()
	policies := testCluster.Kube.NetworkingV1().NetworkPolicies(setup.System)
	p, err := policies.Create(t.Context(), &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "init-action-server-all-sources-"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/component": "init-action-server"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: new(intstr.FromInt32(8443))}}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := policies.Delete(context.Background(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// denyAddresses denies addresses in the status of the namespace's pods until release is called.
func (n *namespace) denyAddresses(t *testing.T) (release func()) {
	t.Helper()
	const policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %[1]s},
 spec: {matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}},
 resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [pods/status]}]},
 validations: [{expression: "object.?status.?podIP.orValue('') == ''", message: no address}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %[1]s}, spec: {policyName: %[1]s, validationActions: [Deny]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {nodeSelector: {no: node}, containers: [{name: app, image: busybox}]}}`
	release = func() {
		// The context of the test may have ended.
		if err := setup.Kubectl(context.Background(), "delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", n.name, "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(release)
	n.mustApply(t, fmt.Sprintf(policy, n.name))
	eventually(t, shortTimeout, "addresses are denied", func() error {
		_, err := testCluster.Kube.CoreV1().Pods(n.name).Patch(t.Context(), "probe", types.MergePatchType,
			[]byte(`{"status":{"podIP":"10.9.9.9","podIPs":[{"ip":"10.9.9.9"}]}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		if err == nil {
			return errors.New("admitted")
		}
		if !strings.Contains(err.Error(), "no address") {
			return err
		}
		return nil
	})
	return release
}
