//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	double "github.com/breakwater-dev/breakwater/test/altershield"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const (
	// name is the name of every Deployment; each has its own namespace.
	name = "web"
	// endWithin is the time limit of a release. A failed callback costs 75 s
	// per stage, a killed controller 20 s.
	endWithin = 5 * time.Minute
	// acceptedWithin is the time limit for the admission of a release of a
	// suspended Deployment, during which the webhook may be unreachable.
	acceptedWithin = time.Minute
	// confirmations is the number of consecutive checks that must confirm an end.
	confirmations = 4
)

// releaseLoop releases one Deployment repeatedly.
type releaseLoop struct {
	*fixture
	namespace string
	pods      int
	// until: releases begin until this time in any case.
	until time.Time
	rand  *rand.Rand
	// faults draws the faults of the server.
	faults *rand.Rand
	log    func(format string, args ...any)
	// suspended: the last release failed, so the next one is its repair.
	suspended bool
	// versioned is closed when the webhook has annotated the first release.
	// Without the annotations it would be a baseline, which is not judged.
	versioned chan struct{}
	// roundDone is closed when every target was killed; until then the releases
	// continue.
	roundDone <-chan struct{}
	// done is the number of releases that have ended.
	done int
}

// run makes at least this number of releases. Each release must end according to
// its verdicts.
func (l *releaseLoop) run(ctx context.Context, releases int) error {
	_, err := l.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: l.namespace, Labels: map[string]string{chaosLabel: "true", v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", l.namespace, err)
	}
	for n := 1; n <= releases || !closed(l.roundDone) || time.Now().Before(l.until); n++ {
		plan, faults := NewPlan(l.rand, l.pods), NewServerFaults(l.faults)
		l.log("%s release %d: %s; %s", l.namespace, n, &plan, faults)
		err := await(ctx, time.Minute, "the double accepts its script", func(ctx context.Context) error {
			return errors.Join(l.judge.SetChecks(ctx, l.namespace, plan.Rules...), l.judge.SetFaults(ctx, l.namespace, faults.Rules...))
		})
		if err != nil {
			return err
		}
		began, cleared := time.Now(), make(chan error, 1)
		go func() { cleared <- l.clearFaults(ctx, faults.For) }()
		if err := l.release(ctx, n, plan.Paced); err != nil {
			return err
		}
		if n == 1 {
			if err := l.awaitVersion(ctx); err != nil {
				return err
			}
			close(l.versioned)
		}
		end, err := l.awaitEnd(ctx, n)
		if err := errors.Join(err, <-cleared); err != nil {
			return err
		}
		l.suspended, l.done = end.Phase == v1alpha1.ReleaseSuspend, n
		l.log("%s release %d: %s as expected after %s; %d batches, failed: %v, unjudged: %d",
			l.namespace, n, end.Phase, time.Since(began).Round(time.Second), len(end.Batches), end.Failed, end.Counts.Unjudged)
	}
	return nil
}

// clearFaults removes the server's faults after a time.
func (l *releaseLoop) clearFaults(ctx context.Context, after time.Duration) error {
	if after == 0 || !sleep(ctx, after) {
		return nil
	}
	return await(ctx, time.Minute, "the double removes its faults", func(ctx context.Context) error {
		return l.judge.SetFaults(ctx, l.namespace)
	})
}

