package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
)

// revision is the Deployment of a Revision, with its ReplicaSet, as Serving and the controller of
// Deployments create them.
type revision struct {
	name    string
	version string
	attempt string
	service types.UID
	// owner is the kind of the Deployment's owner.
	owner string
}

func (f *fixture) addRevision(t *testing.T, r revision, created time.Duration) {
	t.Helper()
	meta := metav1.ObjectMeta{
		Namespace: ft.Namespace, Name: r.name + "-deployment", UID: types.UID(r.name), CreationTimestamp: metav1.NewTime(ft.Now().Add(created)),
		Labels:      map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": string(r.service)},
		Annotations: map[string]string{v1alpha1.VersionKey: r.version, v1alpha1.AttemptAnnotation: r.attempt},
	}
	set := appsv1.ReplicaSet{ObjectMeta: *meta.DeepCopy()}
	set.Name, set.UID = meta.Name+"-6f4f", meta.UID+"-set"
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: meta.Name, UID: meta.UID, Controller: new(true)}}
	if r.owner != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: r.owner, Name: r.name, Controller: new(true)}}
	}
	if err := f.Kube.Tracker().Add(&appsv1.Deployment{ObjectMeta: meta}); err != nil {
		t.Fatal(err)
	}
	if err := f.Kube.Tracker().Add(&set); err != nil {
		t.Fatal(err)
	}
}

// newKnativeFixture returns a release of Knative Service web with its Revisions, the oldest first.
func newKnativeFixture(t *testing.T, revisions ...revision) *fixture {
	t.Helper()
	f := newFixture(t, (&traffic{}).source, newBatch(1))
	release := f.ChangeWorkload(ft.Release)
	release.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "web", UID: "web"}
	f.Write(release)
	for i, r := range revisions {
		f.addRevision(t, r, time.Duration(i)*time.Minute)
	}
	return f
}

// compared returns the matchers of a look.
func (f *fixture) compared(t *testing.T) judgev1alpha1.Target {
	t.Helper()
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	return f.ChangePod(ft.BatchName(1)).Status.MetricRecord.Target
}

