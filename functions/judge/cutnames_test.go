package judge_test

import (
	"context"
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
	"github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

// cutNames is a release of a Deployment of which the API server cuts the names of pods.
type cutNames struct {
	*fixture
	deployment string
}

// newCutNames returns a release with two batches, one of each claimed pod, and without ReplicaSets.
func newCutNames(t *testing.T, deployment string, reader servers, claimed ...string) *cutNames {
	t.Helper()
	f := &cutNames{deployment: deployment}
	var batches []*v1alpha1.ChangePod
	for i, pod := range claimed {
		batches = append(batches, newBatch(i+1, func(p *v1alpha1.ChangePod) {
			p.OwnerReferences[0].UID = ft.NewRelease().UID
			p.Spec.PodInfos = []v1alpha1.PodSummary{{Pod: f.pod(pod), UID: types.UID(f.pod(pod))}}
			p.Spec.Judges[0].FailedVersions = []string{"failed"}
		}))
	}
	for i := range reader {
		reader[i].pod = f.pod(reader[i].pod)
	}
	f.fixture = newFixture(t, func(context.Context) (judge.Source, error) {
		return judge.Source{Reader: reader, Labels: judge.Labels{Namespace: "namespace", Pod: "pod"}}, nil
	}, batches...)
	for _, set := range []string{"sleep-new", "sleep-old"} {
		if err := f.Kube.AppsV1().ReplicaSets(ft.Namespace).Delete(t.Context(), set, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	release := f.ChangeWorkload(ft.Release)
	release.Spec.WorkloadRef.Name = deployment
	f.Write(release)
	return f
}

// pod returns the name of a pod of a ReplicaSet whose hash is cut.
func (f *cutNames) pod(suffix string) string { return (f.deployment + "-------")[:58] + suffix }

// add adds the ReplicaSet of a version, and its pods.
func (f *cutNames) add(t *testing.T, version, hash string, pods ...string) {
	t.Helper()
	attempt := "0"
	if version == ft.Version {
		attempt = "1"
	}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: ft.Namespace, Name: f.deployment + "-" + hash, UID: types.UID("set-" + hash),
		Annotations:     map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: attempt, savedtemplate.RevisionAnnotation: attempt},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: f.deployment, UID: "deployment", Controller: new(true)}},
	}}
	if err := f.Kube.Tracker().Add(set); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		f.addPod(t, f.pod(pod), set.Name, set.UID)
	}
}

func (f *cutNames) addPod(t *testing.T, name, set string, uid types.UID) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ft.Namespace, Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: uid, Controller: new(true)}},
	}}
	if err := f.Kube.Tracker().Add(pod); err != nil {
		t.Fatal(err)
	}
}

// names returns the matcher of pods.
func (f *cutNames) names(suffixes ...string) string {
	var names []string
	for _, suffix := range suffixes {
		names = append(names, f.pod(suffix))
	}
	return `namespace="default",pod=~"` + strings.Join(names, "|") + `"`
}

// All ReplicaSets of the Deployment have the same prefix of names.
func TestAReleaseWhosePodNamesAreCutIsJudged(t *testing.T) {
	const hour, end = -time.Hour, duration
	const few, many = 300, 20 // of the requests of a good and of a bad pod, each nth fails
	for name, tc := range map[string]struct {
		nth int
		// oldEnd is the end of the old pods.
		oldEnd time.Duration
		want   judgev1alpha1.Verdict
		reason string
	}{
		"a good version": {few, end, judgev1alpha1.VerdictPass, judgev1alpha1.ReasonNoChange},
		"a bad version":  {many, end, judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse},
		"a bad version whose rollout is complete early":  {many, 30 * time.Second, judgev1alpha1.VerdictFail, judgev1alpha1.ReasonMetricWorse},
		"a good version whose rollout is complete early": {few, 30 * time.Second, judgev1alpha1.VerdictPass, judgev1alpha1.ReasonNoChange},
	} {
		t.Run(name, func(t *testing.T) {
			reader := append(pods("new", 3, 0, end, tc.nth), pods("failed", 3, hour, end, many)...)
			f := newCutNames(t, strings.Repeat("a", 60), append(reader, pods("old", 7, hour, tc.oldEnd, few)...), "new-a", "new-b")
			f.add(t, ft.Version, "6f4f", "new-a", "new-b", "new-c")
			f.add(t, "v1", "7b9c", "old-a", "old-b", "old-c", "old-d", "old-e", "old-f", "old-g")
			f.add(t, "failed", "8c2d", "failed-a", "failed-b", "failed-c")
			want, old := f.names("new-a", "new-b", "new-c"), f.names("old-a", "old-b", "old-c", "old-d", "old-e", "old-f", "old-g")
			for n := 1; n <= 2; n++ {
				if got := f.comparedOf(t, n); got.New != want || got.Old != old {
					t.Fatalf("batch %d: compared %s with %s, want %s with %s", n, got.New, got.Old, want, old)
				}
			}
			if tc.oldEnd < end {
				f.deletePods(t, f.pod("old-a"), f.pod("old-b"), f.pod("old-c"), f.pod("old-d"), f.pod("old-e"), f.pod("old-f"), f.pod("old-g"))
			}
			if r := f.lookUntilFinal(t); r.Verdict != tc.want || r.Reason != tc.reason {
				t.Errorf("verdict %s, reason %s (%s), want %s, %s", r.Verdict, r.Reason, r.Message, tc.want, tc.reason)
			}
		})
	}
}

