package budget

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestWhichPodsABudgetCovers(t *testing.T) {
	web := Chain{{Group: "apps", Kind: "ReplicaSet", Name: "web-1"}, {Group: "apps", Kind: "Deployment", Name: "web"}}
	clones := Chain{{Group: "apps.kruise.io", Kind: "CloneSet", Name: "web"}}
	selecting := func(s v1alpha1.PodSelector) v1alpha1.PodUnavailableBudgetSpec {
		return v1alpha1.PodUnavailableBudgetSpec{Selector: &s}
	}
	target := func(apiVersion, kind, name string) v1alpha1.PodUnavailableBudgetSpec {
		return v1alpha1.PodUnavailableBudgetSpec{TargetRef: &v1alpha1.TargetRef{APIVersion: apiVersion, Kind: kind, Name: name}}
	}
	for _, tc := range []struct {
		name  string
		spec  v1alpha1.PodUnavailableBudgetSpec
		chain Chain
		want  bool
	}{
		{"a selector that matches", selecting(v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}}), nil, true},
		{"a selector that does not match", selecting(v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "db"}}), nil, false},
		{"an expression that matches", selecting(v1alpha1.PodSelector{MatchExpressions: []v1alpha1.PodSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}}}), nil, true},
		{"an empty selector selects all", selecting(v1alpha1.PodSelector{}), nil, true},
		{"no selector selects none", v1alpha1.PodUnavailableBudgetSpec{}, web, false},

		{"the Deployment", target("apps/v1", "Deployment", "web"), web, true},
		{"the Deployment without a version", target("apps", "Deployment", "web"), web, true},
		{"the Deployment of an old version", target("apps/v1beta2", "Deployment", "web"), web, true},
		{"the ReplicaSet", target("apps/v1", "ReplicaSet", "web-1"), web, true},
		{"another Deployment", target("apps/v1", "Deployment", "db"), web, false},
		{"another kind", target("apps/v1", "StatefulSet", "web"), web, false},
		{"another group", target("extensions", "Deployment", "web"), web, false},
		{"the CloneSet", target("apps.kruise.io", "CloneSet", "web"), clones, true},
		{"the CloneSet with a version", target("apps.kruise.io/v1alpha1", "CloneSet", "web"), clones, true},
		{"the core group", target("v1", "ReplicationController", "web"), Chain{{Kind: "ReplicationController", Name: "web"}}, true},
		{"an orphan", target("apps/v1", "Deployment", "web"), nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: tc.spec}
			scope, err := ScopeOf(b)
			if err != nil {
				t.Fatal(err)
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web"}}}
			if got := scope.Covers(p, tc.chain); got != tc.want {
				t.Errorf("got %v", got)
			}
			p.Namespace = "elsewhere"
			if scope.Covers(p, tc.chain) {
				t.Error("covers a pod of another namespace")
			}
		})
	}
}

