package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func namespace(labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: labels}}
}

var (
	// succeededAt is when the releases succeeded.
	succeededAt = metav1.NewTime(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	optedIn     = namespace(map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled})
	// ofWebhook sets the version that the webhook computes from a template with fields that the plugin does not have.
	ofWebhook = builder.Annotation(v1alpha1.VersionKey, strings.Repeat("f", 32))
)

// at is Deployment default/sleep with an image and the release that the webhook writes for it.
func at(attempt int64, image string, more ...builder.Option) *appsv1.Deployment {
	return builder.StoredDeployment(append([]builder.Option{builder.Image(image), builder.Versioned(attempt)}, more...)...)
}

// cluster is a cluster with the Deployment, and with the ChangeWorkload and the saved template of each release
// that passed.
func cluster(t *testing.T, namespace *corev1.Namespace, live *appsv1.Deployment, passed ...*appsv1.Deployment) *clients {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(workload.Deployment.GroupVersionKind, meta.RESTScopeNamespace)
	for _, kind := range []string{"ChangeWorkload", "ChangePod"} {
		mapper.Add(v1alpha1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	kube := kubefake.NewClientset(namespace)
	c := &clients{kube: kube, breakwater: fake.NewSimpleClientset(), mapper: mapper, namespace: "default", flags: " --context c",
		dynamic: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), unstructuredOf(t, live))}
	for _, d := range passed {
		release, _ := v1alpha1.ReleaseOf(d.Annotations)
		saved, err := savedtemplate.Build(builder.Workload(t, d), release, builder.JSON(t, d.Spec.Template))
		if err != nil {
			t.Fatal(err)
		}
		if err := kube.Tracker().Add(saved); err != nil {
			t.Fatal(err)
		}
		r := builder.ChangeWorkload(d, release.Attempt, v1alpha1.ReleaseSuccess)
		r.UID, r.Spec.Reversion = types.UID(r.Name), release.Version
		r.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue, LastTransitionTime: apis.VolatileTime{Inner: succeededAt}}}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, workload.Deployment.GroupVersionKind)}
		r.APIVersion, r.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangeWorkload"
		c.add(t, r)
	}
	return c
}

// addReplicaSets adds a ReplicaSet for each state of Deployment default/sleep.
func (c *clients) addReplicaSets(t *testing.T, states ...*appsv1.Deployment) {
	t.Helper()
	for i, d := range states {
		name := fmt.Sprint(i)
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.Namespace, Annotations: d.Annotations, CreationTimestamp: d.CreationTimestamp,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, workload.Deployment.GroupVersionKind)}}}
		d.Spec.Template.DeepCopyInto(&rs.Spec.Template)
		rs.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = name
		if _, err := c.kube.AppsV1().ReplicaSets(d.Namespace).Create(t.Context(), rs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// add adds an object of Breakwater.
func (c *clients) add(t *testing.T, o runtime.Object) {
	t.Helper()
	typed, typedOK := c.breakwater.(*fake.Clientset)
	untyped, untypedOK := c.dynamic.(*dynamicfake.FakeDynamicClient)
	if !typedOK || !untypedOK {
		t.Fatal("not a fake cluster")
	}
	for _, err := range []error{typed.Tracker().Add(o), untyped.Tracker().Add(unstructuredOf(t, o))} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unstructuredOf(t *testing.T, o any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(builder.JSON(t, o)); err != nil {
		t.Fatal(err)
	}
	return u
}
