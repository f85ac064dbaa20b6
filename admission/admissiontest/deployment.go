// Package admissiontest builds Deployments and admission requests for tests,
// and applies the patches that come back.
package admissiontest

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Suspended is the suspend label's value of held Deployments here:
// 2023-11-14T22:13:20Z.
const Suspended = "1700000000"

// Option changes a Deployment.
type Option func(*appsv1.Deployment)

// Deployment returns default/sleep with one container of image busybox:1, as
// the API server would show it.
func Deployment(options ...Option) *appsv1.Deployment {
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

// Image makes the template another one.
func Image(image string) Option {
	return func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image }
}

// Named gives it another name.
func Named(name string) Option { return func(d *appsv1.Deployment) { d.Name = name } }

// Label sets a label.
func Label(key, value string) Option {
	return func(d *appsv1.Deployment) { put(&d.Labels, key, value) }
}

// Annotation sets an annotation.
func Annotation(key, value string) Option {
	return func(d *appsv1.Deployment) { put(&d.Annotations, key, value) }
}

// NoLabel removes a label.
func NoLabel(key string) Option { return func(d *appsv1.Deployment) { delete(d.Labels, key) } }

// NoAnnotation removes an annotation.
func NoAnnotation(key string) Option {
	return func(d *appsv1.Deployment) { delete(d.Annotations, key) }
}

// Bare removes all labels and annotations.
func Bare(d *appsv1.Deployment) { d.Labels, d.Annotations = nil, nil }

// Paused sets spec.paused.
func Paused(paused bool) Option { return func(d *appsv1.Deployment) { d.Spec.Paused = paused } }

// Stamped writes what the webhook writes: the version of the template as it is
// when the option is applied, and the attempt.
func Stamped(attempt int64) Option {
	return func(d *appsv1.Deployment) {
		version := Version(d)
		put(&d.Labels, v1alpha1.VersionKey, version)
		put(&d.Annotations, v1alpha1.VersionKey, version)
		put(&d.Annotations, v1alpha1.AttemptAnnotation, strconv.FormatInt(attempt, 10))
	}
}

// Held suspends it as the controller does while a roll-out is in progress.
func Held(d *appsv1.Deployment) {
	put(&d.Labels, v1alpha1.SuspendLabel, Suspended)
	put(&d.Annotations, v1alpha1.HoldAnnotation, `{"attempt":1,"paused":false}`)
	d.Spec.Paused = true
}

// Now is when everything happens here.
var Now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// Bypassed writes the record of a bypass, of Now where it has no time.
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

// Workload is the Deployment as admission sees it.
func Workload(t *testing.T, d *appsv1.Deployment) *workload.Workload {
	t.Helper()
	w, err := workload.Read(workload.Deployment, Encode(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Version is the version of the Deployment's template.
func Version(d *appsv1.Deployment) string {
	version, err := workload.Version(workload.Deployment, &d.Spec.Template)
	if err != nil {
		panic(err) // a template of the types above always encodes
	}
	return version
}

// ChangeWorkload returns that of a Deployment's present template.
func ChangeWorkload(d *appsv1.Deployment, attempt int64, phase v1alpha1.WorkloadPhase) *v1alpha1.ChangeWorkload {
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

// Encode returns the JSON of an object.
func Encode(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
