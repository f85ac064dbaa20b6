// Package builder builds the objects that tests work with.
package builder

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Marker is an annotation of the pod template; two releases differ in it.
const Marker = "test.breakwater.dev/release"

// Deployment returns a Deployment of pods that sleep. Its pods go at once when
// they are deleted, and two of them never differ in anything but the marker.
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
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					AutomountServiceAccountToken:  ptr.To(false),
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

// Release sets the marker.
func Release(marker string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Spec.Template.Annotations[Marker] = marker }
}

// Simulated puts the pods on simulated nodes: many of them cost nothing, and
// nothing runs in them.
func Simulated(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	spec.NodeSelector = map[string]string{"type": "kwok"}
	spec.Tolerations = []corev1.Toleration{{
		Key: "kwok.x-k8s.io/node", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
	}}
}

// Paced replaces one pod after the other, each Ready for that many seconds
// before the next, so that a verdict can come before the roll-out is over.
func Paced(seconds int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = seconds
		d.Spec.Strategy = appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				MaxSurge:       ptr.To(intstr.FromInt32(1)),
			},
		}
	}
}

// WithoutLabels takes the Deployment's own labels away.
func WithoutLabels(d *appsv1.Deployment) { d.Labels = nil }
