package budget

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// newReplicaSet returns a ReplicaSet of Deployment web.
func newReplicaSet(change func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	r := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-1", UID: "uid-rs", Labels: map[string]string{"app": "web", "tier": "front"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "uid-d", Controller: new(true)}}},
		Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front", "back"}}},
		}},
	}
	if change != nil {
		change(r)
	}
	return r
}

func updatingReplicaSet(t *testing.T, before, after *appsv1.ReplicaSet) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, Namespace: "ns", Name: "web-1", Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"},
		OldObject: builder.Raw(t, before), Object: builder.Raw(t, after),
	}
}

func orphan(r *appsv1.ReplicaSet) { r.OwnerReferences = nil }

func targeting(apiVersion, kind, name string) func(*v1alpha1.PodUnavailableBudget) {
	return func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: apiVersion, Kind: kind, Name: name}
	}
}

// A ReplicaSet leaves its controller with its pods: they are orphaned, or the garbage collector deletes them.
func TestWhichUpdatesTakeAReplicaSetFromItsController(t *testing.T) {
	label := func(key, value string) func(*appsv1.ReplicaSet) {
		return func(r *appsv1.ReplicaSet) { r.Labels[key] = value }
	}
	owner := func(change func(*metav1.OwnerReference)) func(*appsv1.ReplicaSet) {
		return func(r *appsv1.ReplicaSet) { change(&r.OwnerReferences[0]) }
	}
	otherOwner := func(r *appsv1.ReplicaSet) {
		r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "uid-c"})
	}
	orphaned, replaced := departure{orphaned: true}, departure{replaced: true}
	for name, tc := range map[string]struct {
		before, after func(*appsv1.ReplicaSet)
		want          departure
	}{
		"nothing":      {nil, nil, departure{}},
		"the replicas": {nil, func(r *appsv1.ReplicaSet) { r.Spec.Replicas = new(int32(0)) }, departure{}},
		"a label that its selector does not name":    {nil, label("team", "a"), departure{}},
		"a label of its matchLabels":                 {nil, label("app", "db"), orphaned},
		"a label of its matchExpressions":            {nil, label("tier", "db"), orphaned},
		"another value of its matchExpressions":      {nil, label("tier", "back"), departure{}},
		"no labels":                                  {nil, func(r *appsv1.ReplicaSet) { r.Labels = nil }, orphaned},
		"the replicas, with labels of a former edit": {label("app", "db"), func(r *appsv1.ReplicaSet) { r.Labels["app"] = "db"; r.Spec.Replicas = new(int32(0)) }, departure{}},
		"no owner":                          {nil, orphan, orphaned},
		"an owner that is no controller":    {nil, owner(func(o *metav1.OwnerReference) { o.Controller = nil }), departure{orphaned: true, replaced: true}},
		"no controller, but another owner":  {otherOwner, func(r *appsv1.ReplicaSet) { otherOwner(r); r.OwnerReferences = r.OwnerReferences[1:] }, departure{orphaned: true, replaced: true}},
		"another owner, too":                {nil, otherOwner, departure{}},
		"another uid of its controller":     {nil, owner(func(o *metav1.OwnerReference) { o.UID = "gone" }), replaced},
		"another name of its controller":    {nil, owner(func(o *metav1.OwnerReference) { o.Name = "gone" }), replaced},
		"another kind of its controller":    {nil, owner(func(o *metav1.OwnerReference) { o.Kind = "StatefulSet" }), replaced},
		"another group of its controller":   {nil, owner(func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }), replaced},
		"a version without a group":         {nil, owner(func(o *metav1.OwnerReference) { o.APIVersion = "apps" }), replaced},
		"another version of its controller": {nil, owner(func(o *metav1.OwnerReference) { o.APIVersion = "apps/v2" }), departure{}},
		"another controller, and labels":    {nil, func(r *appsv1.ReplicaSet) { r.OwnerReferences[0].UID = "gone"; r.Labels = nil }, departure{orphaned: true, replaced: true}},
		"a controller that adopts it":       {orphan, nil, departure{}},
		"labels, without a controller":      {orphan, func(r *appsv1.ReplicaSet) { orphan(r); r.Labels = nil }, departure{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := departureOf(newReplicaSet(tc.before), newReplicaSet(tc.after))
			if err != nil {
				t.Fatal(err)
			}
			if got == nil {
				got = &departure{}
			}
			if got.replaced != tc.want.replaced || got.orphaned != tc.want.orphaned {
				t.Errorf("replaced: %t, orphaned: %t, want %t, %t", got.replaced, got.orphaned, tc.want.replaced, tc.want.orphaned)
			}
		})
	}
}

