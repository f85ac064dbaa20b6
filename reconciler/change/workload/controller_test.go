package workload

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgotesting "k8s.io/client-go/testing"
	fakekubeclient "knative.dev/pkg/client/injection/kube/client/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset/fake"
	_ "knative.dev/pkg/client/injection/kube/informers/core/v1/pod/fake"
	"knative.dev/pkg/configmap"
	fakedynamicclient "knative.dev/pkg/injection/clients/dynamicclient/fake"
	"knative.dev/pkg/reconciler"
	rtesting "knative.dev/pkg/reconciler/testing"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	fakechangeclient "github.com/breakwater-dev/breakwater/client/injection/client/fake"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer/workloadinformertest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

var deployments = workload.Deployment.GroupVersionResource()

// api is the API server that a running controller works on.
type api struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	client  versioned.Interface
}

// start runs the controller over an API server that has the objects, and whose
// webhook writes the baseline to a Deployment that is updated, or attempt 2 if it has a release.
func start(t *testing.T, objects ...runtime.Object) api {
	t.Helper()
	ctx, cancel, informers := rtesting.SetupFakeContextWithCancel(t)
	kube, client := fakekubeclient.Get(ctx), fakechangeclient.Get(ctx)
	for _, o := range append(objects, optedIn("kube-system")) {
		if _, ok := o.(*appsv1.Deployment); ok {
			workloadinformertest.Add(ctx, t, o)
			continue
		}
		if err := kube.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	dynamic := fakedynamicclient.Get(ctx)
	dynamic.PrependReactor("patch", "deployments", func(a clientgotesting.Action) (bool, runtime.Object, error) {
		stored, err := dynamic.Tracker().Get(deployments, a.GetNamespace(), "sleep")
		if err != nil {
			return true, nil, err
		}
		updated := workloadinformertest.Unstructured(t, sleep(t, "0"))
		if _, known := v1alpha1.ReleaseOf(stored.(*unstructured.Unstructured).GetAnnotations()); known {
			updated = workloadinformertest.Unstructured(t, sleep(t, "2"))
		}
		return true, updated, dynamic.Tracker().Update(deployments, updated, a.GetNamespace())
	})
	impl := NewController(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: altershield.ConfigMapName}, Data: map[string]string{"cluster-name": "c1"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: workload.ConfigMapName}}))
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
	return api{kube: kube, dynamic: dynamic, client: client}
}

// wait waits for a ChangeWorkload of the attempt and returns it.
func (a api) wait(t *testing.T, attempt int64) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		all, err := a.client.AppV1alpha1().ChangeWorkloads("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(all.Items) != 1 {
			return false, err
		}
		found = &all.Items[0]
		return found.Spec.Attempt == attempt, nil
	})
	if err != nil {
		t.Fatalf("no ChangeWorkload of attempt %d: %v", attempt, err)
	}
	return found
}

func TestOptingInANamespaceRecordsRunningVersionsAsBaseline(t *testing.T) {
	a := start(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, sleep(t, ""))
	if _, err := a.kube.CoreV1().Namespaces().Update(t.Context(), optedIn("default"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := a.wait(t, 0)
	if want := "c1/default/Deployment/sleep/d/" + builder.Version(sleep(t, "")) + "/0"; got.Spec.OrderID != want {
		t.Errorf("orderId = %q, want %q", got.Spec.OrderID, want)
	}
}

func TestANewAttemptReplacesTheChangeWorkload(t *testing.T) {
	a := start(t, optedIn("default"), sleep(t, "1"))
	a.wait(t, 1)
	newer := workloadinformertest.Unstructured(t, sleep(t, "2"))
	if _, err := a.dynamic.Resource(deployments).Namespace("default").Update(t.Context(), newer, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.wait(t, 2)
}

// While the rollout is paused, no ReplicaSet shows it.
func TestAStatusUpdateShowsThatTheWebhookMissedATemplateOfAPausedDeployment(t *testing.T) {
	d := sleep(t, "1")
	d.Spec.Paused, d.Spec.Template.Labels = true, map[string]string{"release": "missed"}
	d.Generation, d.ResourceVersion = 2, "1"
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1}
	a := start(t, optedIn("default"), d)
	a.wait(t, 1)
	d.ResourceVersion, d.Status = "2", appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1}
	if _, err := a.dynamic.Resource(deployments).Namespace("default").Update(t.Context(), workloadinformertest.Unstructured(t, d), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.wait(t, 2)
}

func TestADeletedChangeWorkloadIsCreatedAgain(t *testing.T) {
	a := start(t, optedIn("default"), sleep(t, "1"))
	c := a.wait(t, 1)
	if err := a.client.AppV1alpha1().ChangeWorkloads("default").Delete(t.Context(), c.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.wait(t, 1)
}

func TestTheControllerDecidesAnewAfterItLostItsLastBucket(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	r, err := newReconciler(ctx, configmap.NewStaticWatcher(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: altershield.ConfigMapName}}))
	if err != nil {
		t.Fatal(err)
	}
	promote := func() {
		if err := r.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
			t.Fatal(err)
		}
	}
	promote()
	r.decidingSince.Get(now)
	r.Demote(reconciler.UniversalBucket())
	promote()
	if again := now.Add(time.Hour); !r.decidingSince.Get(again).Equal(again) {
		t.Errorf("it decides since %s, want since %s", r.decidingSince.Get(again), again)
	}
}
