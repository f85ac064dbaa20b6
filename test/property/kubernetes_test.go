package property

import (
	"encoding/json"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

const (
	namespace      = "default"
	deploymentName = "sleep"
)

var deploymentID = id{"deployments", namespace, deploymentName}

// kubernetes is the writer of the modeled controllers.
const kubernetes = "kubernetes"

func firstDeployment() *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deploymentName, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
		},
	}
	setVersion(d, "v0")
	return d
}

// setVersion sets a template, and the version and attempt that the webhook writes.
func setVersion(d *appsv1.Deployment, template string) {
	d.Spec.Template.Labels = map[string]string{"app": deploymentName, "template": template}
	version, err := workload.Version(workload.Deployment, &d.Spec.Template)
	if err != nil {
		panic(err)
	}
	release, _ := v1alpha1.ReleaseOf(d.Annotations)
	d.Labels[v1alpha1.VersionKey] = version
	d.Annotations[v1alpha1.VersionKey] = version
	d.Annotations[v1alpha1.AttemptAnnotation] = strconv.FormatInt(release.Attempt+1, 10)
}

func (w *fixture) deployment() *appsv1.Deployment {
	return w.api.objects[deploymentID].(*appsv1.Deployment)
}

// release applies a template if the webhooks admit it: to a suspended Deployment
// only as a repair, and only once.
func (w *fixture) release(template string, repair bool) bool {
	d := w.deployment()
	if d.Spec.Template.Labels["template"] == template {
		return false
	}
	suspend := d.Labels[v1alpha1.SuspendLabel]
	last := parsed[v1alpha1.Bypass](d.Annotations[v1alpha1.BypassAnnotation])
	if suspend != "" && (!repair || (last != nil && last.Suspend == suspend)) {
		return false
	}
	change(w.api, "webhook", deploymentID, func(d *appsv1.Deployment) {
		setVersion(d, template)
		if suspend == "" {
			return
		}
		release, _ := v1alpha1.ReleaseOf(d.Annotations)
		raw, _ := json.Marshal(v1alpha1.Bypass{Kind: v1alpha1.BypassRepair, User: "person", Suspend: suspend, Attempt: release.Attempt})
		d.Annotations[v1alpha1.BypassAnnotation] = string(raw)
		if hold := parsed[v1alpha1.Hold](d.Annotations[v1alpha1.HoldAnnotation]); hold != nil {
			if paused, _ := hold.Former.(bool); !paused {
				d.Spec.Paused = false
			}
			delete(d.Annotations, v1alpha1.HoldAnnotation)
		}
	})
	return true
}

func parsed[T any](raw string) *T {
	var v T
	if raw == "" || json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return &v
}

// kubernetesStep makes one step of one modeled controller.
func (w *fixture) kubernetesStep() bool {
	steps := []func() bool{w.workloadReconciler, w.podReconciler, w.kubelet, w.replicaSetController, w.deploymentController, w.deploymentStatus, w.collectGarbage}
	first := w.draw("kubernetes", len(steps))
	for i := range steps {
		if steps[(first+i)%len(steps)]() {
			return true
		}
	}
	return false
}

// workloadReconciler models the reconciler of workloads: it creates the ChangeWorkload
// of the release, and deletes the others after its Success.
func (w *fixture) workloadReconciler() bool {
	d := w.deployment()
	release, _ := v1alpha1.ReleaseOf(d.Annotations)
	of := id{"changeworkloads", namespace, v1alpha1.ChangeWorkloadName(d.Name, release.Version)}
	current, _ := w.api.objects[of].(*v1alpha1.ChangeWorkload)
	switch {
	case current == nil:
		ref := v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID}
		order := v1alpha1.OrderID("c", namespace, ref, release.Version, release.Attempt)
		_, err := w.api.create(kubernetes, "changeworkloads", &v1alpha1.ChangeWorkload{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: of.name,
				Labels: map[string]string{
					v1alpha1.VersionKey: release.Version, v1alpha1.DeploymentNameLabel: d.Name, v1alpha1.OrderLabel: v1alpha1.OrderHash(order),
				},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: v1alpha1.ChangeWorkloadSpec{
				ChangeWorkloadID: of.name, ServiceName: d.Name, Reversion: release.Version, CountThreshold: 1, WaitTimeThreshold: 60,
				AppName: d.Name, WorkloadRef: ref, Attempt: release.Attempt, OrderID: order,
			},
		})
		return err == nil
	case current.Spec.Attempt != release.Attempt:
		w.api.store(kubernetes, of, nil)
		return true
	case current.Status.Phase == v1alpha1.ReleaseSuccess:
		for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
			if c.UID != current.UID {
				w.api.store(kubernetes, id{"changeworkloads", namespace, c.Name}, nil)
				return true
			}
		}
	}
	return false
}

// podReconciler models the reconciler of pods.
func (w *fixture) podReconciler() bool {
	for _, p := range all[*corev1.Pod](w.api, "pods") {
		if p.Labels[v1alpha1.FinishedLabel] == "" && isReady(p) {
			change(w.api, kubernetes, id{"pods", namespace, p.Name}, func(p *corev1.Pod) {
				p.Labels[v1alpha1.FinishedLabel] = v1alpha1.FinishedValue
			})
			return true
		}
	}
	return false
}

