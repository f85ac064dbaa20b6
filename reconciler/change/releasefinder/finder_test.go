package releasefinder

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
)

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
}

func version(t *testing.T, image string) string {
	t.Helper()
	of := template(image)
	v, err := workload.Version(workload.StatefulSet, &of)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// owner refers to the StatefulSet web.
func owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "s", Controller: new(true)}}
}

// releaseAnnotations returns the annotations that the webhook writes; none for
// attempt -1.
func releaseAnnotations(t *testing.T, image string, attempt int) map[string]string {
	if attempt < 0 {
		return nil
	}
	return map[string]string{v1alpha1.VersionKey: version(t, image), v1alpha1.AttemptAnnotation: fmt.Sprint(attempt)}
}

// made is the ControllerRevision that the StatefulSet controller makes of a
// template, with the annotations that the StatefulSet had then.
func made(t *testing.T, name, image string, annotations map[string]string) *appsv1.ControllerRevision {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template(image)}})
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: annotations, OwnerReferences: owner()},
		Data:       runtime.RawExtension{Raw: raw},
	}
}

func pod(name, revision string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, OwnerReferences: owner(),
		Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: revision},
	}}
}

// newFinder returns a Finder whose caches have the StatefulSet web and the revisions.
func newFinder(t *testing.T, image string, attempt int, revisions ...*appsv1.ControllerRevision) (*Finder, *workload.Workload) {
	t.Helper()
	ctx, _ := rtesting.SetupFakeContext(t)
	workloadinformertest.Add(ctx, t, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "s", Annotations: releaseAnnotations(t, image, attempt)},
		Spec:       appsv1.StatefulSetSpec{Template: template(image)},
	})
	f, err := New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	watch := workloadinformertest.Run(ctx, t)
	for _, r := range revisions {
		trimmed, err := Trim(r)
		if err == nil {
			trimmed, err = Trim(trimmed) // a cache may trim an object twice
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.revisions.Add(trimmed); err != nil {
			t.Fatal(err)
		}
	}
	return f, watch.All()[0]
}

