package judge_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// checkLists reports lists that are not read in pages. The API server ignores the limit of one of resourceVersion "0".
func (f *fixture) checkLists(t *testing.T, want int) {
	t.Helper()
	n := 0
	for _, a := range f.Kube.Actions() {
		list, ok := a.(clienttesting.ListActionImpl)
		if !ok {
			continue
		}
		n++
		if list.ListOptions.Limit == 0 || list.ListOptions.ResourceVersion == "0" {
			t.Errorf("the list of %s has options %+v", list.Resource.Resource, list.ListOptions)
		}
	}
	if n != want {
		t.Errorf("%d lists, want %d", n, want)
	}
}

// Users choose the size of these objects, and a namespace may have thousands.
func TestTheObjectsOfANamespaceAreReadInPages(t *testing.T) {
	for name, tc := range map[string]struct {
		fixture *fixture
		lists   int
	}{
		"ReplicaSets":                      {newFixture(t, (&traffic{}).source, newBatch(1)), 1},
		"pods and ControllerRevisions":     {newStatefulSetFixture(t), 3},
		"Deployments of a Knative Service": {newKnativeFixture(t, revision{"web-00001", ft.Version, "1", "web", "Revision"}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.fixture.wake(t, 1); err != nil {
				t.Fatal(err)
			}
			tc.fixture.checkLists(t, tc.lists)
		})
	}
}

func TestAReleaseWithTooManyPodsIsNotJudged(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 9 {
		owners := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: strings.Repeat("x", 1<<20), UID: "web", Controller: new(true)}}
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ft.Namespace, Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprint(i)),
			OwnerReferences: owners, Labels: map[string]string{"controller-revision-hash": "a"}}})
	}
	f := newStatefulSetFixture(t, pods...)
	if err := f.wake(t, 1); err == nil || !strings.Contains(err.Error(), "more than 8 MiB, the limit") {
		t.Errorf("error %v", err)
	}
	if record := f.ChangePod(ft.BatchName(1)).Status.MetricRecord; record != nil {
		t.Errorf("record %+v", record)
	}
}

func TestBatchesOfAReleaseThatAreLookedAtTogetherFindItOnce(t *testing.T) {
	f := newFixture(t, (&traffic{}).source, newBatch(1), newBatch(2), newBatch(3))
	var looks sync.WaitGroup
	for n := range 3 {
		looks.Go(func() {
			if err := f.wake(t, n+1); err != nil {
				t.Error(err)
			}
		})
	}
	looks.Wait()
	f.checkLists(t, 1)
}

func TestAReleaseWithTooManyRecordedVersionsIsNotJudged(t *testing.T) {
	f := newStatefulSetFixture(t)
	batch := f.ChangePod(ft.BatchName(1))
	batch.Spec.Judges[0].FailedVersions = []string{"v2"}
	f.Write(batch)
	for i := range 9 {
		r := controllerRevision(fmt.Sprint("web-", i), 1, "web", true)
		r.Data.Raw = []byte(`{"spec": {"template": {"$patch": "replace", "spec": {}}}}`)
		r.Annotations = map[string]string{v1alpha1.VersionKey: strings.Repeat("x", 1<<20), v1alpha1.AttemptAnnotation: "1"}
		if err := f.Kube.Tracker().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	want := "list ControllerRevisions: the names and versions of the first 8 of them have more than 8 MiB, the limit"
	if err := f.wake(t, 1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}
