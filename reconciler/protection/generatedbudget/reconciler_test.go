package generatedbudget

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubefake "k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

// ofRevision makes a Deployment that of a Revision of the Knative Service web.
func ofRevision(d *appsv1.Deployment) {
	d.Labels = map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "uid-service"}
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", UID: "uid-revision", Controller: new(true)}}
}

// service returns the Knative Service web with the annotations on itself and on its template.
func service(own, template map[string]string) *workload {
	toAny := func(from map[string]string) map[string]any {
		to := map[string]any{}
		for key, value := range from {
			to[key] = value
		}
		return to
	}
	u := object(knativeService, "v1", "web", within(toAny(template), "template", "metadata", "annotations"))
	u.Object["metadata"].(map[string]any)["annotations"] = toAny(own)
	return knativeService.read(knativeService.versions[0], u)
}

// writes reconciles the workload web of a kind. It returns the writes (apply, replace or delete, the
// resource, the limit or the merge patch), and the number of Events.
func writes(t *testing.T, of kind, change func(*appsv1.Deployment), annotations map[string]string, namespace map[string]string, exists ...any) (done []string, events int) {
	t.Helper()
	index := map[string]cache.Indexer{}
	for _, kind := range []string{"ns", "d", "s", "pub", "pdb"} {
		index[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	add := func(kind string, o any) {
		if err := index[kind].Add(o); err != nil {
			t.Fatal(err)
		}
	}
	add("ns", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: namespace}})
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-web", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(2))}}},
	}
	d.Spec.Template.Labels = map[string]string{"app": "web", "tier": "front"}
	if change != nil {
		change(d)
	}
	add("d", d)
	custom := &customWorkloads{}
	for _, o := range exists {
		switch o := o.(type) {
		case *workload:
			informer := cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{})
			if err := informer.GetIndexer().Add(o); err != nil {
				t.Fatal(err)
			}
			custom.Put(o.kind.groupKind(), servedKind{}, informer)
		case *policyv1.PodDisruptionBudget:
			add("pdb", o)
		case *appsv1.Deployment:
			add("d", o)
		default:
			add("pub", o)
		}
	}
	kube, policies, recorder := kubefake.NewClientset(), fake.NewSimpleClientset(), record.NewFakeRecorder(5)
	note := func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch a := action.(type) {
		case clienttesting.PatchAction:
			if a.GetPatchType() == types.MergePatchType {
				done = append(done, strings.Join([]string{"replace", a.GetResource().Resource, a.GetName(), string(a.GetPatch())}, " "))
				break
			}
			var d document
			if err := json.Unmarshal(a.GetPatch(), &d); err != nil {
				t.Fatal(err)
			}
			done = append(done, strings.Join([]string{"apply", a.GetResource().Resource, a.GetName(), limit(d.Spec)}, " "))
		case clienttesting.DeleteAction:
			done = append(done, "delete "+a.GetResource().Resource+" "+a.GetName())
		}
		return true, nil, nil
	}
	kube.PrependReactor("*", "*", note)
	policies.PrependReactor("*", "*", note)
	r := &Reconciler{
		workloads: workloads{appslisters.NewDeploymentLister(index["d"]), appslisters.NewStatefulSetLister(index["s"]), custom},
		defaults: func() generatedbudget.Limits {
			return generatedbudget.Limits{MaxUnavailable: new(intstr.FromString("25%"))}
		},
		namespaces: corelisters.NewNamespaceLister(index["ns"]), budgets: listers.NewPodUnavailableBudgetLister(index["pub"]),
		pdbs: policylisters.NewPodDisruptionBudgetLister(index["pdb"]), kube: kube, policies: policies, recorder: recorder,
	}
	if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), keyOf(of, "ns", "web").String()); err != nil {
		t.Fatal(err)
	}
	return done, len(recorder.Events)
}

func limit(s spec) string {
	if s.MaxUnavailable != nil {
		return "max " + s.MaxUnavailable.String()
	}
	return "min " + s.MinAvailable.String()
}

func owned(uid types.UID) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "deployment-web", UID: "uid-generated"}
	if uid != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: uid, Controller: new(true)}}
	}
	return m
}

func pub(uid types.UID, most int32) *v1alpha1.PodUnavailableBudget {
	return &v1alpha1.PodUnavailableBudget{ObjectMeta: owned(uid), Spec: v1alpha1.PodUnavailableBudgetSpec{
		TargetRef: &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxUnavailable: new(intstr.FromInt32(most))}}
}

func labeled(b *v1alpha1.PodUnavailableBudget) *v1alpha1.PodUnavailableBudget {
	b.Labels = map[string]string{"app.kubernetes.io/managed-by": "breakwater"}
	return b
}

