//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// orderCheck matches the order check in a stage.
func orderCheck(stage double.Stage) double.Match { return double.Match{Step: "ORDER", Stage: stage} }

// overruleOrder is the patch of a person who overrules the verdict of the
// order.
const overruleOrder = `{"status":{"orderResult":{"verdict":"pass","message":"checked by hand"}}}`

// orderCalls returns the successful calls for an order, without those for batches and
// without retrieve, which a slow verdict causes and which changes nothing.
func (n *namespace) orderCalls(ctx context.Context, order string) ([]string, error) {
	log, nodes, err := n.double.OrderLog(ctx, order)
	if err != nil {
		return nil, err
	}
	var batches []string
	for _, node := range nodes {
		if node.Step == "BATCH" {
			batches = append(batches, node.ID)
		}
	}
	var out []string
	for _, call := range log.Calls {
		about := strings.Contains(call.Action, "Batch") || call.Action == "submitChangeEventAction" || call.Action == "retrieveChangeCheck" || slices.Contains(batches, call.Node)
		if call.Order == order && call.Code == "000" && !about {
			out = append(out, call.Action)
		}
	}
	return out, nil
}

// awaitOrderClosed waits until an order is closed with a state.
func (n *namespace) awaitOrderClosed(t *testing.T, order, state string) {
	t.Helper()
	await(t, rolloutTimeout, "order "+order+" is closed as "+state, func(ctx context.Context) error {
		log, err := n.double.Log(ctx, n.name)
		if err != nil {
			return err
		}
		for _, call := range log.Calls {
			if call.Order == order && call.Action == "finishChangeExecOrderAction" && call.Code == "000" {
				if strings.Contains(string(call.Body), fmt.Sprintf("%q", state)) {
					return nil
				}
				return fmt.Errorf("closed with %s", call.Body)
			}
		}
		return errors.New("not closed")
	})
}

// closedOrder: an order is opened, started, finished and closed, each once. A start or a finish is
// repeated only if its intent says so, as in checkOrder. A second close has no effect.
func closedOrder(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: orderCheck(double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	n.awaitPassed(t, "web", 3)
	node := ""
	await(t, rolloutTimeout, "the release waits for the order check", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		node = c.Status.Order.Node()
		cond, finish := c.Status.GetCondition(apis.ConditionSucceeded), c.Status.Order.SubmissionOf(v1alpha1.StagePost)
		if c.Status.Phase != v1alpha1.ReleaseRunning || cond.GetReason() != v1alpha1.ReasonJudgingOrder || finish == nil || finish.AnsweredTime == nil {
			return fmt.Errorf("%q, %+v, finish %+v", c.Status.Phase, cond, finish)
		}
		return nil
	})
	n.sendPass(t, node)
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); !cond.IsTrue() {
		t.Errorf("condition OrderJudged is %+v, want True", cond)
	}
	n.awaitOrderClosed(t, c.Spec.OrderID, "SUCCESS")
	got, err := n.orderCalls(t.Context(), c.Spec.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	const open, start, finish, end = "submitChangeExecOrder", "submitChangeExecOrderStartNotify", "submitChangeFinishNotify", "finishChangeExecOrderAction"
	calls := map[string]int32{}
	for _, action := range got {
		calls[action]++
	}
	for action, intents := range map[string]int32{
		open:   1,
		start:  c.Status.Order.SubmissionOf(v1alpha1.StagePre).Attempts,
		finish: c.Status.Order.SubmissionOf(v1alpha1.StagePost).Attempts,
	} {
		if calls[action] > intents {
			t.Errorf("%d successful calls of %s, want no more than the %d intents", calls[action], action, intents)
		}
	}
	if each, want := slices.Compact(got), []string{open, start, finish, end}; !slices.Equal(each, want) {
		t.Errorf("calls are %v, want %v", each, want)
	}
}

