package server

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

const announcement = "cni.example.com/ips"

var announcedFrom = time.Unix(1<<30, 0)

func announcedSettings() settings.AnnouncedAddress {
	return settings.AnnouncedAddress{Annotation: announcement, Writer: "cni"}
}

// announcing is a pod without an address in its status, whose annotation has one.
func announcing(value string, change func(*corev1.Pod)) *corev1.Pod {
	return newPod(func(p *corev1.Pod) {
		p.CreationTimestamp = metav1.NewTime(announcedFrom)
		p.Annotations = map[string]string{announcement: value}
		p.Status.PodIPs = nil
		if change != nil {
			change(p)
		}
	})
}

func TestTheAnnouncedAddressesCountOnlyIfNothingContradictsThem(t *testing.T) {
	for name, tc := range map[string]struct {
		value  string
		pod    func(*corev1.Pod)
		off    bool
		source string
		want   []string
	}{
		"announced":                              {value: "10.0.0.1", want: []string{"10.0.0.1"}},
		"announced with another one":             {value: "fd00::1/128,10.0.0.1/32", want: []string{"10.0.0.1", "fd00::1"}},
		"another source":                         {value: "10.0.0.1", source: "10.0.0.2"},
		"the setting is off":                     {value: "10.0.0.1", off: true},
		"no annotation":                          {pod: func(p *corev1.Pod) { p.Annotations = nil }},
		"another annotation":                     {pod: func(p *corev1.Pod) { p.Annotations = map[string]string{"cni.example.com/ip": "10.0.0.1"} }},
		"no address":                             {value: "web"},
		"a network":                              {value: "10.0.0.0/24"},
		"not scheduled":                          {value: "10.0.0.1", pod: func(p *corev1.Pod) { p.Spec.NodeName = "" }},
		"hostNetwork":                            {value: "10.0.0.1", pod: func(p *corev1.Pod) { p.Spec.HostNetwork = true }},
		"created before the policy applied":      {value: "10.0.0.1", pod: func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(announcedFrom.Add(-time.Second)) }},
		"the status has the same address":        {value: "10.0.0.1", pod: withStatus("10.0.0.1"), want: []string{"10.0.0.1"}},
		"the status has another address":         {value: "10.0.0.1", pod: withStatus("10.0.0.9"), want: []string{"10.0.0.9"}},
		"the status has one more address":        {value: "10.0.0.1", pod: withStatus("fd00::1", "10.0.0.1"), want: []string{"10.0.0.1", "fd00::1"}},
		"the former field has another address":   {value: "10.0.0.1", pod: func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.9" }, want: []string{"10.0.0.9"}},
		"the status has an address, setting off": {value: "10.0.0.1", pod: withStatus("10.0.0.9"), off: true, want: []string{"10.0.0.9"}},
	} {
		policy, binding := protectingPolicy(t)
		s := &server{Options: Options{Settings: func() settings.Settings {
			if tc.off {
				return settings.Default()
			}
			return settings.Settings{AnnouncedAddress: announcedSettings()}
		}}, announcements: &announcementGuard{kube: fake.NewClientset(policy, binding), clock: clock.RealClock{}}}
		source := "10.0.0.1"
		if tc.source != "" {
			source = tc.source
		}
		if diff := cmp.Diff(tc.want, s.currentIPs(t.Context(), announcing(tc.value, tc.pod), source)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// protectingPolicy returns the policy of the sample and its binding for announcedSettings, as the API
// server returns them. They protect all pods from announcedFrom on.
func protectingPolicy(t *testing.T) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	raw, err := os.ReadFile("../../../config/samples/announced-address.yaml")
	if err != nil {
		t.Fatal(err)
	}
	first, second, _ := bytes.Cut(raw, []byte("\n---\n"))
	p, b := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := errors.Join(yaml.UnmarshalStrict(first, p), yaml.UnmarshalStrict(second, b)); err != nil {
		t.Fatal(err)
	}
	for i, v := range p.Spec.Variables {
		value := map[string]string{"annotation": announcement, "writer": "cni"}[v.Name]
		p.Spec.Variables[i].Expression = "'" + value + "'"
	}
	c := p.Spec.MatchConstraints
	c.MatchPolicy, c.NamespaceSelector, c.ObjectSelector = new(admissionregistrationv1.Equivalent), &metav1.LabelSelector{}, &metav1.LabelSelector{}
	for _, o := range []metav1.Object{p, b} {
		o.SetGeneration(1)
		o.SetCreationTimestamp(metav1.NewTime(announcedFrom.Add(-settings.AnnouncedAddressDelay)))
	}
	return p, b
}

// newAnnouncingFixture returns a fixture with the policy.
func newAnnouncingFixture(t *testing.T, p *corev1.Pod) *fixture {
	t.Helper()
	w := newFixture(t, p)
	policy, binding := protectingPolicy(t)
	for _, o := range []runtime.Object{policy, binding} {
		if err := w.kube.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestAnAnnouncedAddressIsUsedOnlyIfThePolicyProtectsIt(t *testing.T) {
	type policy = admissionregistrationv1.ValidatingAdmissionPolicy
	type binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	type resources = admissionregistrationv1.MatchResources
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, tc := range map[string]struct {
		change func(*policy, *binding)
		absent string
		want   bool
	}{
		"as in the sample": {want: true},
		"other messages": {change: func(p *policy, _ *binding) {
			p.Spec.Validations[0] = admissionregistrationv1.Validation{Expression: p.Spec.Validations[0].Expression}
		}, want: true},
		"other labels":            {change: func(p *policy, b *binding) { p.Labels, b.Labels = nil, map[string]string{"a": "b"} }, want: true},
		"failurePolicy Ignore":    {change: func(p *policy, _ *binding) { p.Spec.FailurePolicy = new(admissionregistrationv1.Ignore) }},
		"the policy was changed":  {change: func(p *policy, _ *binding) { p.Generation = 2 }},
		"the binding was changed": {change: func(_ *policy, b *binding) { b.Generation = 2 }},
		"another annotation":      {change: func(p *policy, _ *binding) { p.Spec.Variables[0].Expression = "'cni.example.com/ip'" }},
		"another writer":          {change: func(p *policy, _ *binding) { p.Spec.Variables[1].Expression = "request.userInfo.username" }},
		"no variables":            {change: func(p *policy, _ *binding) { p.Spec.Variables = nil }},
		"one more variable":       {change: func(p *policy, _ *binding) { p.Spec.Variables = append(p.Spec.Variables, p.Spec.Variables[1]) }},
		"another expression":      {change: func(p *policy, _ *binding) { p.Spec.Validations[0].Expression += " || true" }},
		"no validation":           {change: func(p *policy, _ *binding) { p.Spec.Validations = nil }},
		"a parameter":             {change: func(p *policy, _ *binding) { p.Spec.ParamKind = &admissionregistrationv1.ParamKind{Kind: "ConfigMap"} }},
		"a condition": {change: func(p *policy, _ *binding) {
			p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "no", Expression: "false"}}
		}},
		"no constraints": {change: func(p *policy, _ *binding) { p.Spec.MatchConstraints = nil }},
		"only created pods": {change: func(p *policy, _ *binding) {
			p.Spec.MatchConstraints.ResourceRules[0].Operations = []admissionregistrationv1.OperationType{"CREATE"}
		}},
		"without the status": {change: func(p *policy, _ *binding) { p.Spec.MatchConstraints.ResourceRules[0].Resources[1] = "pods" }},
		"without bindings": {change: func(p *policy, _ *binding) {
			p.Spec.MatchConstraints.ResourceRules = p.Spec.MatchConstraints.ResourceRules[:1]
		}},
		"without some resources": {change: func(p *policy, _ *binding) {
			p.Spec.MatchConstraints.ExcludeResourceRules = p.Spec.MatchConstraints.ResourceRules
		}},
		"some names":                  {change: func(p *policy, _ *binding) { p.Spec.MatchConstraints.ResourceRules[0].ResourceNames = []string{"a"} }},
		"the policy, some namespaces": {change: func(p *policy, _ *binding) { p.Spec.MatchConstraints.NamespaceSelector = selector }},
		"the policy, some objects":    {change: func(p *policy, _ *binding) { p.Spec.MatchConstraints.ObjectSelector = selector }},
		"it only warns": {change: func(_ *policy, b *binding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		}},
		"the binding, some namespaces": {change: func(_ *policy, b *binding) { b.Spec.MatchResources = &resources{NamespaceSelector: selector} }},
		"another policy":               {change: func(_ *policy, b *binding) { b.Spec.PolicyName = "other" }},
		"a reference to a parameter":   {change: func(_ *policy, b *binding) { b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "other"} }},
		"the policy is newer":          {change: func(p *policy, _ *binding) { p.CreationTimestamp = metav1.NewTime(announcedFrom) }},
		"the binding is newer":         {change: func(_ *policy, b *binding) { b.CreationTimestamp = metav1.NewTime(announcedFrom) }},
		"no policy":                    {absent: "validatingadmissionpolicies"},
		"no binding":                   {absent: "validatingadmissionpolicybindings"},
	} {
		p, b := protectingPolicy(t)
		if tc.change != nil {
			tc.change(p, b)
		}
		kube := fake.NewClientset(p, b)
		if tc.absent != "" {
			kube.PrependReactor("get", tc.absent, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrs.NewNotFound(schema.GroupResource{Resource: tc.absent}, announcementPolicy)
			})
		}
		g := &announcementGuard{kube: kube, clock: clocktesting.NewFakePassiveClock(announcedFrom)}
		for range 2 { // the second answer is that of the first
			if got := g.protects(t.Context(), announcedSettings(), announcedFrom); got != tc.want {
				t.Errorf("%s: protected %t, want %t", name, got, tc.want)
			}
		}
		if reads := len(kube.Actions()); reads > 2 {
			t.Errorf("%s: %d reads, want one of each object", name, reads)
		}
	}
}