// The old pods are deleted at the success.
func TestAReleaseWhosePodNamesAreCutIsComparedWithItsOldPodsDuringProbation(t *testing.T) {
	reader := append(pods("new", 3, 0, duration+time.Hour, 20), pods("old", 7, -time.Hour, duration, 300)...)
	f := newCutNames(t, strings.Repeat("a", 60), reader, "new-a")
	f.add(t, ft.Version, "6f4f", "new-a", "new-b", "new-c")
	f.add(t, "v1", "7b9c")
	old := f.names("old-a", "old-b", "old-c", "old-d", "old-e", "old-f", "old-g")
	batch := f.ChangePod(ft.BatchName(1))
	passed := passedBatch()
	batch.Spec.Judges[0].ProbationSeconds = passed.Spec.Judges[0].ProbationSeconds
	batch.Status = passed.Status
	batch.Status.MetricRecord.Target.Old = old
	f.Write(batch)
	f.onProbation(t, 0, 10*time.Minute)
	if err := f.wake(t, 1); err != nil {
		t.Fatal(err)
	}
	r := f.ChangePod(ft.BatchName(1)).Status.Probation
	if r.Target.Old != old || r.Verdict != judgev1alpha1.VerdictFail || r.Reason != judgev1alpha1.ReasonMetricWorse {
		t.Errorf("compared with %q: verdict %s, reason %s (%s)", r.Target.Old, r.Verdict, r.Reason, r.Message)
	}
}

func TestThePodsOfReplicaSetsWhoseNamesAreCut(t *testing.T) {
	const partly = 56 // of the hash, one character is left
	for name, tc := range map[string]struct {
		length   int
		sets     map[string]string // hash to version
		new, old string
	}{
		"the hash is cut": {60, map[string]string{"6f4f": ft.Version, "7b9c": "v1"}, "new|x-6f4f", "x-7b9c"},
		// The pods of another Deployment, or of an earlier version, may have the prefix.
		"the hash is cut, and no other version exists":       {60, map[string]string{"6f4f": ft.Version}, "new|x-6f4f", ""},
		"the hash is cut, and all other pods failed":         {60, map[string]string{"6f4f": ft.Version, "7b9c": "failed"}, "new|x-6f4f", ""},
		"partly, and the rest differs":                       {partly, map[string]string{"6f4f": ft.Version, "7b9c": "v1"}, "6.+", "7.+"},
		"partly, and an old one has the rest":                {partly, map[string]string{"6f4f": ft.Version, "6b9c": "v1", "7b9c": "v0"}, "new|x-6f4f", "7.+|x-6b9c"},
		"partly, and one that failed has the rest":           {partly, map[string]string{"6f4f": ft.Version, "6b9c": "failed", "7b9c": "v0"}, "new|x-6f4f", "7.+"},
		"partly, and an old one and one that failed have it": {partly, map[string]string{"6f4f": ft.Version, "7b9c": "failed", "7d8e": "v0"}, "6.+", "x-7d8e"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCutNames(t, strings.Repeat("a", tc.length), nil, "new") // the pod was deleted
			for hash, version := range tc.sets {
				f.add(t, version, hash)
				f.addPod(t, "x-"+hash, f.deployment+"-"+hash, types.UID("set-"+hash))
			}
			matcher := func(patterns string) string {
				if patterns == "" {
					return ""
				}
				var out []string
				for p := range strings.SplitSeq(patterns, "|") {
					switch {
					case p == "new":
						p = f.pod(p)
					case strings.HasSuffix(p, ".+"):
						p = f.deployment + "-" + p
					}
					out = append(out, p)
				}
				return `namespace="default",pod=~"` + strings.Join(out, "|") + `"`
			}
			if got := f.compared(t); got.New != matcher(tc.new) || got.Old != matcher(tc.old) {
				t.Errorf("compared %s with %s, want %s with %s", got.New, got.Old, matcher(tc.new), matcher(tc.old))
			}
		})
	}
}
