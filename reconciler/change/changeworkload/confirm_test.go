package changeworkload

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// failed returns a batch with one pod that failed its check.
func failed(owner types.UID) *v1alpha1.ChangePod {
	yes := true
	p := &v1alpha1.ChangePod{ObjectMeta: metav1.ObjectMeta{
		Namespace: corev1.NamespaceDefault, Name: "a--x--v--x--1", Labels: map[string]string{v1alpha1.VersionKey: "v"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ChangeWorkload", Name: "a--x--v", UID: owner, Controller: &yes}},
	}}
	p.Spec.PodInfos = []v1alpha1.PodSummary{{Pod: "p1"}}
	p.Status.Verdicts = []v1alpha1.StageVerdict{{Stage: v1alpha1.StagePost, Verdict: "fail"}}
	return p
}

func TestAStaleCacheChangesNoHold(t *testing.T) {
	release := attempt(2)
	release.Name, release.Namespace, release.UID = "a--x--v", corev1.NamespaceDefault, "c"
	release.Labels = map[string]string{v1alpha1.VersionKey: "v"}
	s := settings.Default()
	s.Blocking = true
	now := time.Unix(1700000000, 0)

	cached := rolling()
	cached.Namespace = corev1.NamespaceDefault
	held := cached.DeepCopy()
	held.ResourceVersion = "8"
	held.Labels[v1alpha1.SuspendLabel] = "1"
	held.Annotations[v1alpha1.HoldAnnotation] = `{"attempt":2}`
	held.Spec.Paused = true
	r := &Reconciler{
		dynamic: dynamicfake.NewSimpleDynamicClient(scheme.Scheme, held),
		client:  fake.NewSimpleClientset(release, failed(release.UID)),
	}

	t.Run("an existing hold is not taken for a pause by a person", func(t *testing.T) {
		in := Input{Now: now, Settings: s, ChangeWorkload: release, Workload: workloadOf(of(t, cached), workload.ExcludedNodes{}), ChangePods: []*v1alpha1.ChangePod{failed("c")}}
		if got := Decide(in).Action; got != ActionSuspend {
			t.Fatalf("the decision on the cached objects is %q", got)
		}
		if err := r.act(t.Context(), in, of(t, cached), ActionSuspend); !errors.Is(err, errStaleCache) {
			t.Errorf("got %v, want errStaleCache", err)
		}
	})
	t.Run("a hold does not end while its fail is not cached", func(t *testing.T) {
		in := Input{Now: now, Settings: s, ChangeWorkload: release.DeepCopy(), Workload: workloadOf(of(t, held), workload.ExcludedNodes{})}
		in.ChangeWorkload.Status.Phase = v1alpha1.ReleaseRunning
		if got := Decide(in).Action; got != ActionResume {
			t.Fatalf("the decision on the cached objects is %q", got)
		}
		if err := r.act(t.Context(), in, of(t, held), ActionResume); !errors.Is(err, errStaleCache) {
			t.Errorf("got %v, want errStaleCache", err)
		}
	})
}