func TestTheNewAndOldPodsOfAKnativeServiceAreThoseOfItsRevisions(t *testing.T) {
	const of, pods = `namespace="default",pod=~"`, "-deployment-6f4f-.+"
	first := revision{"web-00001", "v0", "0", "web", "Revision"}
	second := revision{"web-00002", ft.Version, "1", "web", "Revision"}
	for name, tc := range map[string]struct {
		revisions []revision
		want, old string
	}{
		"a new and an old Revision":                 {[]revision{first, second}, of + "web-00002" + pods + `"`, of + "web-00001" + pods + `"`},
		"a change of scale is of the same release":  {[]revision{first, second, {"web-00003", ft.Version, "1", "web", "Revision"}}, of + "web-00002" + pods + "|web-00003" + pods + `"`, of + "web-00001" + pods + `"`},
		"the version of a former attempt is old":    {[]revision{{"web-00001", ft.Version, "0", "web", "Revision"}, second}, of + "web-00002" + pods + `"`, of + "web-00001" + pods + `"`},
		"the first Revision":                        {[]revision{second}, of + "web-00002" + pods + `"`, ""},
		"a Revision of another Service":             {[]revision{second, {"api-00001", "v0", "0", "api", "Revision"}}, of + "web-00002" + pods + `"`, ""},
		"labels of the Service, and not of Serving": {[]revision{second, {"other", "v0", "0", "web", ""}}, of + "web-00002" + pods + `"`, ""},
		"no Revision of the release any more":       {[]revision{first}, of + `sleep-new-a"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newKnativeFixture(t, tc.revisions...).compared(t); got.New != tc.want || got.Old != tc.old {
				t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, tc.want, tc.old)
			}
		})
	}
}

// Each attempt of a version has a Revision of its own.
func TestThePodsOfAFailedAttemptOfTheSameVersionAreNotOld(t *testing.T) {
	const of, pods = `namespace="default",pod=~"`, `-deployment-6f4f-.+"`
	f := newKnativeFixture(t, revision{"web-00001", "v1", "3", "web", "Revision"}, revision{"web-00002", ft.Version, "2", "web", "Revision"},
		revision{"web-00003", ft.Version, "1", "web", "Revision"})
	batch := f.ChangePod(ft.BatchName(1))
	batch.Spec.Judges[0].FailedVersions = []string{ft.Version}
	f.Write(batch)
	if got, want, old := f.compared(t), of+"web-00003"+pods, of+"web-00001"+pods; got.New != want || got.Old != old {
		t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, want, old)
	}
}

// An upgrade of Serving changes queue-proxy in the Deployment of each Revision, and so replaces its pods.
func TestAllPodsOfARevisionWhoseDeploymentServingChangedAreNew(t *testing.T) {
	const of, name = `namespace="default",pod=~"`, "web-00002-deployment"
	f := newKnativeFixture(t, revision{"web-00001", "v0", "0", "web", "Revision"}, revision{"web-00002", ft.Version, "1", "web", "Revision"})
	sets := f.Kube.AppsV1().ReplicaSets(ft.Namespace)
	before, err := sets.Get(t.Context(), name+"-6f4f", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	after := before.DeepCopy()
	after.Name, after.UID, after.Annotations[savedtemplate.RevisionAnnotation] = name+"-7b9c", "after", "2"
	if _, err := sets.Create(t.Context(), after, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	want, old := of+name+"-6f4f-.+|"+name+`-7b9c-.+"`, of+`web-00001-deployment-6f4f-.+"`
	if got := f.compared(t); got.New != want || got.Old != old {
		t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, want, old)
	}
}

// The webhook missed a template, and then that of the release again: both ReplicaSets have the release.
func TestThePodsOfATemplateThatTheWebhookMissedAreOld(t *testing.T) {
	const of = `namespace="default",pod=~"`
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "sleep"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
		}
	}
	released := template("v")
	version, err := workload.Version(workload.Deployment, &released)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		version   string
		want, old string
	}{
		"the templates show it":                                 {version, of + `v-.+"`, of + `sleep-new-.+|sleep-old-.+|w-.+"`},
		"new default values: the oldest belongs to the release": {"v", of + `w-.+"`, of + `sleep-new-.+|sleep-old-.+|v-.+"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, (&traffic{}).source, newBatch(1))
			release := f.ChangeWorkload(ft.Release)
			release.Spec.Reversion = tc.version
			f.Write(release)
			for set, number := range map[string]string{"v": "6", "w": "5"} {
				rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
					Namespace: ft.Namespace, Name: set, UID: types.UID(set),
					Annotations:     map[string]string{v1alpha1.VersionKey: tc.version, v1alpha1.AttemptAnnotation: "1", savedtemplate.RevisionAnnotation: number},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "deployment", Controller: new(true)}},
				}, Spec: appsv1.ReplicaSetSpec{Template: template(set)}}
				rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = set
				if err := f.Kube.Tracker().Add(rs); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.compared(t); got.New != tc.want || got.Old != tc.old {
				t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, tc.want, tc.old)
			}
		})
	}
}

// The API server cuts the name of a ReplicaSet to 58 characters for its pods.
func TestThePodsOfAReplicaSetWithALongNameAreFound(t *testing.T) {
	of := func(name, version, attempt string) revision {
		return revision{name, version, attempt, "web", "Revision"}
	}
	for name, tc := range map[string]struct {
		service, pod string
		// alike: the names of the pods do not show the version.
		alike bool
	}{
		"a short name":    {"web", "web-00002-deployment-6f4f-abcde", false},
		"the hash is cut": {"recommendations-of-the-shop-in-europe", "recommendations-of-the-shop-in-europe-00002-deployment-6f4abcde", false},
		"cut before":      {strings.Repeat("a", 60), strings.Repeat("a", 58) + "abcde", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newKnativeFixture(t, of(tc.service+"-00001", "v0", "0"), of(tc.service+"-00002", ft.Version, "1"))
			got := f.compared(t)
			if tc.alike {
				if got.New != `namespace="default",pod=~"sleep-new-a"` || got.Old != "" {
					t.Errorf("compared %s with %s, want the claimed pod", got.New, got.Old)
				}
				return
			}
			for matcher, want := range map[string]bool{got.New: true, got.Old: false} {
				m, err := prometheus.ParseMatchers(matcher)
				if err != nil {
					t.Fatal(err)
				}
				if m.Match(map[string]string{"namespace": ft.Namespace, "pod": tc.pod}) != want {
					t.Errorf("%s matches %s: %t", matcher, tc.pod, !want)
				}
			}
		})
	}
}

// Serving keeps up to 1000 Revisions without traffic.
func TestOfManyRevisionsTheNewestAreOld(t *testing.T) {
	const many = 600
	var revisions []revision
	for i := range many {
		revisions = append(revisions, revision{fmt.Sprintf("web-%05d", i), "v0", "0", "web", "Revision"})
	}
	revisions = append(revisions, revision{fmt.Sprintf("web-%05d", many), ft.Version, "1", "web", "Revision"})
	old := newKnativeFixture(t, revisions...).compared(t).Old
	if names := strings.Count(old, "|") + 1; names != 500 || !strings.Contains(old, "web-00599-") || strings.Contains(old, "web-00000-") {
		t.Errorf("%d names of old pods: %.200s", names, old)
	}
}

// addOwned adds pods of a workload that owns its pods, and ControllerRevisions. The pods have the
// label of the revision that the map names.
func (f *fixture) addOwned(t *testing.T, pods map[string]string, revisions ...*appsv1.ControllerRevision) {
	t.Helper()
	for name, hash := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: ft.Namespace, Name: name, UID: types.UID(name), Labels: map[string]string{appsv1.ControllerRevisionHashLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "ds", UID: "ds", Controller: new(true)}},
		}}
		if err := f.Kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range revisions {
		if err := f.Kube.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
	}
}

func controllerRevision(name string, number int64, owner types.UID, controller bool) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: ft.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "ds", UID: owner, Controller: new(controller)}}},
		Revision:   number,
	}
}

// A node may be removed, or a pod of a StatefulSet recreated.
func TestTheNewPodsOfAWorkloadAreFoundWithoutAClaimedPod(t *testing.T) {
	const of = `namespace="default",pod=~"`
	for name, tc := range map[string]struct {
		claimed   v1alpha1.PodSummary
		pods      map[string]string
		revisions []*appsv1.ControllerRevision
		want, old string
	}{
		"of a DaemonSet, whose label is a suffix of the name": {
			v1alpha1.PodSummary{Pod: "ds-x", UID: "deleted"}, map[string]string{"ds-a": "new", "ds-b": "new", "ds-c": "old"},
			[]*appsv1.ControllerRevision{controllerRevision("ds-new", 2, "ds", true), controllerRevision("ds-old", 1, "ds", true)},
			of + `ds-a|ds-b|ds-x"`, of + `ds-c"`,
		},
		"of a StatefulSet, whose label is the name": {
			v1alpha1.PodSummary{Pod: "ds-2", UID: "deleted"}, map[string]string{"ds-2": "ds-new", "ds-1": "ds-new", "ds-0": "ds-old"},
			[]*appsv1.ControllerRevision{controllerRevision("ds-old", 1, "ds", true), controllerRevision("ds-new", 2, "ds", true)},
			of + `ds-1|ds-2"`, of + `ds-0"`,
		},
		"saved templates and other workloads have no pods of it": {
			v1alpha1.PodSummary{Pod: "ds-x", UID: "deleted"}, map[string]string{"ds-a": "new", "ds-c": "old"},
			[]*appsv1.ControllerRevision{
				controllerRevision("ds-new", 2, "ds", true), controllerRevision("saved-old", 9, "ds", false), controllerRevision("other-old", 9, "other", true),
			},
			of + `ds-a|ds-x"`, of + `ds-c"`,
		},
		"a claimed pod has the version of the release, also if there is a newer one": {
			v1alpha1.PodSummary{Pod: "ds-a", UID: "ds-a"}, map[string]string{"ds-a": "new", "ds-b": "new", "ds-c": "old"},
			[]*appsv1.ControllerRevision{controllerRevision("ds-new", 2, "ds", true), controllerRevision("ds-newer", 3, "ds", true)},
			of + `ds-a|ds-b"`, of + `ds-c"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, (&traffic{}).source, newBatch(1, func(p *v1alpha1.ChangePod) { p.Spec.PodInfos = []v1alpha1.PodSummary{tc.claimed} }))
			release := f.ChangeWorkload(ft.Release)
			release.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "ds", UID: "ds"}
			f.Write(release)
			f.addOwned(t, tc.pods, tc.revisions...)
			if got := f.compared(t); got.New != tc.want || got.Old != tc.old {
				t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, tc.want, tc.old)
			}
		})
	}
}

// deletePods deletes pods, and lets the cached release expire.
func (f *fixture) deletePods(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := f.Kube.CoreV1().Pods(ft.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.clock.SetTime(f.clock.Now().Add(20 * time.Second))
}

// newOwnedFixture returns a release of a workload that owns its pods, with its first batches. Batch n has the nth
// of the claimed pods.
func newOwnedFixture(t *testing.T, kind string, pods map[string]string, claimed ...string) *fixture {
	t.Helper()
	var batches []*v1alpha1.ChangePod
	for i, pod := range claimed {
		batches = append(batches, newBatch(i+1, func(p *v1alpha1.ChangePod) {
			p.OwnerReferences[0].UID = ft.NewRelease().UID
			p.Spec.PodInfos = []v1alpha1.PodSummary{{Pod: pod, UID: types.UID(pod)}}
		}))
	}
	f := newFixture(t, (&traffic{}).source, batches...)
	release := f.ChangeWorkload(ft.Release)
	release.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: kind, Name: "ds", UID: "ds"}
	f.Write(release)
	f.addOwned(t, pods)
	return f
}

// comparedOf returns the matchers of a look at the nth batch.
func (f *fixture) comparedOf(t *testing.T, n int) judgev1alpha1.Target {
	t.Helper()
	if err := f.wake(t, n); err != nil {
		t.Fatal(err)
	}
	return f.ChangePod(ft.BatchName(n)).Status.MetricRecord.Target
}

// The start of the compared time moves in a slow release, and with it what is a reference.
func TestTheReferenceOfAnEarlierLookStays(t *testing.T) {
	for _, want := range []bool{true, false} {
		f := newOwnedFixture(t, "DaemonSet", map[string]string{"ds-a": "new", "ds-b": "old"}, "ds-a")
		if got := f.comparedOf(t, 1); !got.NoReferenceBefore {
			t.Errorf("the first look has %+v", got)
		}
		batch := f.ChangePod(ft.BatchName(1))
		batch.Status.MetricRecord.Target.NoReferenceBefore = want
		f.Write(batch)
		if got := f.comparedOf(t, 1); got.NoReferenceBefore != want {
			t.Errorf("got %t, want %t", got.NoReferenceBefore, want)
		}
	}
}

// When the rollout is complete, the old pods have ended: the new pods of a DaemonSet have other names.
func TestTheOldPodsOfAnEarlierLookStayTheReference(t *testing.T) {
	const of = `namespace="default",pod=~"`
	check := func(t *testing.T, got judgev1alpha1.Target, want, old string) {
		t.Helper()
		if got.New != want || got.Old != old {
			t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, want, old)
		}
	}
	t.Run("of the same batch", func(t *testing.T) {
		f := newOwnedFixture(t, "DaemonSet", map[string]string{"ds-a": "new", "ds-b": "old", "ds-c": "old"}, "ds-a")
		check(t, f.comparedOf(t, 1), of+`ds-a"`, of+`ds-b|ds-c"`)
		f.deletePods(t, "ds-b")
		check(t, f.comparedOf(t, 1), of+`ds-a"`, of+`ds-b|ds-c"`)
		f.deletePods(t, "ds-c")
		f.addOwned(t, map[string]string{"ds-d": "new"})
		check(t, f.comparedOf(t, 1), of+`ds-a|ds-d"`, of+`ds-b|ds-c"`)
	})
	t.Run("of the first batch", func(t *testing.T) {
		f := newOwnedFixture(t, "DaemonSet", map[string]string{"ds-a": "new", "ds-b": "new", "ds-c": "old"}, "ds-a", "ds-b")
		check(t, f.comparedOf(t, 1), of+`ds-a|ds-b"`, of+`ds-c"`)
		f.deletePods(t, "ds-c")
		for range 2 {
			check(t, f.comparedOf(t, 2), of+`ds-a|ds-b"`, of+`ds-c"`)
			f.deletePods(t)
		}
	})
	t.Run("of a ReplicaSet that was deleted", func(t *testing.T) {
		f := newFixture(t, (&traffic{}).source, newBatch(1))
		release := f.ChangeWorkload(ft.Release)
		release.Spec.WorkloadRef.UID = "deployment"
		f.Write(release)
		check(t, f.compared(t), of+`sleep-new-.+"`, of+`sleep-old-.+"`)
		if err := f.Kube.AppsV1().ReplicaSets(ft.Namespace).Delete(t.Context(), "sleep-old", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.deletePods(t)
		check(t, f.compared(t), of+`sleep-new-.+"`, of+`sleep-old-.+"`)
	})
	// The new pods keep the names, so these show the version before, too. A pod that was deleted is no better reference.
	t.Run("not if new pods have their names", func(t *testing.T) {
		f := newOwnedFixture(t, "StatefulSet", map[string]string{"ds-2": "new", "ds-1": "old", "ds-0": "old", "ds-3": "old"}, "ds-2")
		check(t, f.comparedOf(t, 1), of+`ds-2"`, of+`ds-0|ds-1|ds-3"`)
		f.deletePods(t, "ds-1", "ds-3")
		f.addOwned(t, map[string]string{"ds-1": "new"})
		check(t, f.comparedOf(t, 1), of+`ds-1|ds-2"`, of+`ds-0"`)
		f.deletePods(t, "ds-0")
		f.addOwned(t, map[string]string{"ds-0": "new"})
		check(t, f.comparedOf(t, 1), of+`ds-0|ds-1|ds-2"`, "")
	})
}

// The names of pods that still run come first: they are compared at the same time.
func TestOfManyOldPodsThoseThatRunAreTheReference(t *testing.T) {
	pods := map[string]string{"new": "new"}
	var all []string
	for i := range 500 {
		all = append(all, fmt.Sprintf("ds-%04d", i))
		pods[all[i]] = "old"
	}
	f := newOwnedFixture(t, "DaemonSet", pods, "new")
	want := f.comparedOf(t, 1).Old
	f.addOwned(t, map[string]string{"ds-9998": "old", "ds-9999": "old"})
	f.deletePods(t, all[1:]...)
	old := f.comparedOf(t, 1).Old
	if strings.Count(want, "|") != 499 || strings.Count(old, "|") != 499 || !strings.Contains(old, `"ds-0000|ds-0001|`) || !strings.HasSuffix(old, `|ds-9998|ds-9999"`) {
		t.Errorf("%d names of old pods: %s", strings.Count(old, "|")+1, old)
	}
}

// Without old pods, the time before the change is that of earlier pods of the same names. Others have none.
func TestWhichNewPodsHaveNoReferenceBeforeTheChange(t *testing.T) {
	owned := func(kind string) *fixture {
		return newOwnedFixture(t, kind, map[string]string{"ds-a": "new", "ds-b": "old"}, "ds-a")
	}
	rollout := func(t *testing.T, name string) *fixture {
		f := newFixture(t, (&traffic{}).source, newBatch(1))
		release := f.ChangeWorkload(ft.Release)
		release.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: name, UID: "rollout"}
		f.Write(release)
		for _, hash := range []string{"-6f4f", "-7b9c"} {
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Namespace: ft.Namespace, Name: name + hash, UID: types.UID(hash),
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: name, UID: "rollout", Controller: new(true)}},
			}}
			if hash == "-7b9c" {
				rs.Annotations = map[string]string{v1alpha1.VersionKey: ft.Version, v1alpha1.AttemptAnnotation: "1"}
			}
			if err := f.Kube.Tracker().Add(rs); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	for name, tc := range map[string]struct {
		f    *fixture
		want bool
	}{
		"a Deployment":        {newFixture(t, (&traffic{}).source, newBatch(1)), true},
		"a Knative Service":   {newKnativeFixture(t, revision{"web-00001", ft.Version, "1", "web", "Revision"}), true},
		"no Revision is left": {newKnativeFixture(t), true},
		"a DaemonSet":         {owned("DaemonSet"), true},
		"a StatefulSet":       {owned("StatefulSet"), false},
		"an added kind":       {newStatefulSetFixture(t, ofStatefulSet("web-2", "new", -time.Minute)), false},
		// Their cut names do not show the version.
		"an added kind with ReplicaSets of long names": {rollout(t, strings.Repeat("a", 57)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.f.compared(t).NoReferenceBefore; got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
