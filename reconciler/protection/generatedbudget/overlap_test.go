package generatedbudget

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

type pairs = map[string]string

func selecting(name string, labels map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
}

// another returns a Deployment and its generated PodDisruptionBudget.
func another(name string, selector, pods map[string]string) []any {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}}}
	d.Spec.Template.Labels = pods
	b := selecting("deployment-"+name, selector)
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name, Controller: new(true)}}
	return []any{d, b}
}

// The Deployment web selects app=web, and its pods have tier=front, too.
func TestNoPodDisruptionBudgetIsGeneratedBesideAnother(t *testing.T) {
	own := selecting("deployment-web", pairs{"app": "web"})
	own.ObjectMeta, own.Spec.MaxUnavailable = owned("uid-web"), new(intstr.FromInt32(2))
	own.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
	orphan := own.DeepCopy()
	orphan.ObjectMeta = owned("")
	orphan.Labels = pairs{managedByLabel: managedByValue}
	manual := own.DeepCopy()
	manual.ObjectMeta = owned("")
	generated := []string{"apply poddisruptionbudgets deployment-web max 2"}
	nobody := selecting("team", nil)
	nobody.Spec.Selector = nil
	for name, tc := range map[string]struct {
		exists []any
		want   []string
		events int
	}{
		"one of the pods":                   {[]any{selecting("team", pairs{"tier": "front"})}, nil, 0},
		"one of all pods":                   {[]any{selecting("team", nil)}, nil, 0},
		"one of other pods":                 {[]any{selecting("team", pairs{"app": "api"})}, generated, 0},
		"one without a selector":            {[]any{nobody}, generated, 0},
		"its own":                           {[]any{own}, nil, 0},
		"its own, and one of the pods":      {[]any{own, selecting("team", pairs{"app": "web"})}, []string{"delete poddisruptionbudgets deployment-web"}, 1},
		"an orphan, and one of the pods":    {[]any{orphan, selecting("team", pairs{"app": "web"})}, generated, 0}, // adopted, and then deleted as its own
		"an orphan, and one of other pods":  {[]any{orphan, selecting("team", pairs{"app": "api"})}, generated, 0},
		"two of a team, one with its name":  {[]any{manual, selecting("team", pairs{"app": "web"})}, nil, 0},
		"its own, and one of other pods":    {[]any{own, selecting("team", pairs{"app": "api"})}, nil, 0},
		"a generated one of more pods":      {another("zoo", pairs{"tier": "front"}, pairs{"tier": "front"}), nil, 0},
		"a generated one of fewer pods":     {another("api", pairs{"app": "web", "track": "canary"}, pairs{"app": "web", "track": "canary"}), generated, 0},
		"a generated one of the same pods":  {another("api", pairs{"app": "web"}, pairs{"app": "web"}), nil, 0},
		"the same, the name of which later": {another("zoo", pairs{"app": "web"}, pairs{"app": "web"}), generated, 0},
	} {
		t.Run(name, func(t *testing.T) {
			done, events := writes(t, deployment, nil, map[string]string{generatedbudget.PDBAnnotation: "true"}, nil, tc.exists...)
			if diff := cmp.Diff(tc.want, done); diff != "" {
				t.Error(diff)
			}
			if events != tc.events {
				t.Errorf("%d Events, want %d", events, tc.events)
			}
		})
	}
}

func TestADeniedDeletionOfAGeneratedBudgetHasNoEvent(t *testing.T) {
	denied := errors.New("denied")
	g := generated{
		existing:    &policyv1.PodDisruptionBudget{ObjectMeta: owned("uid-web")},
		overlapping: func() string { return "team" },
		remove:      func(context.Context, metav1.DeleteOptions) error { return denied },
	}
	w := &workload{kind: deployment, Object: &metav1.ObjectMeta{Name: "web", UID: "uid-web", Annotations: pairs{generatedbudget.PDBAnnotation: "true"}}}
	recorder := record.NewFakeRecorder(1)
	r := &Reconciler{recorder: recorder, defaults: func() generatedbudget.Limits {
		return generatedbudget.Limits{MaxUnavailable: new(intstr.FromInt32(1))}
	}}
	if err := r.reconcileBudget(t.Context(), w, &corev1.Namespace{}, generatedbudget.PDBAnnotation, g); !errors.Is(err, denied) {
		t.Errorf("%v, want %v", err, denied)
	}
	if len(recorder.Events) > 0 {
		t.Error(<-recorder.Events)
	}
}

func TestAPodUnavailableBudgetIsGeneratedBesideAPodDisruptionBudget(t *testing.T) {
	done, events := writes(t, deployment, nil, map[string]string{generatedbudget.PUBAnnotation: "true"}, nil, selecting("team", pairs{"app": "web"}))
	if diff := cmp.Diff([]string{"apply podunavailablebudgets deployment-web max 2"}, done); diff != "" || events > 0 {
		t.Errorf("%s, %d Events", diff, events)
	}
}

func TestAChangedPodDisruptionBudgetEnqueuesTheWorkloadsOfItsPods(t *testing.T) {
	deployments := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, name := range []string{"api", "web"} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		d.Spec.Template.Labels = pairs{"app": name}
		if err := deployments.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	r := &Reconciler{workloads: workloads{appslisters.NewDeploymentLister(deployments),
		appslisters.NewStatefulSetLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})), &customWorkloads{}}}
	web, api := selecting("team", pairs{"app": "web"}), selecting("team", pairs{"app": "api"})
	api.Generation++
	for name, tc := range map[string]struct {
		event func(cache.ResourceEventHandler)
		want  []string
	}{
		"created":           {func(h cache.ResourceEventHandler) { h.OnAdd(web, false) }, []string{"Deployment/web"}},
		"deleted":           {func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Obj: web}) }, []string{"Deployment/web"}},
		"a new selector":    {func(h cache.ResourceEventHandler) { h.OnUpdate(web, api) }, []string{"Deployment/api", "Deployment/web"}},
		"only a new status": {func(h cache.ResourceEventHandler) { h.OnUpdate(web, web.DeepCopy()) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			tc.event(r.onPDB(func(key types.NamespacedName) { got = append(got, key.Name) }))
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