func TestAPolicyThatIsDeletedOrIsForOtherSettingsProtectsNoAnnouncement(t *testing.T) {
	p, b := protectingPolicy(t)
	kube, clock := fake.NewClientset(p, b), clocktesting.NewFakePassiveClock(announcedFrom)
	g := &announcementGuard{kube: kube, clock: clock}
	expect := func(step string, a settings.AnnouncedAddress, created time.Time, want bool) {
		t.Helper()
		if got := g.protects(t.Context(), a, created); got != want {
			t.Errorf("%s: protected %t, want %t", step, got, want)
		}
	}
	policies := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	expect("at first", announcedSettings(), announcedFrom, true)
	other := announcedSettings()
	other.Writer = "cni2"
	expect("for other settings", other, announcedFrom, false)
	expect("for the former settings", announcedSettings(), announcedFrom, true)
	if err := policies.Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(announcedFrom.Add(announcementGuardTTL))
	expect("the policy is deleted", announcedSettings(), announcedFrom, false)
	p.CreationTimestamp = metav1.NewTime(announcedFrom.Add(time.Hour))
	if _, err := policies.Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(announcedFrom.Add(time.Hour))
	expect("it is created again, a former pod", announcedSettings(), announcedFrom.Add(time.Hour), false)
	expect("it is created again, a later pod", announcedSettings(), announcedFrom.Add(time.Hour+settings.AnnouncedAddressDelay), true)
}

