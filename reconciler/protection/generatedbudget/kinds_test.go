package generatedbudget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

// object returns an object of the kind with the annotation generate-pub.
func object(k kind, version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": k.group + "/" + version, "kind": k.kind,
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": "uid-" + name,
			"annotations": map[string]any{generatedbudget.PUBAnnotation: "true", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
		"spec": spec,
	}}
}

// within returns a map with the value at the path.
func within(value any, path ...string) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: value}
}

func TestMaxUnavailableIsReadFromTheStrategyOfEachKind(t *testing.T) {
	two, part := intstr.FromInt32(2), intstr.FromString("20%")
	for _, tc := range []struct {
		name    string
		kind    kind
		version string
		spec    map[string]any
		want    *intstr.IntOrString
	}{
		{"CloneSet", cloneSet, "v1alpha1", within(int64(2), "updateStrategy", "maxUnavailable"), &two},
		{"CloneSet, a per cent", cloneSet, "v1alpha1", within("20%", "updateStrategy", "maxUnavailable"), &part},
		{"CloneSet, not its path", cloneSet, "v1alpha1", within(int64(2), "updateStrategy", "rollingUpdate", "maxUnavailable"), nil},
		{"CloneSet v1beta1", cloneSet, "v1beta1", within(int64(2), "updateStrategy", "rollingUpdate", "maxUnavailable"), &two},
		{"CloneSet v1beta1, as before", cloneSet, "v1beta1", within(int64(2), "updateStrategy", "maxUnavailable"), &two},
		{"Advanced StatefulSet", advancedStatefulSet, "v1beta1", within(int64(2), "updateStrategy", "rollingUpdate", "maxUnavailable"), &two},
		{"Advanced StatefulSet v1alpha1", advancedStatefulSet, "v1alpha1", within("20%", "updateStrategy", "rollingUpdate", "maxUnavailable"), &part},
		{"Advanced StatefulSet, not its path", advancedStatefulSet, "v1beta1", within(int64(2), "updateStrategy", "maxUnavailable"), nil},
		{"UnitedDeployment of Deployments", unitedDeployment, "v1alpha1",
			within(int64(2), "template", "deploymentTemplate", "spec", "strategy", "rollingUpdate", "maxUnavailable"), &two},
		{"UnitedDeployment of StatefulSets", unitedDeployment, "v1alpha1",
			within(int64(2), "template", "statefulSetTemplate", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), &two},
		{"UnitedDeployment of Advanced StatefulSets", unitedDeployment, "v1alpha1",
			within("20%", "template", "advancedStatefulSetTemplate", "spec", "updateStrategy", "rollingUpdate", "maxUnavailable"), &part},
		{"UnitedDeployment of CloneSets", unitedDeployment, "v1alpha1",
			within(int64(2), "template", "cloneSetTemplate", "spec", "updateStrategy", "maxUnavailable"), &two},
		{"no strategy", cloneSet, "v1alpha1", map[string]any{}, nil},
		{"an invalid strategy", cloneSet, "v1alpha1", map[string]any{"updateStrategy": "fast"}, nil},
		{"Knative Service", knativeService, "v1", within(int64(2), "template", "spec", "containerConcurrency"), nil},
		{"an invalid value", cloneSet, "v1alpha1", within(true, "updateStrategy", "maxUnavailable"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, v := range tc.kind.versions {
				if v.name != tc.version {
					continue
				}
				if diff := cmp.Diff(tc.want, tc.kind.read(v, object(tc.kind, tc.version, "web", tc.spec)).strategyMaxUnavailable); diff != "" {
					t.Error(diff)
				}
				return
			}
			t.Errorf("%s has no version %s", tc.kind.id, tc.version)
		})
	}
}