// awaitVersion waits until the webhook has annotated the Deployment with its
// version and attempt.
func (l *releaseLoop) awaitVersion(ctx context.Context) error {
	return await(ctx, acceptedWithin, "the first release of "+l.namespace+" has a version", func(ctx context.Context) error {
		d, err := l.kube.AppsV1().Deployments(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if release, ok := v1alpha1.ReleaseOf(d.Annotations); !ok || release.Attempt == 0 {
			return fmt.Errorf("annotations %v", d.Annotations)
		}
		return nil
	})
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func marker(n int) string { return "v" + strconv.Itoa(n) }

// release creates the Deployment or changes its template, as a repair if it is
// suspended. It retries until the request is admitted.
func (l *releaseLoop) release(ctx context.Context, n int, paced bool) error {
	d := builder.Deployment(name, int32(l.pods), builder.Simulated, builder.Release(marker(n)))
	if paced {
		builder.Paced(1)(d)
	}
	if l.suspended {
		// The selector shares this map.
		d.Labels = maps.Clone(d.Labels)
		d.Labels[v1alpha1.IgnoredSuspendLabel] = "true"
	}
	return await(ctx, acceptedWithin, fmt.Sprintf("release %d of %s is admitted", n, l.namespace), func(ctx context.Context) error {
		deployments := l.kube.AppsV1().Deployments(l.namespace)
		now, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			_, err = deployments.Create(ctx, d, metav1.CreateOptions{})
			return err
		}
		if err != nil || now.Spec.Template.Annotations[builder.Marker] == marker(n) {
			return err // the answer to the previous request was lost
		}
		for key, value := range d.Labels {
			now.Labels[key] = value
		}
		paused := now.Spec.Paused
		now.Spec, now.Spec.Paused = d.Spec, paused
		_, err = deployments.Update(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// awaitEnd waits until the release has ended according to the verdicts.
func (l *releaseLoop) awaitEnd(ctx context.Context, n int) (Release, error) {
	var end Release
	right := 0
	err := await(ctx, endWithin, fmt.Sprintf("release %d of %s ends according to the verdicts", n, l.namespace), func(ctx context.Context) error {
		r, err := l.observe(ctx, n)
		if err == nil {
			if faults := Violations(r); len(faults) > 0 {
				err = errors.New(strings.Join(faults, "\n\t"))
			}
		}
		if err != nil {
			right = 0
			return err
		}
		end = r
		if right++; right < confirmations {
			return fmt.Errorf("right %d times in a row", right)
		}
		return nil
	})
	return end, err
}

// observe returns the state of the last release.
func (l *releaseLoop) observe(ctx context.Context, n int) (Release, error) {
	var r Release
	d, err := l.kube.AppsV1().Deployments(l.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return r, err
	}
	c, err := l.current(ctx, d, n)
	if err != nil {
		return r, err
	}
	list, err := l.change.ChangePods(l.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	log, nodes, err := l.judge.OrderLog(ctx, c.Spec.OrderID)
	if err != nil {
		return r, err
	}
	if log.Dropped > 0 {
		return r, errors.New("the double's log has dropped entries")
	}
	evidence := Evidence{Log: log, Nodes: nodes}
	r = Release{
		Phase: c.Status.Phase, Counts: c.Status.Counts, Replicas: *d.Spec.Replicas,
		Suspended: d.Labels[v1alpha1.SuspendLabel] != "", Paused: d.Spec.Paused, Complete: complete(d),
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
	r.Pods, err = l.podsOf(ctx, c)
	return r, err
}

// awaitFormer waits until the ChangeWorkloads of earlier releases have ended or
// are deleted.
func (l *releaseLoop) awaitFormer(ctx context.Context, current v1alpha1.ReleasePhase) error {
	return await(ctx, 3*time.Minute, "the earlier releases of "+l.namespace+" have ended", func(ctx context.Context) error {
		d, err := l.kube.AppsV1().Deployments(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		last, err := l.current(ctx, d, l.done)
		if err != nil {
			return err
		}
		list, err := l.change.ChangeWorkloads(l.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var former []Former
		for i := range list.Items {
			c := &list.Items[i]
			if c.Name != last.Name {
				former = append(former, Former{Name: c.Name, Phase: c.Status.Phase, Inbox: len(c.Status.Inbox), Closed: !c.Status.Order.Opened() || c.Status.Order.ClosingDone()})
			}
		}
		if faults := FormerViolations(current, former); len(faults) > 0 {
			return errors.New(strings.Join(faults, "\n\t"))
		}
		return nil
	})
}

// current returns the ChangeWorkload of the last template. If the webhook was
// unreachable, the Deployment does not have the annotations for this template yet.
func (l *releaseLoop) current(ctx context.Context, d *appsv1.Deployment, n int) (*v1alpha1.ChangeWorkload, error) {
	if got := d.Spec.Template.Annotations[builder.Marker]; got != marker(n) {
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
	c, err := l.change.ChangeWorkloads(l.namespace).Get(ctx, v1alpha1.ChangeWorkloadName(name, version), metav1.GetOptions{})
	if err == nil && c.Spec.Attempt != release.Attempt {
		err = fmt.Errorf("%s has attempt %d, the Deployment has %d", c.Name, c.Spec.Attempt, release.Attempt)
	}
	return c, err
}

// podsOf returns the existing pods of a release, and whether each is a finished
// pod.
func (l *releaseLoop) podsOf(ctx context.Context, c *v1alpha1.ChangeWorkload) (map[string]bool, error) {
	sets, err := l.kube.AppsV1().ReplicaSets(l.namespace).List(ctx, metav1.ListOptions{})
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
	pods, err := l.kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
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

// versions returns the resourceVersions of all objects of a namespace that
// could change.
func (f *fixture) versions(ctx context.Context, namespace string) (map[string]string, error) {
	out := map[string]string{}
	all := metav1.ListOptions{}
	deployments, err := f.kube.AppsV1().Deployments(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		out["deployment "+deployments.Items[i].Name] = deployments.Items[i].ResourceVersion
	}
	pods, err := f.kube.CoreV1().Pods(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		out["pod "+pods.Items[i].Name] = pods.Items[i].ResourceVersion
	}
	workloads, err := f.change.ChangeWorkloads(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range workloads.Items {
		out["changeworkload "+workloads.Items[i].Name] = workloads.Items[i].ResourceVersion
	}
	batches, err := f.change.ChangePods(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range batches.Items {
		out["changepod "+batches.Items[i].Name] = batches.Items[i].ResourceVersion
	}
	return out, nil
}