// orphaned returns a generated budget whose Deployment was deleted with --cascade=orphan.
func orphaned(most int32) *v1alpha1.PodUnavailableBudget { return labeled(pub("", most)) }

func TestGeneratedBudgets(t *testing.T) {
	on := map[string]string{generatedbudget.PUBAnnotation: "true"}
	for _, tc := range []struct {
		name                   string
		annotations, namespace map[string]string
		exists                 []any
		want                   []string
		events                 int
	}{
		{name: "without an annotation"},
		{name: "with an annotation", annotations: on, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "both", annotations: map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PDBAnnotation: "true", generatedbudget.PDBAnnotation + "-minAvailable": "1"},
			want: []string{"apply podunavailablebudgets deployment-web max 2", "apply poddisruptionbudgets deployment-web min 1"}},
		{name: "by the namespace", namespace: on, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "the budget exists", annotations: on, exists: []any{pub("uid-web", 2)}},
		{name: "the budget was edited", annotations: on, exists: []any{pub("uid-web", 9)}, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "the annotation was removed", exists: []any{pub("uid-web", 2)}, want: []string{"delete podunavailablebudgets deployment-web"}},
		{name: "a budget of another owner is kept", exists: []any{pub("", 2)}},
		{name: "a budget of another owner has the name", annotations: on, exists: []any{pub("", 2)}, events: 1},
		{name: "an orphaned budget", annotations: on, exists: []any{orphaned(2)}, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "an orphaned budget with the other limit", annotations: map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PUBAnnotation + "-minAvailable": "3"},
			exists: []any{orphaned(2)}, want: []string{`replace podunavailablebudgets deployment-web {"metadata":{"uid":"uid-generated",` +
				`"labels":{"app.kubernetes.io/managed-by":"breakwater"},` +
				`"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"uid-web","controller":true}]},` +
				`"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"selector":null,"maxUnavailable":null,"minAvailable":3}}`}},
		{name: "an orphaned budget that nobody wants is kept", exists: []any{orphaned(2)}},
		{name: "a budget of another owner with the label", annotations: on, exists: []any{labeled(pub("uid-before", 2))}, events: 1},
		{name: "a budget of a replaced Deployment", annotations: on, exists: []any{pub("uid-before", 2)}, events: 1},
		{name: "an invalid limit changes nothing", annotations: map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PUBAnnotation + "-maxUnavailable": "few"},
			exists: []any{pub("uid-web", 2)}, events: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			done, events := writes(t, deployment, nil, tc.annotations, tc.namespace, tc.exists...)
			if diff := cmp.Diff(tc.want, done); diff != "" {
				t.Error(diff)
			}
			if events != tc.events {
				t.Errorf("%d Events, want %d", events, tc.events)
			}
		})
	}
}