func TestABudgetOfAKnativeServiceCoversThePodsOfTheRevisionsWithTraffic(t *testing.T) {
	below := func(group, kind, name string) Chain {
		return Chain{{Group: "apps", Kind: "ReplicaSet", Name: "web-1-deployment-5"}, {Group: "apps", Kind: "Deployment", Name: "web-1-deployment"}, {Group: group, Kind: kind, Name: name}}
	}
	revision := below("serving.knative.dev", "Revision", "web-1")
	readable := append(slices.Clone(revision), Owner{Group: "serving.knative.dev", Kind: "Configuration", Name: "web"}, Owner{Group: "serving.knative.dev", Kind: "Service", Name: "web"})
	for name, tc := range map[string]struct {
		apiVersion string
		chain      Chain
		traffic    []string
		want       bool
	}{
		"the only one":                        {"serving.knative.dev/v1", revision, []string{"web-1"}, true},
		"one of two":                          {"serving.knative.dev/v1", revision, []string{"web-1", "web-2"}, true},
		"without a version":                   {"serving.knative.dev", revision, []string{"web-1"}, true},
		"all its owners can be read":          {"serving.knative.dev/v1", readable, []string{"web-1"}, true},
		"another one has the traffic":         {"serving.knative.dev/v1", revision, []string{"web-2"}, false},
		"all its owners, but without traffic": {"serving.knative.dev/v1", readable, []string{"web-2"}, false},
		"none has traffic":                    {"serving.knative.dev/v1", revision, nil, false},
		"a Revision of another group":         {"serving.knative.dev/v1", below("example.com", "Revision", "web-1"), []string{"web-1"}, false},
		"a Deployment with that name":         {"serving.knative.dev/v1", Chain{{Group: "apps", Kind: "Deployment", Name: "web-1"}}, []string{"web-1"}, false},
		"an orphan":                           {"serving.knative.dev/v1", nil, []string{"web-1"}, false},
		"a Service of Kubernetes":             {"v1", revision, []string{"web-1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
			b.Spec.TargetRef = &v1alpha1.TargetRef{APIVersion: tc.apiVersion, Kind: "Service", Name: "web"}
			scope, err := ScopeOf(b)
			if err != nil {
				t.Fatal(err)
			}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
			if got := scope.WithTraffic(tc.traffic).Covers(p, tc.chain); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPodsAreBeingDeletedWithTheirTopmostControllerOrWithAPodAboveThem(t *testing.T) {
	workers, leaders := Owner{Group: "apps", Kind: "StatefulSet", Name: "group-0"}, Owner{Group: "apps", Kind: "StatefulSet", Name: "group"}
	set := Owner{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}
	terminating := func(o Owner) Owner {
		o.TerminatingOrGone = true
		return o
	}
	leader := Owner{Kind: "Pod"}
	for _, tc := range []struct {
		name  string
		chain Chain
		want  bool
	}{
		{"an orphan", nil, false},
		{"both exist", Chain{{Kind: "ReplicaSet"}, {Kind: "Deployment"}}, false},
		{"the Deployment is deleted", Chain{{Kind: "ReplicaSet"}, {Kind: "Deployment", TerminatingOrGone: true}}, true},
		{"both are deleted", Chain{{Kind: "ReplicaSet", TerminatingOrGone: true}}, true},
		{"only the ReplicaSet is deleted", Chain{{Kind: "ReplicaSet", TerminatingOrGone: true}, {Kind: "Deployment"}}, false},

		{"a group", Chain{workers, leader, leaders, set}, false},
		{"the leader of the group is deleted", Chain{workers, terminating(leader), leaders, set}, true},
		{"the leader and the workers are deleted", Chain{terminating(workers), terminating(leader), leaders, set}, true},
		{"only the StatefulSet of the workers is deleted", Chain{terminating(workers), leader, leaders, set}, false},
		{"a Pod of another group", Chain{workers, {Group: "example.com", Kind: "Pod", TerminatingOrGone: true}, set}, false},
	} {
		if got := tc.chain.BeingDeleted(); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

func TestWhichPodsAreAvailable(t *testing.T) {
	for _, tc := range []struct {
		name              string
		change            func(*corev1.Pod)
		available, counts bool
	}{
		{"running and ready", func(*corev1.Pod) {}, true, true},
		{"terminating", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }, false, false},
		{"not ready", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, false, false},
		{"without conditions", func(p *corev1.Pod) { p.Status.Conditions = nil }, false, false},
		{"pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, false, false},
		{"finished", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false, false},
		{"marked unavailable", func(p *corev1.Pod) { p.Labels = map[string]string{"unavailable-pod.kruise.io/test": ""} }, false, false},
		{"exempt", func(p *corev1.Pod) { p.Annotations = map[string]string{"pub.kruise.io/no-protect": "true"} }, true, false},
		{"not exempt", func(p *corev1.Pod) { p.Annotations = map[string]string{"pub.kruise.io/no-protect": "false"} }, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := pod("a", "1")
			tc.change(p)
			if Healthy(p) != tc.available || CountsAsAvailable(p) != tc.counts {
				t.Errorf("available %v, counts %v", Healthy(p), CountsAsAvailable(p))
			}
		})
	}
}

func TestWhichPodsMayBeCovered(t *testing.T) {
	owned := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", Controller: new(true)}}
	selecting := v1alpha1.PodUnavailableBudgetSpec{Selector: &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}}}
	targeting := v1alpha1.PodUnavailableBudgetSpec{TargetRef: &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	for name, tc := range map[string]struct {
		spec v1alpha1.PodUnavailableBudgetSpec
		pod  metav1.ObjectMeta
		want bool
	}{
		"a selected pod":                             {selecting, metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": "web"}}, true},
		"a pod that is not selected":                 {selecting, metav1.ObjectMeta{Namespace: "ns", OwnerReferences: owned}, false},
		"a pod with a controller, and a target":      {targeting, metav1.ObjectMeta{Namespace: "ns", OwnerReferences: owned}, true},
		"a pod without a controller, and a target":   {targeting, metav1.ObjectMeta{Namespace: "ns"}, false},
		"a pod of another namespace, and a target":   {targeting, metav1.ObjectMeta{Namespace: "other", OwnerReferences: owned}, false},
		"a selected pod of another namespace":        {selecting, metav1.ObjectMeta{Namespace: "other", Labels: map[string]string{"app": "web"}}, false},
		"a pod, and neither a selector nor a target": {v1alpha1.PodUnavailableBudgetSpec{}, metav1.ObjectMeta{Namespace: "ns", OwnerReferences: owned}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := ScopeOf(&v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: tc.spec})
			if got := s.MayCover(&corev1.Pod{ObjectMeta: tc.pod}); err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