func TestACachedWorkloadIsTrimmed(t *testing.T) {
	u := object(cloneSet, "v1alpha1", "web", map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": map[string]any{"spec": map[string]any{}}})
	w := cloneSet.read(cloneSet.versions[1], u)
	if w.GetName() != "web" || w.GetNamespace() != "ns" || w.GetUID() != "uid-web" || w.apiVersion != "apps.kruise.io/v1alpha1" {
		t.Errorf("%+v", w)
	}
	if diff := cmp.Diff(map[string]string{generatedbudget.PUBAnnotation: "true"}, w.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, w.selector); diff != "" {
		t.Error(diff)
	}
}

func TestTheLabelsOfPodsAreReadFromTheTemplateOfEachKind(t *testing.T) {
	labels := map[string]any{"app": "web"}
	for _, tc := range []struct {
		name string
		kind kind
		path []string
		want map[string]string
	}{
		{"CloneSet", cloneSet, []string{"template"}, map[string]string{"app": "web"}},
		{"Advanced StatefulSet", advancedStatefulSet, []string{"template"}, map[string]string{"app": "web"}},
		{"Knative Service", knativeService, []string{"template"}, map[string]string{"app": "web", "serving.knative.dev/service": "web"}},
		{"UnitedDeployment of Deployments", unitedDeployment, []string{"template", "deploymentTemplate", "spec", "template"}, map[string]string{"app": "web"}},
		{"UnitedDeployment of StatefulSets", unitedDeployment, []string{"template", "statefulSetTemplate", "spec", "template"}, map[string]string{"app": "web"}},
		{"UnitedDeployment of Advanced StatefulSets", unitedDeployment, []string{"template", "advancedStatefulSetTemplate", "spec", "template"}, map[string]string{"app": "web"}},
		{"UnitedDeployment of CloneSets", unitedDeployment, []string{"template", "cloneSetTemplate", "spec", "template"}, map[string]string{"app": "web"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := tc.kind.versions[0]
			u := object(tc.kind, v.name, "web", within(labels, append(tc.path, "metadata", "labels")...))
			if diff := cmp.Diff(tc.want, tc.kind.read(v, u).podLabels); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThePodsOfAKnativeServiceAreSelectedByItsName(t *testing.T) {
	w := knativeService.read(knativeService.versions[0], object(knativeService, "v1", "web", map[string]any{}))
	if diff := cmp.Diff(&metav1.LabelSelector{MatchLabels: map[string]string{"serving.knative.dev/service": "web"}}, w.selector); diff != "" {
		t.Error(diff)
	}
	if got := w.budgetName(); got != "knativeservice-web" {
		t.Errorf("its budgets have the name %s", got)
	}
}

func TestAKindIsFoundByGroupInAnyVersion(t *testing.T) {
	for _, tc := range []struct{ apiVersion, kind, want string }{
		{"apps/v1", "Deployment", "Deployment"},
		{"apps/v1", "StatefulSet", "StatefulSet"},
		{"apps.kruise.io/v1beta1", "StatefulSet", "AdvancedStatefulSet"},
		{"apps.kruise.io/v1alpha1", "StatefulSet", "AdvancedStatefulSet"},
		{"apps.kruise.io/v1alpha1", "CloneSet", "CloneSet"},
		{"apps.kruise.io/v1alpha1", "UnitedDeployment", "UnitedDeployment"},
		{"serving.knative.dev/v1", "Service", "KnativeService"},
		{"v1", "Service", ""},
		{"serving.knative.dev/v1", "Revision", ""},
		{"apps/v1", "DaemonSet", ""},
		{"a/b/c", "Deployment", ""},
	} {
		if k, ok := kindOf(tc.apiVersion, tc.kind); k.id != tc.want || ok != (tc.want != "") {
			t.Errorf("%s %s: kind %q", tc.apiVersion, tc.kind, k.id)
		}
	}
	words := map[string]bool{}
	for _, k := range kinds() {
		back, namespace, name, err := parseKey(keyOf(k, "ns", "web").String())
		if err != nil || back.id != k.id || namespace != "ns" || name != "web" || words[k.id] {
			t.Errorf("%s: %v %s %s %v", k.id, back, namespace, name, err)
		}
		words[k.id] = true
	}
	for _, key := range []string{"", "ns/web", "ns/Rocket/web"} {
		if _, _, _, err := parseKey(key); err == nil {
			t.Errorf("%q was parsed as a key", key)
		}
	}
}

func TestWorkloadsOfOneNameHaveDifferentBudgetNames(t *testing.T) {
	named := &metav1.ObjectMeta{Name: "web"}
	if a, b := (&workload{Object: named, kind: statefulSet}).budgetName(), (&workload{Object: named, kind: advancedStatefulSet}).budgetName(); a == b {
		t.Errorf("both names are %s", a)
	}
	if got := (&workload{Object: new(metav1.ObjectMeta{Name: "web"}), kind: cloneSet}).budgetName(); got != "cloneset-web" {
		t.Errorf("got %s", got)
	}
}