// Server-side apply does not remove a field of another manager, so the request names it.
func TestAGeneratedBudgetIsRestoredAfterAFieldWasReplacedByAnother(t *testing.T) {
	annotations := map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PDBAnnotation: "true", generatedbudget.PDBAnnotation + "-minAvailable": "1"}
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	pdb := &policyv1.PodDisruptionBudget{ObjectMeta: owned("uid-web"), Spec: policyv1.PodDisruptionBudgetSpec{Selector: web,
		MinAvailable: new(intstr.FromInt32(1)), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow)}}
	const metadata = `"metadata":{"uid":"uid-generated","labels":{"app.kubernetes.io/managed-by":"breakwater"}}`
	const wantedPUB = `replace podunavailablebudgets deployment-web {` + metadata +
		`,"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"},"selector":null,"maxUnavailable":2,"minAvailable":null}}`
	const wantedPDB = `replace poddisruptionbudgets deployment-web {` + metadata +
		`,"spec":{"targetRef":null,"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":null,"minAvailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"}}`
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.PodUnavailableBudgetSpec, *policyv1.PodDisruptionBudgetSpec)
		want []string
	}{
		"none": {func(*v1alpha1.PodUnavailableBudgetSpec, *policyv1.PodDisruptionBudgetSpec) {}, nil},
		"the limit": {func(b *v1alpha1.PodUnavailableBudgetSpec, _ *policyv1.PodDisruptionBudgetSpec) {
			b.MaxUnavailable, b.MinAvailable = nil, new(intstr.FromInt32(0))
		}, []string{wantedPUB}},
		"the target": {func(b *v1alpha1.PodUnavailableBudgetSpec, _ *policyv1.PodDisruptionBudgetSpec) {
			b.TargetRef, b.Selector = nil, &v1alpha1.PodSelector{}
		}, []string{wantedPUB}},
		"the limit of a PodDisruptionBudget": {func(_ *v1alpha1.PodUnavailableBudgetSpec, b *policyv1.PodDisruptionBudgetSpec) {
			b.MaxUnavailable, b.MinAvailable = new(intstr.FromString("100%")), nil
		}, []string{wantedPDB}},
		"the evictions of unhealthy pods": {func(_ *v1alpha1.PodUnavailableBudgetSpec, b *policyv1.PodDisruptionBudgetSpec) {
			b.UnhealthyPodEvictionPolicy = nil
		}, []string{"apply poddisruptionbudgets deployment-web min 1"}},
		// The fields of another user that do not exclude ours are kept.
		"the limit of a shadow budget": {func(b *v1alpha1.PodUnavailableBudgetSpec, _ *policyv1.PodDisruptionBudgetSpec) {
			b.MaxUnavailable, b.Shadow = new(intstr.FromInt32(9)), true
		}, []string{"apply podunavailablebudgets deployment-web max 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			present, other := pub("uid-web", 2), pdb.DeepCopy()
			tc.edit(&present.Spec, &other.Spec)
			done, _ := writes(t, deployment, nil, annotations, nil, present, other)
			if diff := cmp.Diff(tc.want, done); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDeploymentOfARevisionHasNoGeneratedBudget(t *testing.T) {
	on := map[string]string{generatedbudget.PUBAnnotation: "true"}
	if done, events := writes(t, deployment, ofRevision, on, on, service(nil, on)); len(done) > 0 || events > 0 {
		t.Errorf("%v, %d Events", done, events)
	}
}

func TestAnnotationsOfTheTemplateCountForAKnativeService(t *testing.T) {
	const p = generatedbudget.PUBAnnotation
	type annotations = map[string]string
	on, off := annotations{p: "true"}, annotations{p: "false"}
	limits := func(limit string) []string {
		return []string{"apply podunavailablebudgets knativeservice-web " + limit}
	}
	for _, tc := range []struct {
		name                     string
		own, template, namespace annotations
		want                     []string
	}{
		{name: "none"},
		{name: "by the template", template: on, want: limits("max 25%")},
		{name: "by the template, its limit", template: annotations{p: "true", p + "-minAvailable": "1"}, want: limits("min 1")},
		{name: "by the namespace", namespace: on, want: limits("max 25%")},
		{name: "by the namespace, the template excludes it", template: off, namespace: on},
		{name: "by the namespace, the limit of the template", template: annotations{p + "-maxUnavailable": "1"},
			namespace: annotations{p: "true", p + "-minAvailable": "2"}, want: limits("max 1")},
		{name: "by the Service, the template excludes it", own: on, template: off, want: limits("max 25%")},
		{name: "by the template, the Service excludes it", own: off, template: on},
		{name: "the limit of the Service", own: annotations{p + "-maxUnavailable": "3"}, template: annotations{p: "true", p + "-minAvailable": "1"}, want: limits("max 3")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			done, _ := writes(t, knativeService, nil, nil, tc.namespace, service(tc.own, tc.template))
			if diff := cmp.Diff(tc.want, done); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnnotationsOfTheNamespaceDoNotCountBelowAUnitedDeployment(t *testing.T) {
	on := map[string]string{generatedbudget.PUBAnnotation: "true"}
	for name, tc := range map[string]struct {
		owner     metav1.OwnerReference
		own       map[string]string
		namespace map[string]string
		want      []string
	}{
		"below a UnitedDeployment":                 {owner: metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment"}, namespace: on},
		"below a custom resource":                  {owner: metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Database"}, namespace: on, want: []string{"max 2"}},
		"below a Deployment, such as an operator":  {owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment"}, namespace: on, want: []string{"max 2"}},
		"below a UnitedDeployment, its annotation": {owner: metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment"}, own: on, namespace: on, want: []string{"max 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.owner.Name, tc.owner.UID, tc.owner.Controller = "parent", "uid-parent", new(true)
			done, events := writes(t, deployment, func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{tc.owner} }, tc.own, tc.namespace)
			for i := range tc.want {
				tc.want[i] = "apply podunavailablebudgets deployment-web " + tc.want[i]
			}
			if diff := cmp.Diff(tc.want, done); diff != "" || events > 0 {
				t.Errorf("%s, %d Events", diff, events)
			}
		})
	}
}

func TestAnnotationsOfTheNamespaceDoNotCountForACloneSetBelowAUnitedDeployment(t *testing.T) {
	u := object(cloneSet, "v1alpha1", "web", map[string]any{})
	u.SetAnnotations(nil)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "UnitedDeployment", Name: "parent", UID: "uid-parent", Controller: new(true)}})
	if done, _ := writes(t, cloneSet, nil, nil, map[string]string{generatedbudget.PUBAnnotation: "true"}, cloneSet.read(cloneSet.versions[1], u)); len(done) > 0 {
		t.Error(done)
	}
}