func withStatus(ips ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

func TestAPodIsGrantedItsSetsForItsAnnouncedAddress(t *testing.T) {
	w := newAnnouncingFixture(t, announcing("127.0.0.1", nil))
	w.settings.AnnouncedAddress = announcedSettings()
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Fatalf("%+v", a)
	}
	if r := w.centre.requests; len(r) != 1 || !slices.Equal(r[0].PodIPs, []string{"127.0.0.1"}) {
		t.Errorf("requested %+v", r)
	}
}

// The annotation may have the address of a previous sandbox.
func TestAnAnnouncementOfAnotherAddressIsIgnoredUntilTheStatusHasOne(t *testing.T) {
	w := newAnnouncingFixture(t, announcing("10.0.0.7", nil))
	w.settings.AnnouncedAddress = announcedSettings()
	if status, a := w.authorize("pod", orders); status != http.StatusServiceUnavailable || a.Reason != podmeta.ReasonWaitingForPodIP {
		t.Errorf("without a status: %d %+v", status, a)
	}
	w.updatePod(announcing("10.0.0.7", withStatus("127.0.0.1")))
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Errorf("%+v", a)
	}
	if r := w.centre.requests; len(r) != 1 || !slices.Equal(r[0].PodIPs, []string{"127.0.0.1"}) {
		t.Errorf("requested %+v, want one request for the address in the status", r)
	}
}