// orderFailInPre: a fail of the order check holds the release until a person
// overrules it.
func orderFailInPre(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	// The rollout takes 40 s, so that the fail comes before its end on a slow machine.
	n.create(t, builder.Deployment("web", 4, builder.Simulated, builder.Paced(10)))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: orderCheck(double.Pre), Then: failed()})
	n.release(t, "web", "v2")
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	n.awaitDeployment(t, shortTimeout, "web", "is held", func(d *appsv1.Deployment) bool { return isSuspended(d) && d.Spec.Paused })
	cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
	if !cond.IsFalse() || cond.Reason != v1alpha1.ReasonOrderCheckFailed || !strings.Contains(cond.Message, errorRate) {
		t.Errorf("condition OrderJudged is %+v, want False with %s", cond, errorRate)
	}
	if len(c.Status.DefenseCheckFailPods) != 0 {
		t.Errorf("pods failed: %+v", c.Status.DefenseCheckFailPods)
	}
	n.checkDenied(t, "web", "patch", "deployment", "web", "-p", templatePatch, "--type", "merge")
	n.run(t, "patch", "changeworkload", c.Name, "--subresource=status", "--type", "merge", "-p", overruleOrder)
	n.unpace(t, "web")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
}

// orderFailInPost: a fail after all pods passed holds the release, and a
// rollback is admitted.
func orderFailInPost(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: orderCheck(double.Post), Then: failed()})
	n.release(t, "web", "v2")
	bad := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	if got := bad.Status.Counts; got.Passed != 2 || got.Failed != 0 {
		t.Errorf("counts are %+v, want two passed pods", got)
	}
	n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
	n.setChecks(t)
	n.release(t, "web", "v1") // the rollback is admitted
	n.awaitOrderClosed(t, bad.Spec.OrderID, "ROLLBACK")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// supersededOrder: the order of a superseded release is canceled.
func supersededOrder(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	n.awaitBatch(t, rolloutTimeout, "web", 1, "is started", func(p *v1alpha1.ChangePod) bool { return p.Status.ChangePodID != "" })
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	n.setChecks(t)
	n.release(t, "web", "v2")
	n.awaitOrderClosed(t, c.Spec.OrderID, "CANCEL")
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// scaledRelease: a release that is scaled up and down while it runs succeeds,
// and a pod is judged in place of one without a verdict. Batch 2 keeps the release running meanwhile.
func scaledRelease(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 4, builder.Simulated, builder.Paced(5)))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	never := double.Behaviour{Never: true}
	n.setChecks(t, double.CheckRule{Match: batch(2, double.Post), Then: never}, double.CheckRule{Match: batch(3, double.Post), Then: never})
	n.release(t, "web", "v2")
	n.awaitBatch(t, rolloutTimeout, "web", 1, "is done", isDone)
	n.run(t, "scale", "deployment", "web", "--replicas=6")
	waiting := n.awaitBatch(t, rolloutTimeout, "web", 2, "waits for its POST verdict", awaitsPostVerdict)
	deleted := n.awaitBatch(t, rolloutTimeout, "web", 3, "waits for its POST verdict", awaitsPostVerdict)
	n.run(t, "delete", "pod", deleted.Spec.PodInfos[0].Pod, "--wait=false")
	n.awaitPassed(t, "web", 5) // with the pod that replaces it
	n.run(t, "scale", "deployment", "web", "--replicas=5")
	n.sendPass(t, waiting.Status.ChangePodID)
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if got := c.Status.Counts; got.Passed < 5 || got.Unjudged != 0 || got.Failed != 0 {
		t.Errorf("counts are %+v, want 5 judged and passed pods", got)
	}
	n.awaitClaims(t, shortTimeout, "web")
}

// sendPass sends the POST pass of an order node of web, whose check never ends at the double.
func (n *namespace) sendPass(t *testing.T, node string) {
	t.Helper()
	c, err := n.current(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if status := post(t, callback(t, c.Spec.OrderID, node, "pass"), serverdouble.Token); status != http.StatusOK {
		t.Fatalf("callback status %d, want 200", status)
	}
}

// autoscaledRelease is scaled by a HorizontalPodAutoscaler after its rollout, so only the pods of the rollout are judged. The
// autoscaler needs no metrics to reach its minimum of replicas. Batch 1 keeps the release running meanwhile.
func autoscaledRelease(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 2, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Never: true}})
	n.release(t, "web", "v2")
	waiting := n.awaitBatch(t, rolloutTimeout, "web", 1, "waits for its POST verdict", awaitsPostVerdict)
	await(t, rolloutTimeout, "the pods of the rollout are in batches, and that of batch 2 has passed", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		if got := c.Status.RolledOutPods; got != 2 {
			return fmt.Errorf("%d pods", got)
		}
		return nil
	})
	n.run(t, "autoscale", "deployment", "web", "--min=4", "--max=6")
	await(t, rolloutTimeout, "the pods of the autoscaler are not judged", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		message := c.Status.GetCondition(apis.ConditionSucceeded).GetMessage()
		if c.Status.Phase != v1alpha1.ReleaseRunning || !strings.Contains(message, "2 later ones are not judged") {
			return fmt.Errorf("%q: %s", c.Status.Phase, message)
		}
		return nil
	})
	n.sendPass(t, waiting.Status.ChangePodID)
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	if got := c.Status.Counts; got.Passed != 2 || got.Unjudged != 0 || got.Failed != 0 {
		t.Errorf("counts are %+v, want 2 judged and passed pods", got)
	}
}