// A deleted budget decides nothing, also while a finalizer keeps it.
func TestWhichBudgetsKeepAReplicaSet(t *testing.T) {
	moved := func(r *appsv1.ReplicaSet) { r.OwnerReferences[0].UID = "gone" }
	relabelled := func(r *appsv1.ReplicaSet) { r.Labels["app"] = "db" }
	and := func(change, more func(*v1alpha1.PodUnavailableBudget)) func(*v1alpha1.PodUnavailableBudget) {
		return func(b *v1alpha1.PodUnavailableBudget) { change(b); more(b) }
	}
	web := targeting("apps", "Deployment", "web")
	deleted := func(b *v1alpha1.PodUnavailableBudget) { b.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0))) }
	shadow := func(b *v1alpha1.PodUnavailableBudget) { b.Spec.Shadow = true }
	evictions := func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec.ProtectOperations = []v1alpha1.PodOperation{v1alpha1.OperationEvict}
	}
	for name, tc := range map[string]struct {
		budget func(*v1alpha1.PodUnavailableBudget)
		after  func(*appsv1.ReplicaSet)
		want   string
	}{
		"its target loses its ReplicaSet":                  {web, orphan, DecisionDenied},
		"its target, by labels":                            {web, relabelled, DecisionDenied},
		"its target, of which only evictions are decided":  {and(web, evictions), orphan, DecisionDenied},
		"a target of another kind":                         {targeting("apps", "StatefulSet", "web"), orphan, DecisionNotCharged},
		"a target of another name":                         {targeting("apps", "Deployment", "db"), orphan, DecisionNotCharged},
		"a target of another group":                        {targeting("example.com", "Deployment", "web"), orphan, DecisionNotCharged},
		"another target, by another controller":            {targeting("apps", "StatefulSet", "web"), moved, DecisionDenied},
		"its Knative Service":                              {targeting("serving.knative.dev/v1", "Service", "shop"), orphan, DecisionDenied},
		"another Knative Service":                          {targeting("serving.knative.dev/v1", "Service", "web"), orphan, DecisionNotCharged},
		"a Service of another group":                       {targeting("v1", "Service", "shop"), orphan, DecisionNotCharged},
		"a selector":                                       {nil, orphan, DecisionNotCharged},
		"a selector, by labels":                            {nil, relabelled, DecisionNotCharged},
		"a selector, by another controller":                {nil, moved, DecisionDenied},
		"in shadow mode":                                   {and(web, shadow), orphan, DecisionShadow},
		"in shadow mode, by another controller":            {and(web, shadow), moved, DecisionShadow},
		"deleted, with a finalizer":                        {and(web, deleted), orphan, DecisionNoBudget},
		"deleted, with a finalizer, by labels":             {and(web, deleted), relabelled, DecisionNoBudget},
		"deleted, with a finalizer, by another controller": {and(web, deleted), moved, DecisionNoBudget},
	} {
		t.Run(name, func(t *testing.T) {
			ofService := func(r *appsv1.ReplicaSet) { r.Labels[serviceLabel] = "shop" }
			before, after := newReplicaSet(ofService), newReplicaSet(ofService)
			tc.after(after)
			fx := newFixture(t, chains{}, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, tc.budget)})
			a := fx.ask(t, updatingReplicaSet(t, before, after))
			if a.Decision != tc.want || a.Response.Allowed == (tc.want == DecisionDenied) {
				t.Errorf("allowed: %t, %s, want %s", a.Response.Allowed, a.Decision, tc.want)
			}
			if reported := tc.want == DecisionDenied || tc.want == DecisionShadow; (len(fx.events.Events) == 1) != reported {
				t.Errorf("%d Events", len(fx.events.Events))
			}
			if all := fx.client.Actions(); len(all) > 0 {
				t.Errorf("reads or charges budgets: %v", all)
			}
		})
	}
}

func TestTheDenialOfAReplicaSetsUpdateNamesTheBudgetAndTheWaysOut(t *testing.T) {
	for name, dryRun := range map[string]bool{"a request": false, "a dry run": true} {
		t.Run(name, func(t *testing.T) {
			selector := newBudget("all", 1, nil)
			fx := newFixture(t, chains{}, []*v1alpha1.PodUnavailableBudget{selector, newBudget("web", 1, targeting("apps/v1", "Deployment", "web"))})
			var sent eventstest.Recorder
			fx.guard.Denials = denialevents.New(&sent, clock.RealClock{})
			req := updatingReplicaSet(t, newReplicaSet(nil), newReplicaSet(orphan))
			req.SubResource, req.DryRun, req.UserInfo.Username = "status", new(dryRun), "jane"
			a := fx.ask(t, req)
			result := a.Response.Result
			const want = "ReplicaSet web-1 would leave its controller, so PodUnavailableBudget web may no longer protect its pods. " +
				"Ways out: scale Deployment web to 0 first; or set spec.shadow of the budget to true, which only reports"
			if a.Response.Allowed || result.Code != 403 || result.Message != want || result.Details.Name != "web" {
				t.Errorf("%+v", result)
			}
			all, records := sent.Sent(), len(fx.events.Events)
			if dryRun {
				if len(all)+records > 0 {
					t.Errorf("a dry run is reported: %d CloudEvents, %d Events", len(all), records)
				}
				return
			}
			if len(all) != 1 || records != 1 {
				t.Fatalf("%d CloudEvents, %d Events", len(all), records)
			}
			d, err := events.ParseDeletionDenied(all[0])
			if err != nil || d.Object != "web-1" || d.Operation != "UPDATE" || d.DeniedBy.Name != "web" || !strings.HasPrefix(d.Message, "ReplicaSet web-1") {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}
