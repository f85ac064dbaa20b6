package generatedbudget

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
	apiworkload "github.com/breakwater-dev/breakwater/internal/workload"
)

// kind is a kind of workload for which budgets are generated.
type kind struct {
	// id names it in keys and in names of generated budgets, because there are two
	// kinds StatefulSet.
	id          string
	group, kind string
	resource    string
	// versions are the versions that can be read, newest first; none for a built-in
	// kind.
	versions []version
	// podLabel has the name of the workload on its pods, if the workload has no selector.
	podLabel string
	// readsTemplate: the annotations of its template apply to the workload, below its own.
	readsTemplate bool
}

// version is a version of a kind, with the paths of maxUnavailable in the strategy;
// the first one that is set counts.
type version struct {
	name  string
	paths [][]string
}

var (
	deployment  = kind{id: "Deployment", group: "apps", kind: "Deployment"}
	statefulSet = kind{id: "StatefulSet", group: "apps", kind: "StatefulSet"}

	flat    = []string{"spec", "updateStrategy", "maxUnavailable"}
	rolling = []string{"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}

	cloneSet = kind{id: "CloneSet", group: kruise, kind: "CloneSet", resource: "clonesets", versions: []version{
		{"v1beta1", [][]string{rolling, flat}},
		{"v1alpha1", [][]string{flat}},
	}}
	advancedStatefulSet = kind{id: "AdvancedStatefulSet", group: kruise, kind: "StatefulSet", resource: "statefulsets", versions: []version{
		{"v1beta1", [][]string{rolling}},
		{"v1alpha1", [][]string{rolling}},
	}}
	// A Knative Service has no such field: Serving adds a Revision before it removes another.
	// Before it had generated budgets, the annotations of its template generated those of its Revisions.
	knativeService = kind{id: "KnativeService", group: serving, kind: "Service", resource: "services",
		podLabel: serving + "/service", readsTemplate: true, versions: []version{{name: "v1"}}}
	// A UnitedDeployment has no such field; the field of its only template counts.
	unitedDeployment = kind{id: "UnitedDeployment", group: kruise, kind: "UnitedDeployment", resource: "uniteddeployments", versions: []version{
		{"v1alpha1", [][]string{
			inTemplate("deploymentTemplate", "strategy", "rollingUpdate"),
			inTemplate("statefulSetTemplate", "updateStrategy", "rollingUpdate"),
			inTemplate("advancedStatefulSetTemplate", "updateStrategy", "rollingUpdate"),
			inTemplate("cloneSetTemplate", "updateStrategy"),
		}},
	}}
)

// kruise and serving are the API groups of OpenKruise's workloads and of Knative Serving.
const (
	kruise  = "apps.kruise.io"
	serving = "serving.knative.dev"
)

func inTemplate(template string, path ...string) []string {
	return append(append([]string{"spec", "template", template, "spec"}, path...), "maxUnavailable")
}

// customKinds are the kinds of CRDs.
func customKinds() []kind {
	return []kind{cloneSet, advancedStatefulSet, unitedDeployment, knativeService}
}

func kinds() []kind { return append([]kind{deployment, statefulSet}, customKinds()...) }

// kindOf returns the kind of an owner reference.
func kindOf(apiVersion, name string) (kind, bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.group == gv.Group && k.kind == name })
	if err != nil || i < 0 {
		return kind{}, false
	}
	return all[i], true
}

func (k kind) groupKind() schema.GroupKind { return schema.GroupKind{Group: k.group, Kind: k.kind} }

// read returns the workload of an object, reduced to the cached fields.
func (k kind) read(v version, u *unstructured.Unstructured) *workload {
	w := &workload{
		kind: k, apiVersion: k.group + "/" + v.name,
		Object: &metav1.ObjectMeta{
			Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
			DeletionTimestamp: u.GetDeletionTimestamp(), OwnerReferences: u.GetOwnerReferences(), Annotations: generatedbudget.FilterAnnotations(u.GetAnnotations()),
		},
	}
	w.selector, _ = apiworkload.PodSelector(u.Object) // an invalid one is none
	w.podLabels = templateLabels(u)
	if k.podLabel != "" {
		own := map[string]string{k.podLabel: u.GetName()}
		w.selector, w.podLabels = &metav1.LabelSelector{MatchLabels: own}, labels.Merge(w.podLabels, own)
	}
	if k.readsTemplate {
		annotations, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "annotations") // another type is no value
		w.template = generatedbudget.FilterAnnotations(annotations)
	}
	for _, path := range v.paths {
		switch value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...); value := value.(type) {
		case int64:
			w.strategyMaxUnavailable = &intstr.IntOrString{Type: intstr.Int, IntVal: int32(min(value, 1<<30))}
		case string:
			w.strategyMaxUnavailable = &intstr.IntOrString{Type: intstr.String, StrVal: value}
		default:
			continue
		}
		break
	}
	return w
}

// templateLabels returns the labels of the pod template, which a UnitedDeployment has in the template of its
// subsets.
func templateLabels(u *unstructured.Unstructured) map[string]string {
	for _, path := range [][]string{
		{"spec", "template"},
		{"spec", "template", "deploymentTemplate", "spec", "template"},
		{"spec", "template", "statefulSetTemplate", "spec", "template"},
		{"spec", "template", "advancedStatefulSetTemplate", "spec", "template"},
		{"spec", "template", "cloneSetTemplate", "spec", "template"},
	} {
		if found, ok, _ := unstructured.NestedStringMap(u.Object, append(path, "metadata", "labels")...); ok { // another type is no value
			return found
		}
	}
	return nil
}
