package builder

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// SuspendedAt is the value of the suspend label that Held sets:
// 2023-11-14T22:13:20Z in Unix seconds.
const SuspendedAt = "1700000000"

// Option changes a Deployment.
type Option func(*appsv1.Deployment)

// StoredDeployment returns Deployment default/sleep with one container of image
// busybox:1, as the API server stores it: with UID and namespace.
func StoredDeployment(options ...Option) *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "sleep", Namespace: "default", UID: "sleep-uid",
			Labels: map[string]string{"app": "sleep"},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sleep"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "sleep"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sleep", Image: "busybox:1"}}},
			},
		},
	}
	for _, o := range options {
		o(d)
	}
	return d
}

// Image sets the image, and so changes the template.
func Image(image string) Option {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
}

// Name sets the name.
func Name(name string) Option { return func(d *appsv1.Deployment) { d.Name = name } }

// Label sets a label.
func Label(key, value string) Option {
	return func(d *appsv1.Deployment) { put(&d.Labels, key, value) }
}

// Annotation sets an annotation.
func Annotation(key, value string) Option {
	return func(d *appsv1.Deployment) { put(&d.Annotations, key, value) }
}

// WithoutLabel removes a label.
func WithoutLabel(key string) Option { return func(d *appsv1.Deployment) { delete(d.Labels, key) } }

// WithoutAnnotation removes an annotation.
func WithoutAnnotation(key string) Option {
	return func(d *appsv1.Deployment) { delete(d.Annotations, key) }
}

// Bare removes all labels and annotations.
func Bare(d *appsv1.Deployment) { d.Labels, d.Annotations = nil, nil }

// Paused sets spec.paused.
func Paused(paused bool) Option { return func(d *appsv1.Deployment) { d.Spec.Paused = paused } }

// Versioned sets the label and the annotations that the webhook sets: the version of
// the template at the time when the option is applied, and the attempt.
func Versioned(attempt int64) Option {
	return func(d *appsv1.Deployment) {
		version := Version(d)
		put(&d.Labels, v1alpha1.VersionKey, version)
		put(&d.Annotations, v1alpha1.VersionKey, version)
		put(&d.Annotations, v1alpha1.AttemptAnnotation, strconv.FormatInt(attempt, 10))
	}
}

// Held suspends the Deployment as the controller does during a rollout.
func Held(d *appsv1.Deployment) {
	put(&d.Labels, v1alpha1.SuspendLabel, SuspendedAt)
	put(&d.Annotations, v1alpha1.HoldAnnotation, `{"attempt":1,"paused":false}`)
	d.Spec.Paused = true
}

// Now is the time of the records that the builders write.
var Now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// Bypassed sets the annotation that records a bypass; a zero time becomes Now.
func Bypassed(b v1alpha1.Bypass) Option {
	if b.Time.IsZero() {
		b.Time = metav1.NewTime(Now)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		panic(err) // a struct of strings and a number
	}
	return Annotation(v1alpha1.BypassAnnotation, string(raw))
}

// Workload returns the Deployment as a Workload.
func Workload(t *testing.T, d *appsv1.Deployment) *workload.Workload {
	t.Helper()
	w, err := workload.Read(workload.Deployment, JSON(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Version returns the version of the Deployment's template.
func Version(d *appsv1.Deployment) string {
	version, err := workload.Version(workload.Deployment, &d.Spec.Template)
	if err != nil {
		panic(err) // a template of the types above always encodes
	}
	return version
}

// ChangeWorkload returns the ChangeWorkload of a Deployment's current template.
func ChangeWorkload(d *appsv1.Deployment, attempt int64, phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	version := Version(d)
	return &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.ChangeWorkloadName(d.Name, version), Namespace: d.Namespace,
			Labels: map[string]string{v1alpha1.DeploymentNameLabel: v1alpha1.LabelValue(d.Name)},
		},
		Spec: v1alpha1.ChangeWorkloadSpec{
			Reversion:   version,
			Attempt:     attempt,
			WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID},
		},
		Status: v1alpha1.ChangeWorkloadStatus{Phase: phase},
	}
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// JSON returns the JSON of an object.
func JSON(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Raw returns an object as a field of an admission request.
func Raw(t *testing.T, o any) runtime.RawExtension {
	t.Helper()
	return runtime.RawExtension{Raw: JSON(t, o)}
}
