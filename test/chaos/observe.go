package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	client "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// Observer reads the state of releases. Deployments have the annotation builder.Marker.
type Observer struct {
	Kube   kubernetes.Interface
	Change client.AppV1alpha1Interface
	Double *serverdouble.Client
}

// Observe returns the state of the release with a marker. It is an error if the Deployment has
// another release.
func (o *Observer) Observe(ctx context.Context, namespace, name, marker string) (Release, error) {
	var r Release
	d, err := o.Kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return r, err
	}
	c, err := o.current(ctx, d, marker)
	if err != nil {
		return r, err
	}
	list, err := o.Change.ChangePods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	log, nodes, err := o.Double.OrderLog(ctx, c.Spec.OrderID)
	if err != nil {
		return r, err
	}
	if log.Dropped > 0 {
		return r, errors.New("the double's log has dropped entries")
	}
	evidence := Evidence{Log: log, Nodes: nodes}
	r = Release{
		Phase: c.Status.Phase, Counts: c.Status.Counts, Replicas: *d.Spec.Replicas,
		Suspended: v1alpha1.SuspensionOf(d.Labels) != "", Paused: d.Spec.Paused, Complete: complete(d),
	}
	for _, p := range c.Status.DefenseCheckFailPods {
		r.Failed = append(r.Failed, p.Pod)
	}
	known := map[string]bool{}
	for _, node := range c.Status.Order.Nodes() {
		known[node] = true
	}
	for i := range list.Items {
		p := &list.Items[i]
		if !metav1.IsControlledBy(p, c) {
			continue
		}
		nodes := p.Status.Nodes()
		b := Batch{
			Name: p.Name, Node: p.Status.ChangePodID, Done: p.Status.Phase == v1alpha1.BatchExecuteDone,
			Pre: evidence.Stage(nodes, double.Pre), Post: evidence.Stage(nodes, double.Post),
		}
		for _, node := range nodes {
			known[node] = true
		}
		b.Starts, b.Finishes = evidence.Starts(p.Spec.BatchNo), evidence.Finishes(nodes)
		for _, s := range p.Status.Submissions {
			if s.Stage == v1alpha1.StagePre {
				b.StartAttempts = int(s.Attempts)
			} else {
				b.FinishAttempts = int(s.Attempts)
			}
		}
		for _, info := range p.Spec.PodInfos {
			b.Pods = append(b.Pods, info.Pod)
		}
		r.Batches = append(r.Batches, b)
	}
	r.Inbox = Stuck(c.Status.Inbox, known, time.Now())
	r.Pods, err = o.podsOf(ctx, c)
	return r, err
}

// current returns the ChangeWorkload of the last template. If the webhook was
// unreachable, the Deployment does not have the annotations for this template yet.
func (o *Observer) current(ctx context.Context, d *appsv1.Deployment, marker string) (*v1alpha1.ChangeWorkload, error) {
	if got := d.Spec.Template.Annotations[builder.Marker]; got != marker {
		return nil, fmt.Errorf("the template is %s", got)
	}
	version, err := workload.Version(workload.Deployment, &d.Spec.Template)
	if err != nil {
		return nil, err
	}
	release, known := v1alpha1.ReleaseOf(d.Annotations)
	if !known || release.Version != version {
		return nil, fmt.Errorf("the template is %s, the Deployment's release is %+v", version, release)
	}
	c, err := o.Change.ChangeWorkloads(d.Namespace).Get(ctx, v1alpha1.ChangeWorkloadName(d.Name, version), metav1.GetOptions{})
	if err == nil && c.Spec.Attempt != release.Attempt {
		err = fmt.Errorf("%s has attempt %d, the Deployment has %d", c.Name, c.Spec.Attempt, release.Attempt)
	}
	return c, err
}

// podsOf returns the existing pods of a release, and whether each is a finished
// pod.
func (o *Observer) podsOf(ctx context.Context, c *v1alpha1.ChangeWorkload) (map[string]bool, error) {
	sets, err := o.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var own []types.UID
	for i := range sets.Items {
		release, known := v1alpha1.ReleaseOf(sets.Items[i].Annotations)
		if known && release.Version == c.Spec.Reversion && release.Attempt == c.Spec.Attempt {
			own = append(own, sets.Items[i].UID)
		}
	}
	pods, err := o.Kube.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner != nil && slices.Contains(own, owner.UID) && p.DeletionTimestamp == nil {
			out[p.Name] = p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue
		}
	}
	return out, nil
}

// complete reports whether the rollout is complete and all pods are available.
func complete(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas &&
		s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas
}
