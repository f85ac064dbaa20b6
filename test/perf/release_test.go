//go:build bench

package perf

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/test/e2e/judge"
)

const (
	pods    = 50
	name    = "web"
	account = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":"
	limit   = 5 * time.Minute
	results = "../../docs/performance.md"
)

type bench struct {
	kube   kubernetes.Interface
	change versioned.Interface
	audit  string
}

// TestARelease is a measurement in the shape of a test: it fails when the
// release does not end, never because it was slow.
func TestARelease(t *testing.T) {
	audit := os.Getenv("AUDIT_LOG")
	if audit == "" {
		t.Fatal("AUDIT_LOG is not set: run make bench")
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	b := &bench{kube: kubernetes.NewForConfigOrDie(config), change: versioned.NewForConfigOrDie(config), audit: audit}
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
	defer cancel()

	if err := judge.Install(ctx, b.kube, os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := judge.Configure(ctx, b.kube); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := judge.Unconfigure(context.WithoutCancel(ctx), b.kube); err != nil {
			t.Error(err)
		}
	})

	bare := b.release(ctx, t, "bench-bare", false)
	guarded := b.release(ctx, t, "bench-guarded", true)
	report := table(bare, guarded)
	t.Log("\n" + report)
	if err := os.WriteFile(results, []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
}

// measured is what one release took.
type measured struct {
	rolledOut, succeeded time.Duration
	writes               map[string]writes
}

// release rolls a Deployment out once, so that everything is warm, and
// measures the second time.
func (b *bench) release(ctx context.Context, t *testing.T, namespace string, optIn bool) measured {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{}}}
	if optIn {
		ns.Labels[v1alpha1.NamespaceLabel] = v1alpha1.NamespaceEnabled
	}
	if _, err := b.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrs.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := b.kube.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	if _, err := b.kube.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitRollOut(ctx, t, namespace)
	if optIn {
		b.awaitSuccess(ctx, t, namespace)
	}

	since, err := auditSize(b.audit)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = b.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"labels":{"release":"2"}}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.awaitRollOut(ctx, t, namespace)
	m := measured{rolledOut: time.Since(began)}
	if optIn {
		b.awaitSuccess(ctx, t, namespace)
		m.succeeded = time.Since(began)
	}
	if m.writes, err = countWrites(b.audit, since, account, namespace); err != nil {
		t.Fatal(err)
	}
	return m
}

func (b *bench) awaitRollOut(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		d, err := b.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == pods && s.AvailableReplicas == pods && s.Replicas == pods, nil
	})
	if err != nil {
		t.Fatalf("the roll-out in %s did not end: %v", namespace, err)
	}
}

func (b *bench) awaitSuccess(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
		d, err := b.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c, err := b.change.AppV1alpha1().ChangeWorkloads(namespace).Get(ctx,
			v1alpha1.ChangeWorkloadName(name, d.Labels[v1alpha1.VersionKey]), metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			return false, nil
		}
		return err == nil && c.Status.Phase == v1alpha1.WorkloadSuccess, err
	})
	if err != nil {
		t.Fatalf("the release in %s did not succeed: %v", namespace, err)
	}
}

// deployment is one of simulated pods that end at once.
func deployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](pods),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					NodeSelector:                  map[string]string{"type": "kwok"},
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					Containers:                    []corev1.Container{{Name: "web", Image: "busybox"}},
				},
			},
		},
	}
}

func table(bare, guarded measured) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# Performance\n\nWritten by `make bench` on %s, %d cores, embedded cluster. ", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU())
	fmt.Fprintf(&s, "A release of %d simulated pods, one pod a batch, surge 25 %%, a judge that answers at once.\n\n", pods)
	fmt.Fprintf(&s, "| measure | bare | guarded | ratio |\n|---|---|---|---|\n")
	fmt.Fprintf(&s, "| roll-out complete | %.1f s | %.1f s | %.2f |\n", bare.rolledOut.Seconds(), guarded.rolledOut.Seconds(),
		guarded.rolledOut.Seconds()/bare.rolledOut.Seconds())
	fmt.Fprintf(&s, "| Success after the roll-out | - | %.1f s | - |\n\n", (guarded.succeeded - guarded.rolledOut).Seconds())
	fmt.Fprintf(&s, "Writes to the API server (from its audit log):\n\n| binary | writes | a pod | refused (conflicts) | Events |\n|---|---|---|---|---|\n")
	var total writes
	binaries := make([]string, 0, len(guarded.writes))
	for binary := range guarded.writes {
		binaries = append(binaries, binary)
	}
	slices.Sort(binaries)
	row := func(binary string, n writes) {
		fmt.Fprintf(&s, "| %s | %d | %.2f | %d | %d |\n", binary, n.Objects, float64(n.Objects)/pods, n.Refused, n.Events)
	}
	for _, binary := range binaries {
		n := guarded.writes[binary]
		row(binary, n)
		total.Objects, total.Refused, total.Events = total.Objects+n.Objects, total.Refused+n.Refused, total.Events+n.Events
	}
	row("all", total)
	return s.String()
}
