package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
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
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: meta.Name, UID: meta.UID, Controller: ptr.To(true)}}
	if r.owner != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: r.owner, Name: r.name, Controller: ptr.To(true)}}
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

// The API server cuts the name of a ReplicaSet to 58 characters for its pods.
func TestThePodsOfAReplicaSetWithALongNameAreFound(t *testing.T) {
	of := func(name, version, attempt string) revision {
		return revision{name, version, attempt, "web", "Revision"}
	}
	for name, tc := range map[string]struct {
		service, pod string
		// alike: the names of the pods do not tell the version.
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