func TestReleaseOfAPodOwnedByItsWorkload(t *testing.T) {
	for name, tc := range map[string]struct {
		image     string
		attempt   int
		revisions []*appsv1.ControllerRevision
		revision  string
		want      v1alpha1.Release
		unknown   bool
	}{
		"release of the revision": {
			"b", 2, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1)), made(t, "web-b", "b", releaseAnnotations(t, "b", 2))}, "web-a",
			v1alpha1.Release{Version: version(t, "a"), Attempt: 1}, false,
		},
		"label is the suffix of the revision's name": {
			"b", 2, []*appsv1.ControllerRevision{made(t, "web-b", "b", releaseAnnotations(t, "b", 2))}, "b",
			v1alpha1.Release{Version: version(t, "b"), Attempt: 2}, false,
		},
		"template applied again has the attempt of the workload": {
			"a", 3, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1)), made(t, "web-b", "b", releaseAnnotations(t, "b", 2))}, "web-a",
			v1alpha1.Release{Version: version(t, "a"), Attempt: 3}, false,
		},
		"template from before the opt-in applied again": {
			"a", 2, []*appsv1.ControllerRevision{made(t, "web-a", "a", nil), made(t, "web-b", "b", releaseAnnotations(t, "b", 1))}, "web-a",
			v1alpha1.Release{Version: version(t, "a"), Attempt: 2}, false,
		},
		"template from before the opt-in is the baseline": {
			"b", 1, []*appsv1.ControllerRevision{made(t, "web-a", "a", nil), made(t, "web-b", "b", releaseAnnotations(t, "b", 1))}, "web-a",
			v1alpha1.Release{Version: version(t, "a")}, false,
		},
		"recorded version differs from the computed one": {
			"b", 2, []*appsv1.ControllerRevision{made(t, "web-b", "b with a default", releaseAnnotations(t, "b", 2))}, "web-b",
			v1alpha1.Release{Version: version(t, "b"), Attempt: 2}, false,
		},
		"template that the webhook missed": {
			"a", 3, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1)), made(t, "web-b", "b", releaseAnnotations(t, "a", 1))}, "web-b",
			v1alpha1.Release{Version: version(t, "a"), Attempt: 1}, false,
		},
		"template that the webhook missed during the release before it": {
			"a", 1, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1)), made(t, "web-b", "b", releaseAnnotations(t, "a", 1))}, "web-b",
			v1alpha1.Release{}, true,
		},
		"template that the webhook missed, and now recorded": {
			"b", 2, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1)), made(t, "web-b", "b", releaseAnnotations(t, "a", 1))}, "web-b",
			v1alpha1.Release{Version: version(t, "b"), Attempt: 2}, false,
		},
		"unknown revision": {
			"b", 2, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1))}, "web-b", v1alpha1.Release{}, true,
		},
		"pod without a label": {
			"a", 1, []*appsv1.ControllerRevision{made(t, "web-a", "a", releaseAnnotations(t, "a", 1))}, "", v1alpha1.Release{}, true,
		},
		"workload without a release": {
			"a", -1, []*appsv1.ControllerRevision{made(t, "web-a", "a", nil)}, "web-a", v1alpha1.Release{Version: version(t, "a")}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := newFinder(t, tc.image, tc.attempt, tc.revisions...)
			p := pod("web-0", tc.revision)
			of, release, known := f.ReleaseOfPod(p)
			if known == tc.unknown || release != tc.want {
				t.Errorf("got %v, known %v; want %v", release, known, tc.want)
			}
			if known && (of.Name != "web" || of.Kind != "StatefulSet") {
				t.Errorf("of %v", of)
			}
			if tc.unknown {
				return
			}
			if err := f.pods.Add(p); err != nil {
				t.Fatal(err)
			}
			for release, want := range map[v1alpha1.Release]int{tc.want: 1, {Version: tc.want.Version, Attempt: 9}: 0} {
				if got, err := f.Pods(w, release); err != nil || len(got) != want {
					t.Errorf("%d pods of %v, %v; want %d", len(got), release, err, want)
				}
			}
		})
	}
}

func TestAPodHasTheVersionOfItsTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		revisions []*appsv1.ControllerRevision
		want      bool
	}{
		"its ControllerRevision has the template": {[]*appsv1.ControllerRevision{made(t, "web-1", "a", releaseAnnotations(t, "a", 1))}, true},
		"the API server had other defaults": {[]*appsv1.ControllerRevision{
			made(t, "web-1", "a with a default", releaseAnnotations(t, "a", 1))}, true},
		"the webhook missed the template, and now recorded it": {[]*appsv1.ControllerRevision{
			made(t, "web-0", "b", releaseAnnotations(t, "b", 0)), made(t, "web-1", "a", releaseAnnotations(t, "b", 0))}, true},
		"the webhook missed another template": {[]*appsv1.ControllerRevision{
			made(t, "web-0", "a", releaseAnnotations(t, "a", 1)), made(t, "web-1", "b", releaseAnnotations(t, "a", 1))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, w := newFinder(t, "c", 3, tc.revisions...)
			if got := f.HasVersion(w, pod("web-0", "web-1"), version(t, "a")); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRevisionsOfAVersionAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		template, recorded string // the image of the template, and that of the version in the annotations
		revisions          []*appsv1.ControllerRevision
		want               int
	}{
		"one revision per version":                   {"a", "a", []*appsv1.ControllerRevision{made(t, "a", "a", releaseAnnotations(t, "a", 1)), made(t, "b", "b", releaseAnnotations(t, "b", 2))}, 1},
		"webhook missed a template":                  {"a", "a", []*appsv1.ControllerRevision{made(t, "a", "a", releaseAnnotations(t, "a", 1)), made(t, "b", "b", releaseAnnotations(t, "a", 1))}, 2},
		"webhook missed a template after the opt-in": {"a", "a", []*appsv1.ControllerRevision{made(t, "a", "a", nil), made(t, "b", "b", releaseAnnotations(t, "a", 0))}, 2},
		"webhook missed a former template":           {"a", "b", []*appsv1.ControllerRevision{made(t, "a", "a", releaseAnnotations(t, "a", 1)), made(t, "b", "b", releaseAnnotations(t, "b", 2))}, 2},
		"new default of Kubernetes":                  {"b with a default", "b", []*appsv1.ControllerRevision{made(t, "a", "a", releaseAnnotations(t, "a", 1)), made(t, "b", "b", releaseAnnotations(t, "b", 2))}, 1},
	} {
		f, w := newFinder(t, tc.template, 1, tc.revisions...)
		if got, _, err := f.CountRevisions(w, version(t, tc.recorded)); err != nil || got != tc.want {
			t.Errorf("%s: %d revisions, %v; want %d", name, got, err, tc.want)
		}
	}
}

// With revisionHistoryLimit 0 the StatefulSet controller deletes the revision of the template before.
func TestTheNewestRevisionOfAVersionIsKnown(t *testing.T) {
	at := metav1.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	missed, older, other := made(t, "b", "b", releaseAnnotations(t, "a", 1)), made(t, "a", "a", releaseAnnotations(t, "a", 1)), made(t, "c", "c", releaseAnnotations(t, "c", 2))
	missed.CreationTimestamp, older.CreationTimestamp, other.CreationTimestamp = at, metav1.NewTime(at.Add(-time.Hour)), metav1.NewTime(at.Add(time.Hour))
	f, w := newFinder(t, "b", 1, missed, older, other)
	if _, newest, err := f.CountRevisions(w, version(t, "a")); err != nil || !newest.Equal(at.Time) {
		t.Errorf("got %s, %v; want %s", newest, err, at)
	}
}

func TestThePodsOfAReplicaSet(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	f, err := New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", UID: "r", Annotations: map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: new(true)}},
	}}
	if err := f.replicaSets.Add(rs); err != nil {
		t.Fatal(err)
	}
	mine := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1-a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: uid, Controller: new(true)}}}}
	}
	want := v1alpha1.Release{Version: "v", Attempt: 2}
	if of, release, known := f.ReleaseOfPod(mine("r")); !known || release != want || of.Name != "web" || of.UID != "d" {
		t.Errorf("got %v %v %v", of, release, known)
	}
	if _, _, known := f.ReleaseOfPod(mine("another ReplicaSet of the name")); known {
		t.Error("a pod of a deleted ReplicaSet with the same name has a release")
	}
	if err := f.pods.Add(mine("r")); err != nil {
		t.Fatal(err)
	}
	w := workloadinformertest.Workload(t, workload.Deployment, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d"}})
	if pods, err := f.Pods(w, want); err != nil || len(pods) != 1 {
		t.Errorf("%d pods, %v", len(pods), err)
	}
}

// While the webhook is unreachable, a new template gets a new or an old ReplicaSet with
// the release of the template before it.
func TestOfTwoReplicaSetsWithOneReleaseTheOlderHasIt(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	f, err := New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, number, attempt int) {
		t.Helper()
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name),
			Annotations: map[string]string{
				v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: strconv.Itoa(attempt), savedtemplate.RevisionAnnotation: strconv.Itoa(number),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d", Controller: new(true)}},
		}}
		if err := f.replicaSets.Update(set); err != nil {
			t.Fatal(err)
		}
	}
	of := func(set string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: set + "-a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}}}}
	}
	w := workloadinformertest.Workload(t, workload.Deployment, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "d"}})
	expect := func(known map[string]bool, released ...string) {
		t.Helper()
		for set, want := range known {
			if _, _, got := f.ReleaseOfPod(of(set)); got != want {
				t.Errorf("the release of a pod of %s is known: %t, want %t", set, got, want)
			}
		}
		pods, err := f.Pods(w, v1alpha1.Release{Version: "v", Attempt: 2})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range pods {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(released, got); diff != "" {
			t.Error("pods of the release (-want +got):", diff)
		}
	}
	for _, set := range []string{"old", "new"} {
		if err := f.pods.Add(of(set)); err != nil {
			t.Fatal(err)
		}
	}
	put("old", 4, 2)
	put("new", 5, 2)
	expect(map[string]bool{"old": true, "new": false}, "old-a")
	// The webhook records the release of the new template.
	put("new", 5, 3)
	expect(map[string]bool{"old": true, "new": true}, "old-a")
	// A rollback that the webhook missed: the old ReplicaSet is the latest again.
	put("old", 6, 3)
	expect(map[string]bool{"old": false, "new": true})
}

