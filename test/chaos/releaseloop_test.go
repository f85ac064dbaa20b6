//go:build e2e

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
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
			return errors.Join(l.double.SetChecks(ctx, l.namespace, plan.Rules...), l.double.SetFaults(ctx, l.namespace, faults.Rules...))
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
		return l.double.SetFaults(ctx, l.namespace)
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

func (f *fixture) observer() *Observer {
	return &Observer{Kube: f.kube, Change: f.change, Double: f.double}
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
		r, err := l.observer().Observe(ctx, l.namespace, name, marker(n))
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

// awaitFormer waits until the ChangeWorkloads of earlier releases have ended or
// are deleted.
func (l *releaseLoop) awaitFormer(ctx context.Context, current v1alpha1.ReleasePhase) error {
	return await(ctx, 3*time.Minute, "the earlier releases of "+l.namespace+" have ended", func(ctx context.Context) error {
		d, err := l.kube.AppsV1().Deployments(l.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		last, err := l.observer().current(ctx, d, marker(l.done))
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