// setConfig creates an OpsConfigInfo until the test ends, and waits until it is
// Ready.
func (e *environment) setConfig(t *testing.T, kind v1alpha1.ConfigType, content string) {
	t.Helper()
	configs := e.change.OpsConfigInfoes(v1alpha1.SystemNamespace)
	_, err := configs.Create(t.Context(), &v1alpha1.OpsConfigInfo{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + strings.ToLower(string(kind)), Labels: map[string]string{testLabel: "true"}},
		Spec:       v1alpha1.OpsConfigInfoSpec{Type: kind, Content: content, Enable: true},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := configs.Delete(ctx, "e2e-"+strings.ToLower(string(kind)), metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete OpsConfigInfo %s: %v", kind, err)
		}
	})
	await(t, shortTimeout, string(kind)+" is Ready", func(ctx context.Context) error {
		c, err := configs.Get(ctx, "e2e-"+strings.ToLower(string(kind)), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cond := c.Status.GetCondition(apis.ConditionReady); !cond.IsTrue() {
			return fmt.Errorf("condition Ready is %+v", cond)
		}
		return nil
	})
}

// noVerdictPerStage: an unjudged stage follows its own policy.
func noVerdictPerStage(t *testing.T, e *environment) {
	e.setConfig(t, v1alpha1.ConfigNoVerdictPre, "Fail")
	e.setConfig(t, v1alpha1.ConfigNoVerdictPost, "Hold")
	e.setConfig(t, v1alpha1.ConfigNoVerdictOrder, "Hold")

	before := e.optedInNamespace(t)
	before.setChecks(t, double.CheckRule{Match: batch(1, double.Pre), Then: double.Behaviour{Verdict: "inconc"}})
	before.create(t, builder.Deployment("web", 1, builder.Simulated))
	after := e.optedInNamespace(t)
	after.setChecks(t, double.CheckRule{Match: batch(1, double.Post), Then: double.Behaviour{Verdict: "inconc"}})
	after.create(t, builder.Deployment("web", 1, builder.Simulated))
	whole := e.optedInNamespace(t)
	whole.setChecks(t, double.CheckRule{Match: orderCheck(double.Post), Then: double.Behaviour{Verdict: "inconc"}})
	whole.create(t, builder.Deployment("web", 1, builder.Simulated))

	c := before.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuspend)
	if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); !cond.IsFalse() || cond.Reason != v1alpha1.ReasonFailedUnjudged {
		t.Errorf("condition Judged is %+v, want False: unjudged", cond)
	}
	after.awaitHeldUnjudged(t, v1alpha1.ReleaseJudged)
	after.judgeByHand(t, after.awaitBatch(t, shortTimeout, "web", 1, "is done", isDone), "pass", "checked by hand")
	after.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	c = whole.awaitHeldUnjudged(t, v1alpha1.ReleaseOrderJudged)
	whole.awaitEvent(t, c.Name, v1alpha1.ReasonHeldUnjudged, "the order is unjudged")
	whole.run(t, "patch", "changeworkload", c.Name, "--subresource=status", "--type", "merge", "-p", overruleOrder)
	whole.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
}