func TestAStatusThatDiffersFromTheAnnouncedAddressRevokesItsGrants(t *testing.T) {
	w := newAnnouncingFixture(t, announcing("127.0.0.1", nil))
	w.settings.AnnouncedAddress = announcedSettings()
	w.centre.decide = func(r api.ApplicationRequest, _ int) (api.State, error) {
		if slices.Equal(r.PodIPs, []string{"127.0.0.1"}) {
			return api.Applying, nil
		}
		return api.Granted, nil
	}
	answers := w.authorizeAsync(t.Context())
	w.waitForReason(podmeta.ReasonPermissionApplying)
	reported := announcing("127.0.0.1", withStatus("127.0.0.9"))
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), reported, "default"); err != nil {
		t.Fatal(err)
	}
	w.updatePod(reported)
	if a := waitForAnswer(t, answers); a.State != protocol.Waiting || a.Reason != reasonSourceAddressMismatch {
		t.Fatalf("%+v", a)
	}
	w.source = "127.0.0.9"
	if _, a := w.authorize("pod", orders); a.State != protocol.Granted {
		t.Fatalf("%+v", a)
	}
	want := api.RevokeRequest{Cluster: w.settings.Cluster, PodUID: "uid", KeepIPs: []string{"127.0.0.9"}}
	if len(w.centre.revoked) != 1 || asJSON(t, w.centre.revoked[0]) != asJSON(t, want) {
		t.Errorf("revoked %+v, want %+v", w.centre.revoked, want)
	}
	if last := w.centre.requests[len(w.centre.requests)-1]; !slices.Equal(last.PodIPs, []string{"127.0.0.9"}) {
		t.Errorf("the last request is for %v", last.PodIPs)
	}
}

func TestATrimmedPodKeepsOnlyAnAnnouncementThatTheServerMayUse(t *testing.T) {
	store := settings.NewStore()
	store.Update(t.Context(), &corev1.ConfigMap{Data: map[string]string{settings.KeyAnnouncedAddressAnnotation: announcement, settings.KeyAnnouncedAddressWriter: "cni"}})
	for name, tc := range map[string]struct {
		store *settings.Store
		pod   *corev1.Pod
		want  map[string]string
	}{
		"announced":             {store, announcing("10.0.0.1", func(p *corev1.Pod) { p.Annotations["large"] = "x" }), map[string]string{announcement: "10.0.0.1"}},
		"no address":            {store, announcing(strings.Repeat("x", 1<<18), nil), nil},
		"the status has one":    {store, announcing("10.0.0.1", withStatus("10.0.0.1")), nil},
		"the setting is off":    {settings.NewStore(), announcing("10.0.0.1", nil), nil},
		"off, and an empty key": {settings.NewStore(), announcing("", func(p *corev1.Pod) { p.Annotations[""] = "10.0.0.1" }), nil},
	} {
		trimmed, err := trimPod(tc.store)(tc.pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, trimmed.(*corev1.Pod).Annotations); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
