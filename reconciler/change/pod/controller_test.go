package pod

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgotesting "k8s.io/client-go/testing"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// outbox keeps what was sent.
type outbox struct {
	mu   sync.Mutex
	sent []cloudevents.Event
}

func (o *outbox) Send(_ context.Context, e cloudevents.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent = append(o.sent, e)
}

func (o *outbox) all() []cloudevents.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]cloudevents.Event(nil), o.sent...)
}

func namespace(optedIn bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if optedIn {
		ns.Labels = map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}
	}
	return ns
}

func replicaSet(attempt string) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sleep-1", UID: "r",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep", UID: "d", Controller: new(true)}}}}
	if attempt != "" {
		rs.Annotations = map[string]string{v1alpha1.VersionKey: "v1", v1alpha1.AttemptAnnotation: attempt}
	}
	return rs
}

func readyPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "sleep-1", UID: "r", Controller: new(true)}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func waiting(name string) *corev1.Pod {
	p := readyPod(name)
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	return p
}

// running is a controller with a fake API server.
type running struct {
	kube kubernetes.Interface
	sent *outbox
}

func start(t *testing.T, objects ...runtime.Object) running {
	t.Helper()
	ctx, cancel, informers := rtesting.SetupFakeContextWithCancel(t)
	kube := fakekubeclient.Get(ctx)
	for _, o := range objects {
		if err := kube.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	r := running{kube: kube, sent: &outbox{}}
	impl := NewController(ctx, nil, r.sent)
	stopped, err := rtesting.RunAndSyncInformers(ctx, informers...)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- impl.RunContext(ctx, 2) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stopped()
	})
	return r
}

// wait waits until the pod has the label.
func (r running) wait(t *testing.T, pod string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		p, err := r.kube.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		return err == nil && p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue, err
	})
	if err != nil {
		t.Fatalf("pod %s was not labeled: %v", pod, err)
	}
}

func TestAReadyPodIsLabelledAndReported(t *testing.T) {
	r := start(t, namespace(true), replicaSet("2"), waiting("sleep-1-a"))
	if _, err := r.kube.CoreV1().Pods("default").UpdateStatus(t.Context(), readyPod("sleep-1-a"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wait(t, "sleep-1-a")

	want := events.PodFinished{
		Namespace: "default", Pod: "sleep-1-a", PodUID: "uid-sleep-1-a", Version: "v1", Attempt: 2,
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "sleep"},
	}
	event, err := events.New(want)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return len(r.sent.all()) > 0, nil
	})
	if err != nil {
		t.Fatal("no event was sent")
	}
	if diff := cmp.Diff([]cloudevents.Event{event}, r.sent.all()); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestAPodIsLabeledWhicheverCacheSyncsLast(t *testing.T) {
	tests := map[string]struct {
		before []runtime.Object
		last   func(context.Context, kubernetes.Interface) error
	}{
		"the ReplicaSet": {
			before: []runtime.Object{namespace(true), readyPod("p")},
			last: func(ctx context.Context, kube kubernetes.Interface) error {
				_, err := kube.AppsV1().ReplicaSets("default").Create(ctx, replicaSet("1"), metav1.CreateOptions{})
				return err
			},
		},
		"the release on the ReplicaSet": {
			before: []runtime.Object{namespace(true), replicaSet(""), readyPod("p")},
			last: func(ctx context.Context, kube kubernetes.Interface) error {
				_, err := kube.AppsV1().ReplicaSets("default").Update(ctx, replicaSet("1"), metav1.UpdateOptions{})
				return err
			},
		},
		"the label of the namespace": {
			before: []runtime.Object{namespace(false), replicaSet("1"), readyPod("p")},
			last: func(ctx context.Context, kube kubernetes.Interface) error {
				_, err := kube.CoreV1().Namespaces().Update(ctx, namespace(true), metav1.UpdateOptions{})
				return err
			},
		},
		"the pod": {
			before: []runtime.Object{namespace(true), replicaSet("1")},
			last: func(ctx context.Context, kube kubernetes.Interface) error {
				_, err := kube.CoreV1().Pods("default").Create(ctx, readyPod("p"), metav1.CreateOptions{})
				return err
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := start(t, tc.before...)
			if err := tc.last(t.Context(), r.kube); err != nil {
				t.Fatal(err)
			}
			r.wait(t, "p")
		})
	}
}

func TestOnlyADuePodIsPatched(t *testing.T) {
	stranger := readyPod("stranger")
	stranger.OwnerReferences[0].UID = "another ReplicaSet of the name"
	standalone := readyPod("standalone")
	standalone.OwnerReferences = nil
	finished := readyPod("finished")
	finished.Labels = map[string]string{v1alpha1.FinishedLabel: v1alpha1.FinishedValue}
	r := start(t, namespace(true), replicaSet("1"), stranger, standalone, finished, waiting("waiting"), readyPod("due"))
	r.wait(t, "due")

	patch := `{"metadata":{"labels":{"altershield.defense.antgroup.com/operate-finished":"true"},"uid":"uid-due"}}`
	var got []string
	for _, a := range r.kube.(interface {
		Actions() []clientgotesting.Action
	}).Actions() {
		switch a := a.(type) {
		case clientgotesting.PatchAction:
			got = append(got, a.GetName()+" "+string(a.GetPatch()))
		case clientgotesting.UpdateAction, clientgotesting.DeleteAction:
			got = append(got, a.GetVerb())
		}
	}
	// The pod may be reconciled again before the cache has its label.
	if diff := cmp.Diff([]string{"due " + patch}, slices.Compact(got)); diff != "" {
		t.Error("(-want +got):", diff)
	}
}
