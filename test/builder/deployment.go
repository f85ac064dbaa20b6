// Package builder builds workloads and manifests for tests.
package builder

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Marker is an annotation of the pod template. Each release has another value.
const Marker = "test.breakwater.dev/release"

// Deployment returns a Deployment whose pods sleep and have no grace period. Its
// templates differ only in the marker.
func Deployment(name string, replicas int32, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	// A label value has 63 characters at most, a name 253.
	app := map[string]string{"app": name[:min(len(name), 63)]}
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: app, Annotations: map[string]string{Marker: "v1"}},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					AutomountServiceAccountToken:  new(false),
					Containers: []corev1.Container{{
						Name:            "sleep",
						Image:           "busybox",
						Command:         []string{"/bin/sleep", "infinity"},
						ImagePullPolicy: corev1.PullIfNotPresent,
					}},
				},
			},
		},
	}
	for _, o := range options {
		o(d)
	}
	return d
}

// Release sets the value of Marker.
func Release(marker string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations[Marker] = marker }
}

// Simulated schedules the pods on simulated nodes. They run no containers, so
// many of them need few resources.
func Simulated(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	spec.NodeSelector = map[string]string{"type": "kwok"}
	spec.Tolerations = []corev1.Toleration{{
		Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
	}}
}

// Paced makes a rollout replace one pod at a time and wait until it is Ready for
// that many seconds, so that a verdict can arrive before the rollout ends.
func Paced(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = seconds
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromInt32(0)),
				MaxSurge:       new(intstr.FromInt32(1)),
			},
		}
	}
}

// WithoutLabels removes the labels of the Deployment itself.
func WithoutLabels(d *appsv1.Deployment) { d.Labels = nil }
