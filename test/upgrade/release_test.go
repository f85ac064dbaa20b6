//go:build e2e

package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/chaos"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// post selects the POST check of a batch; the server counts from 0.
func post(batchNo int64) double.Match {
	return double.Match{Step: "BATCH", BatchNo: &batchNo, Stage: double.Post}
}

// create creates Deployment web with release v1. Its pods are replaced one by one, and must be Ready for
// this number of seconds.
func (f *fixture) create(ctx context.Context, namespace string, replicas, seconds int32) error {
	_, err := f.kube.AppsV1().Deployments(namespace).Create(ctx, builder.Deployment(web, replicas, builder.Simulated, builder.Paced(seconds)), metav1.CreateOptions{})
	return err
}

// release changes the template of Deployment web.
func (f *fixture) release(ctx context.Context, namespace, marker string, dryRun ...string) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, builder.Marker, marker)
	_, err := f.kube.AppsV1().Deployments(namespace).Patch(ctx, web, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	return err
}

// awaitRelease waits until the release with a marker has ended as the verdicts say.
func (f *fixture) awaitRelease(ctx context.Context, namespace, marker string, phase v1alpha1.ReleasePhase) error {
	return await(ctx, fmt.Sprintf("release %s ends with %s", marker, phase), func(ctx context.Context) error {
		r, err := f.observer().Observe(ctx, namespace, web, marker)
		if err != nil {
			return err
		}
		faults := chaos.Violations(r)
		if r.Phase != phase {
			faults = append(faults, fmt.Sprintf("the release is %q", r.Phase))
		}
		if r.Counts.Unjudged > 0 {
			faults = append(faults, fmt.Sprintf("%d pods are unjudged", r.Counts.Unjudged))
		}
		if len(faults) > 0 {
			return errors.New(strings.Join(faults, "\n\t"))
		}
		return nil
	})
}

// releases releases a Deployment again and again. Each batch passes after seconds.
type releases struct {
	*fixture
	done int
	// since is when the upgrade began. Before, the functions of the earlier version start.
	since time.Time
}

func (*releases) namespace() string { return "upgrade-releases" }

func (r *releases) begin(ctx context.Context) error {
	if err := r.newNamespace(ctx, r.namespace(), optedIn()); err != nil {
		return err
	}
	rules := []double.CheckRule{
		{Match: double.Match{Step: "BATCH", Stage: double.Pre}, Then: double.Behaviour{Delay: metav1.Duration{Duration: 500 * time.Millisecond}}},
		{Match: double.Match{Step: "BATCH", Stage: double.Post}, Then: double.Behaviour{Delay: metav1.Duration{Duration: 3 * time.Second}}},
	}
	if err := r.double.SetChecks(ctx, r.namespace(), rules...); err != nil {
		return err
	}
	if err := r.create(ctx, r.namespace(), 4, 1); err != nil {
		return err
	}
	return r.next(ctx)
}

// next waits for the end of a release and begins the next one.
func (r *releases) next(ctx context.Context) error {
	marker := "v" + strconv.Itoa(r.done+1)
	if err := r.awaitRelease(ctx, r.namespace(), marker, v1alpha1.ReleaseSuccess); err != nil {
		return err
	}
	r.done++
	return r.release(ctx, r.namespace(), "v"+strconv.Itoa(r.done+1))
}