func isReady(p *corev1.Pod) bool { return len(p.Status.Conditions) > 0 }

// kubelet makes a pod Ready.
func (w *fixture) kubelet() bool {
	for _, p := range all[*corev1.Pod](w.api, "pods") {
		if isReady(p) {
			continue
		}
		change(w.api, kubernetes, id{"pods", namespace, p.Name}, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now()),
			}}
		})
		return true
	}
	return false
}

func (w *fixture) podsOf(rs *appsv1.ReplicaSet) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range all[*corev1.Pod](w.api, "pods") {
		if metav1.IsControlledBy(p, rs) {
			out = append(out, p)
		}
	}
	return out
}

func (w *fixture) replicaSetController() bool {
	for _, rs := range all[*appsv1.ReplicaSet](w.api, "replicasets") {
		own := w.podsOf(rs)
		switch wanted := int(*rs.Spec.Replicas); {
		case len(own) < wanted:
			w.madePods++
			_, err := w.api.create(kubernetes, "pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: fmt.Sprintf("%s-%d", rs.Name, w.madePods), Labels: map[string]string{},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			}})
			return err == nil
		case len(own) > wanted:
			w.api.store(kubernetes, id{"pods", namespace, own[w.draw("pod", len(own))].Name}, nil)
			return true
		}
	}
	return false
}

// sets returns the ReplicaSet of the current template, which may be nil, and
// the others.
func (w *fixture) sets() (current *appsv1.ReplicaSet, others []*appsv1.ReplicaSet) {
	template := w.deployment().Spec.Template.Labels["template"]
	for _, rs := range all[*appsv1.ReplicaSet](w.api, "replicasets") {
		if rs.Spec.Template.Labels["template"] == template {
			current = rs
		} else {
			others = append(others, rs)
		}
	}
	return current, others
}

// deploymentController replaces one pod at a time, unless the rollout is paused.
func (w *fixture) deploymentController() bool {
	d := w.deployment()
	if d.Spec.Paused {
		return false
	}
	current, others := w.sets()
	if current == nil {
		_, err := w.api.create(kubernetes, "replicasets", &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: d.Name + "-" + d.Spec.Template.Labels["template"], Annotations: annotations(d),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Template: d.Spec.Template},
		})
		return err == nil
	}
	if encoded(current.Annotations) != encoded(annotations(d)) {
		change(w.api, kubernetes, id{"replicasets", namespace, current.Name}, func(rs *appsv1.ReplicaSet) { rs.Annotations = annotations(d) })
		return true
	}
	total, ready := int32(0), int32(0)
	for _, rs := range append(others, current) {
		total += *rs.Spec.Replicas
		for _, p := range w.podsOf(rs) {
			if isReady(p) {
				ready++
			}
		}
	}
	scale := func(rs *appsv1.ReplicaSet, by int32) bool {
		change(w.api, kubernetes, id{"replicasets", namespace, rs.Name}, func(rs *appsv1.ReplicaSet) { *rs.Spec.Replicas += by })
		return true
	}
	wanted := *d.Spec.Replicas
	switch {
	case *current.Spec.Replicas > wanted:
		return scale(current, -1)
	case *current.Spec.Replicas < wanted && total <= wanted:
		return scale(current, 1)
	}
	for _, rs := range others {
		if *rs.Spec.Replicas > 0 && (ready > wanted || *current.Spec.Replicas == 0 && wanted == 0) {
			return scale(rs, -1)
		}
	}
	return false
}

func annotations(d *appsv1.Deployment) map[string]string {
	return map[string]string{
		v1alpha1.VersionKey: d.Annotations[v1alpha1.VersionKey], v1alpha1.AttemptAnnotation: d.Annotations[v1alpha1.AttemptAnnotation],
	}
}

func (w *fixture) deploymentStatus() bool {
	d := w.deployment()
	current, others := w.sets()
	next := appsv1.DeploymentStatus{ObservedGeneration: d.Generation}
	for _, rs := range others {
		next.Replicas += int32(len(w.podsOf(rs)))
	}
	if current != nil {
		for _, p := range w.podsOf(current) {
			next.Replicas++
			next.UpdatedReplicas++
			if isReady(p) {
				next.AvailableReplicas++
			}
		}
	}
	if encoded(next) == encoded(d.Status) {
		return false
	}
	change(w.api, kubernetes, deploymentID, func(d *appsv1.Deployment) { d.Status = next })
	return true
}

// collectGarbage deletes a ChangePod whose owner was deleted.
func (w *fixture) collectGarbage() bool {
	owners := map[string]bool{}
	for _, o := range w.api.objects {
		owners[string(o.GetUID())] = true
	}
	collect := func(resource string, o object) bool {
		ref := metav1.GetControllerOf(o)
		if ref == nil || owners[string(ref.UID)] {
			return false
		}
		w.api.store(kubernetes, id{resource, o.GetNamespace(), o.GetName()}, nil)
		return true
	}
	for _, c := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		if collect("changepods", c) {
			return true
		}
	}
	return false
}