func TestOfReplicaSetsWithOneReleaseTheOneOfItsTemplateHasIt(t *testing.T) {
	set := func(number, version string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2", savedtemplate.RevisionAnnotation: number, ComputedKey: version,
		}, OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Controller: new(true)}}}}
	}
	for name, tc := range map[string]struct {
		sets []*appsv1.ReplicaSet
		want []bool
	}{
		"the webhook missed the second template":                {[]*appsv1.ReplicaSet{set("4", "v"), set("5", "w")}, []bool{true, false}},
		"the first template was applied again":                  {[]*appsv1.ReplicaSet{set("6", "v"), set("5", "w")}, []bool{true, false}},
		"the same, after a third one":                           {[]*appsv1.ReplicaSet{set("7", "v"), set("5", "w"), set("6", "x")}, []bool{true, false, false}},
		"new default values: the templates have other versions": {[]*appsv1.ReplicaSet{set("4", "v2"), set("5", "w2")}, []bool{true, false}},
		"two sets with the template":                            {[]*appsv1.ReplicaSet{set("4", "v"), set("5", "v")}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []bool
			for _, rs := range tc.sets {
				_, known := releaseOfReplicaSet(rs, tc.sets)
				got = append(got, known)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error("who has the release (-want +got):", diff)
			}
		})
	}
}

// An upgrade of Serving changes queue-proxy in the Deployment of each Revision, and so replaces its pods.
func TestAllReplicaSetsOfARevisionHaveItsRelease(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	workloadinformertest.Add(ctx, t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-00001-deployment", UID: "d",
		Labels:          map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "s"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", Controller: new(true)}},
	}})
	f, err := New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	workloadinformertest.Run(ctx, t)
	want := v1alpha1.Release{Version: "v", Attempt: 2}
	var pods []*corev1.Pod
	for number, name := range map[string]string{"1": "before", "2": "after"} {
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
			Annotations:     map[string]string{v1alpha1.VersionKey: "v", v1alpha1.AttemptAnnotation: "2", savedtemplate.RevisionAnnotation: number},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-00001-deployment", UID: "d", Controller: new(true)}}}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-a",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: rs.UID, Controller: new(true)}}}}
		if err := errors.Join(f.replicaSets.Add(rs), f.pods.Add(p)); err != nil {
			t.Fatal(err)
		}
		pods = append(pods, p)
	}
	for _, p := range pods {
		// The workload is not known here: no Knative Service is watched.
		if _, release, _ := f.ReleaseOfPod(p); release != want {
			t.Errorf("the release of pod %s is %v", p.Name, release)
		}
	}
	service := &workload.Workload{Kind: workload.KnativeService, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "s"}}
	if pods, err := f.Pods(service, want); err != nil || len(pods) != 2 {
		t.Errorf("%d pods of the release, %v; want 2", len(pods), err)
	}
}

func TestOwnedObjectsAreSorted(t *testing.T) {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{ByController: controllerOf})
	var want []string
	for n := 10; n < 40; n++ {
		p := pod(fmt.Sprint("p-", n), "")
		want = append(want, p.Name)
		if err := index.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Owned[*corev1.Pod](index, "s")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTrimDoesNotChangeOtherObjects(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "default/web"}
	got, err := Trim(tombstone)
	if diff := cmp.Diff(any(tombstone), got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
