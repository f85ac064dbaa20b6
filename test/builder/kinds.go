package builder

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatefulSet returns a StatefulSet of simulated pods. A rollout replaces one pod
// at a time and waits until it is Ready for that many seconds.
func StatefulSet(name string, replicas, seconds int32) *appsv1.StatefulSet {
	d := Deployment(name, replicas, Simulated)
	return &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: d.ObjectMeta,
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: d.Spec.Selector, Template: d.Spec.Template, ServiceName: name,
			MinReadySeconds: seconds, PodManagementPolicy: appsv1.ParallelPodManagement,
		},
	}
}

// DaemonSet returns a DaemonSet of simulated pods on the nodes, with a rollout as
// in StatefulSet.
func DaemonSet(name string, nodes []string, seconds int32) *appsv1.DaemonSet {
	d := Deployment(name, 0, Simulated)
	template := d.Spec.Template
	template.Spec.NodeSelector = nil
	template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes,
			}},
		}}},
	}}
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		ObjectMeta: d.ObjectMeta,
		Spec:       appsv1.DaemonSetSpec{Selector: d.Spec.Selector, Template: template, MinReadySeconds: seconds},
	}
}