// awaitHeldUnjudged waits until a release is Running with reason HeldUnjudged.
func (n *namespace) awaitHeldUnjudged(t *testing.T, condition apis.ConditionType) *v1alpha1.ChangeWorkload {
	t.Helper()
	var found *v1alpha1.ChangeWorkload
	await(t, rolloutTimeout, "the unjudged release waits", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		found = c
		cond := c.Status.GetCondition(condition)
		if cond.IsFalse() && cond.Reason == v1alpha1.ReasonHeldUnjudged && c.Status.Phase == v1alpha1.ReleaseRunning {
			return nil
		}
		return fmt.Errorf("%q, %+v", c.Status.Phase, c.Status.Conditions)
	})
	return found
}

// percentageBatches are full, except the last one, and numbered.
func percentageBatches(t *testing.T, e *environment) {
	configs := e.change.OpsConfigInfoes(v1alpha1.SystemNamespace)
	branch := func(ctx context.Context, enable bool, content string) error {
		c, err := configs.Get(ctx, "branch", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Spec.Enable, c.Spec.Content = enable, content
		_, err = configs.Update(ctx, c, metav1.UpdateOptions{})
		return err
	}
	if err := branch(t.Context(), true, "40"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if err := branch(ctx, false, "10"); err != nil {
			t.Errorf("restore isBranch: %v", err)
		}
	})
	e.setConfig(t, v1alpha1.ConfigWaitThreshold, "5s")
	observe(t, settingsTimeout)
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 5, builder.Simulated))
	c := n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	pods, err := n.changePods(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	judged, largest := 0, 0
	for i, p := range pods {
		judged += len(p.Spec.PodInfos)
		largest = max(largest, len(p.Spec.PodInfos))
		last := i == len(pods)-1
		if len(p.Spec.PodInfos) > 2 || int(p.Spec.BatchNo) != i || p.Spec.Last != last || int(p.Spec.TotalBatches) < i+1 {
			t.Errorf("batch %d of %d has %d pods: %+v", i, len(pods), len(p.Spec.PodInfos), p.Spec)
		}
	}
	if judged != 5 || c.Status.Counts.Passed != 5 || len(pods) < 3 {
		t.Errorf("%d pods in %d batches, counts %+v", judged, len(pods), c.Status.Counts)
	}
	if largest != 2 {
		t.Errorf("the largest batch has %d pods, want 2: 40 %% of 5", largest)
	}
	// A release without pods times out, and continues when the pods are
	// created.
	n.create(t, builder.Deployment("late", 1, builder.Simulated, func(d *appsv1.Deployment) { d.Spec.Paused = true }))
	n.awaitPhase(t, rolloutTimeout, "late", v1alpha1.ReleaseNoNewBatch)
	n.run(t, "rollout", "resume", "deployment", "late")
	n.awaitPhase(t, rolloutTimeout, "late", v1alpha1.ReleaseSuccess)
}

// serverUnreachable delays releases. When the server is reachable again, they
// end without manual action.
func serverUnreachable(t *testing.T, e *environment) {
	// Both timeouts start while the server is unreachable.
	e.setConfig(t, v1alpha1.ConfigOrderTimeout, "10m")
	e.setConfig(t, v1alpha1.ConfigPreTimeout, "10m")
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 3, builder.Simulated))
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	e.setConfigMap(t, system, altershield.ConfigMapName, map[string]string{"breaker-pause": "2s"})
	observe(t, 2*time.Second) // it takes effect within 2 s
	restore := e.scaleToZero(t, serverdouble.Namespace, "altershield")
	n.release(t, "web", "v2")
	await(t, rolloutTimeout, "the release reports that the server is unreachable", func(ctx context.Context) error {
		c, err := n.current(ctx, "web")
		if err != nil {
			return err
		}
		if o := c.Status.Order; o == nil || o.Error == nil || o.Error.Reason != v1alpha1.ReasonServerUnreachable {
			return fmt.Errorf("order is %+v", o)
		}
		return nil
	})
	observe(t, 4*time.Second) // longer than the breaker stays open
	restore()
	c := n.awaitPhase(t, recoveryTimeout, "web", v1alpha1.ReleaseSuccess)
	if got := c.Status.Counts; got.Unjudged != 0 || got.Passed != 3 {
		t.Errorf("counts are %+v, want 3 judged pods", got)
	}
	if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); !cond.IsTrue() {
		t.Errorf("condition OrderJudged is %+v, want True", cond)
	}
}