func (r *releases) during(ctx context.Context, upgraded <-chan struct{}) error {
	r.since = time.Now()
	for last := false; !last; {
		last = closed(upgraded)
		if err := r.next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end checks that each callback of the server was accepted since the upgrade began.
func (r *releases) end(ctx context.Context) error {
	if err := r.awaitRelease(ctx, r.namespace(), "v"+strconv.Itoa(r.done+1), v1alpha1.ReleaseSuccess); err != nil {
		return err
	}
	log, err := r.double.Log(ctx, r.namespace())
	if err != nil {
		return err
	}
	for _, c := range log.Callbacks {
		if c.Sent.After(r.since) && c.Status != http.StatusOK {
			err = errors.Join(err, fmt.Errorf("a callback at %s was answered with %d: %s", c.Sent.Format(time.TimeOnly), c.Status, c.Error))
		}
	}
	r.log("%s: %d releases, %d calls, %d callbacks", r.namespace(), r.done+1, len(log.Calls), len(log.Callbacks))
	return err
}

// waitingRelease is a release whose second batch gets its verdict after the upgrade.
type waitingRelease struct {
	*fixture
	before *v1alpha1.ChangePod
}

func (*waitingRelease) namespace() string { return "upgrade-waiting" }

func (r *waitingRelease) begin(ctx context.Context) error {
	if err := r.newNamespace(ctx, r.namespace(), optedIn()); err != nil {
		return err
	}
	if err := r.create(ctx, r.namespace(), 3, 1); err != nil {
		return err
	}
	if err := r.awaitRelease(ctx, r.namespace(), "v1", v1alpha1.ReleaseSuccess); err != nil {
		return err
	}
	if err := r.double.SetChecks(ctx, r.namespace(), double.CheckRule{Match: post(1), Then: double.Behaviour{Never: true}}); err != nil {
		return err
	}
	if err := r.release(ctx, r.namespace(), "v2"); err != nil {
		return err
	}
	return await(ctx, "one of three batches waits for its verdict", func(ctx context.Context) error {
		var err error
		r.before, err = r.waits(ctx, 2)
		return err
	})
}

// waits returns the batch that waits for its verdict, while this number of batches have passed.
func (r *waitingRelease) waits(ctx context.Context, passed int) (waiting *v1alpha1.ChangePod, err error) {
	list, err := r.change.ChangePods(r.namespace()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var phases []v1alpha1.BatchPhase
	for i := range list.Items {
		p := &list.Items[i]
		c, err := r.change.ChangeWorkloads(r.namespace()).Get(ctx, metav1.GetControllerOf(p).Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if c.Status.Phase == v1alpha1.ReleaseSuccess {
			continue // of v1
		}
		phases = append(phases, p.Status.Phase)
		switch p.Status.Phase {
		case v1alpha1.BatchExecuteDone:
			passed--
		case v1alpha1.BatchPostSubmitted:
			waiting = p
		}
	}
	if waiting == nil || passed != 0 || len(phases) != 3 {
		return nil, fmt.Errorf("batches are %v", phases)
	}
	return waiting, nil
}

// during checks that the batch is the same and still waits.
func (r *waitingRelease) during(ctx context.Context, upgraded <-chan struct{}) error {
	if err := awaitClosed(ctx, upgraded); err != nil {
		return err
	}
	now, err := r.waits(ctx, 2)
	if err != nil {
		return err
	}
	if now.UID != r.before.UID || now.Status.ChangePodID != r.before.Status.ChangePodID {
		return fmt.Errorf("batch %s with node %s became %s with node %s", r.before.Name, r.before.Status.ChangePodID, now.Name, now.Status.ChangePodID)
	}
	return nil
}

// end sends the verdict, as the server does.
func (r *waitingRelease) end(ctx context.Context) error {
	c, err := r.change.ChangeWorkloads(r.namespace()).Get(ctx, metav1.GetControllerOf(r.before).Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := callback(ctx, c.Spec.OrderID, r.before.Status.ChangePodID); err != nil {
		return err
	}
	return await(ctx, "the release ends with Success", func(ctx context.Context) error {
		now, err := r.change.ChangeWorkloads(r.namespace()).Get(ctx, c.Name, metav1.GetOptions{})
		if err == nil && (now.UID != c.UID || now.Status.Phase != v1alpha1.ReleaseSuccess || now.Status.Counts.Unjudged != 0) {
			err = fmt.Errorf("%s is %q: %+v", now.Name, now.Status.Phase, now.Status.Counts)
		}
		return err
	})
}

// callback sends a signed pass of a batch.
func callback(ctx context.Context, order, node string) error {
	body, err := json.Marshal(map[string]any{
		"callbackRequest": map[string]any{
			"bizExecOrderId": order, "changeSceneKey": "breakwater", "defenseStageEnum": "POST", "nodeId": node,
			"verdict": map[string]any{
				"allFinish": true, "checkPass": true, "verdict": "pass",
				"rules": []any{map[string]any{"name": "late", "verdict": "PASS", "msg": "after the upgrade"}},
			},
		},
		"changeCheckType": "CHANGE_BATCH",
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, serverdouble.CallbackURL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for key, value := range map[string]string{
		altershield.HeaderPlatform: serverdouble.Platform, altershield.HeaderTimestamp: timestamp, altershield.HeaderSign: altershield.Sign(timestamp, body, serverdouble.Token),
	} {
		request.Header.Set(altershield.DefaultHeaderPrefix+key, value)
	}
	request.Header.Set("Content-Type", "application/json;UTF-8")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the callback was answered with %s: %s", response.Status, answer)
	}
	return err
}

// heldRelease is a suspended Deployment.
type heldRelease struct {
	*fixture
	before *appsv1.Deployment
}

const heldNamespace = "upgrade-held"

func (*heldRelease) namespace() string { return heldNamespace }

func (r *heldRelease) begin(ctx context.Context) error {
	if err := r.newNamespace(ctx, r.namespace(), optedIn()); err != nil {
		return err
	}
	if err := r.create(ctx, r.namespace(), 3, 8); err != nil {
		return err
	}
	if err := r.awaitRelease(ctx, r.namespace(), "v1", v1alpha1.ReleaseSuccess); err != nil {
		return err
	}
	if err := r.double.SetChecks(ctx, r.namespace(), double.CheckRule{Match: post(0), Then: double.Behaviour{Verdict: "fail"}}); err != nil {
		return err
	}
	if err := r.release(ctx, r.namespace(), "v2"); err != nil {
		return err
	}
	if err := r.awaitRelease(ctx, r.namespace(), "v2", v1alpha1.ReleaseSuspend); err != nil {
		return err
	}
	var err error
	r.before, err = r.kube.AppsV1().Deployments(r.namespace()).Get(ctx, web, metav1.GetOptions{})
	return err
}

// during makes requests that must be denied.
func (r *heldRelease) during(ctx context.Context, upgraded <-chan struct{}) error {
	for last := false; !last; {
		last = closed(upgraded)
		err := r.release(ctx, r.namespace(), "v3", metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "denied the request: deployment web is suspended") {
			return fmt.Errorf("a release of a suspended Deployment was answered with: %w", err)
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *heldRelease) end(ctx context.Context) error {
	if err := r.awaitRelease(ctx, r.namespace(), "v2", v1alpha1.ReleaseSuspend); err != nil {
		return err
	}
	now, err := r.kube.AppsV1().Deployments(r.namespace()).Get(ctx, web, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if now.Spec.Paused != r.before.Spec.Paused || now.Labels[v1alpha1.SuspendLabel] != r.before.Labels[v1alpha1.SuspendLabel] ||
		now.Annotations[v1alpha1.HoldAnnotation] != r.before.Annotations[v1alpha1.HoldAnnotation] {
		return fmt.Errorf("the suspension changed from %v, %v to %v, %v", r.before.Labels, r.before.Annotations, now.Labels, now.Annotations)
	}
	return nil
}

// pause waits between two requests.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}
