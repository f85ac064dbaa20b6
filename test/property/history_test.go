package property

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// history records what the invariants need.
type history struct {
	// accepted are the ids of the events that the Broker has accepted.
	accepted   map[string]bool
	violations []string
	madePods   int
	// calls counts the starts and finishes that reached the server, by object and
	// stage.
	calls map[string]int
	// promises are the verdicts that the callback answered with 200.
	promises []promise
	// personResults are the verdicts of people, by ChangePod and pod.
	personResults map[types.UID]map[string]string
	// wasDown: the server was unreachable, so an order may have timed out.
	wasDown bool
	// quietSince is the time at which the faults ended.
	quietSince time.Time
}

type promise struct {
	callback.Received
	known bool
}

func newHistory() history {
	return history{accepted: map[string]bool{}, calls: map[string]int{}, personResults: map[types.UID]map[string]string{}}
}

func (w *fixture) violated(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// mayWrite returns the fields of a status that a process may write, as in
// docs/architecture.md.
func mayWrite(resource, by string) []string {
	switch resource + " " + by {
	case "changepods controller":
		return statuspatch.ChangePodDerived
	case "changepods submit":
		// Function submit records the verdicts of its own calls with the Recorder.
		return slices.Concat(statuspatch.ChangePodSubmit, statuspatch.ChangePodVerdict)
	case "changepods verdict":
		// A verdict is stored with the end of its batch, or with the intent to finish it.
		return slices.Concat(statuspatch.ChangePodVerdict, statuspatch.ChangePodFinish, statuspatch.ChangePodEnd)
	case "changepods person":
		return []string{"podResults", "message"}
	case "changeworkloads controller":
		return slices.Concat(statuspatch.ChangeWorkloadDerived, statuspatch.ChangeWorkloadInbox)
	case "changeworkloads submit":
		return slices.Concat(statuspatch.ChangeWorkloadSubmit, statuspatch.ChangeWorkloadVerdict)
	case "changeworkloads verdict":
		return statuspatch.ChangeWorkloadVerdict
	case "changeworkloads person":
		return []string{"orderResult"}
	case "changeworkloads callback", "changeworkloads deadletter":
		return statuspatch.ChangeWorkloadInbox
	default:
		return nil
	}
}

// checkWrite checks the writer of each changed field, and that conditions have
// reasons.
func (w *fixture) checkWrite(x write) {
	if x.by == kubernetes || x.by == "test" || x.by == "webhook" || x.after == nil {
		return
	}
	if x.id.resource == "deployments" {
		w.checkDeploymentWrite(x)
		return
	}
	if x.before == nil {
		if x.id.resource != "changepods" || x.by != controllerName {
			w.violated("%s created %s %s", x.by, x.id.resource, x.id.name)
		}
		return
	}
	allowed := mayWrite(x.id.resource, x.by)
	for _, field := range x.fields {
		if field == "metadata.finalizers" && x.id.resource == "changeworkloads" && x.by == controllerName {
			continue
		}
		name, inStatus := strings.CutPrefix(field, "status.")
		if !inStatus || !slices.Contains(allowed, name) {
			w.violated("%s wrote %s of %s %s", x.by, field, x.id.resource, x.id.name)
		}
	}
	if c, ok := x.after.(duckv1.KRShaped); ok {
		for _, cond := range c.GetStatus().Conditions {
			if cond.Reason == "" {
				w.violated("condition %s of %s is %s without a reason", cond.Type, x.id.name, cond.Status)
			}
		}
	}
	if before, ok := x.before.(*v1alpha1.ChangeWorkload); ok {
		w.checkInboxWrite(x.by, before, x.after.(*v1alpha1.ChangeWorkload))
	}
}

// checkDeploymentWrite: an old release never changes the workload.
func (w *fixture) checkDeploymentWrite(x write) {
	if x.by != controllerName {
		w.violated("%s wrote the Deployment", x.by)
		return
	}
	for _, field := range x.fields {
		if !slices.Contains([]string{"metadata.labels", "metadata.annotations", "spec"}, field) {
			w.violated("the controller wrote %s of the Deployment", field)
		}
	}
	release, _ := v1alpha1.ReleaseOf(w.deployment().Annotations)
	o, ok, _ := w.process.informer("changeworkloads").indexer.GetByKey(w.process.at.key)
	if !ok {
		w.violated("%s wrote the Deployment, but is not a ChangeWorkload", w.process.at.key)
		return
	}
	if c := o.(*v1alpha1.ChangeWorkload); c.Spec.Reversion != release.Version || c.Spec.Attempt != release.Attempt {
		w.violated("%s of attempt %d wrote the Deployment, which is at attempt %d", c.Name, c.Spec.Attempt, release.Attempt)
	}
}

// checkInboxWrite: only the controller removes entries, and it adds none.
func (w *fixture) checkInboxWrite(by string, before, after *v1alpha1.ChangeWorkload) {
	has := func(list []v1alpha1.InboxVerdict, of v1alpha1.InboxVerdict) bool {
		return slices.ContainsFunc(list, func(v v1alpha1.InboxVerdict) bool { return v.ID == of.ID })
	}
	for _, v := range before.Status.Inbox {
		if by != controllerName && !has(after.Status.Inbox, v) {
			w.violated("%s removed %s from the inbox", by, v.ID)
		}
	}
	for _, v := range after.Status.Inbox {
		if by == controllerName && !has(before.Status.Inbox, v) {
			w.violated("the controller added %s to the inbox", v.ID)
		}
	}
}

// checkCall: each call that reaches the server has a stored intent, and each intent
// has at most one call.
func (w *fixture) checkCall(action string, body []byte) {
	var in struct {
		Order   string `json:"bizExecOrderId"`
		Node    string `json:"nodeId"`
		BatchNo int32  `json:"batchNo"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		w.violated("the body of %s is not valid: %s", action, body)
		return
	}
	stage := v1alpha1.StagePre
	switch action {
	case "submitChangeExecBatchStartNotify":
	case "submitChangeFinishNotify":
		stage = v1alpha1.StagePost
		w.checkOrderCall(in.Order, in.Node, stage)
	case "submitChangeExecOrderStartNotify":
		w.checkOrderCall(in.Order, "", stage)
		return
	default:
		return
	}
	for _, p := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		owner := w.ownerOf(p)
		if owner == nil || owner.Spec.OrderID != in.Order ||
			(stage == v1alpha1.StagePre && p.Spec.BatchNo != in.BatchNo) || (stage == v1alpha1.StagePost && p.Status.ChangePodID != in.Node) {
			continue
		}
		of := string(p.UID) + "/" + string(stage)
		w.calls[of]++
		if s := p.Status.SubmissionOf(stage); s == nil || int(s.Attempts) < w.calls[of] {
			w.violated("call %d for %s of %s has intent %+v", w.calls[of], stage, p.Name, s)
		}
	}
}

// checkOrderCall is checkCall for a start or finish of the order check.
func (w *fixture) checkOrderCall(order, node string, stage v1alpha1.Stage) {
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		if c.Spec.OrderID != order || (stage == v1alpha1.StagePost && c.Status.Order.Node() != node) {
			continue
		}
		of := string(c.UID) + "/" + string(stage)
		w.calls[of]++
		if s := c.Status.Order.SubmissionOf(stage); s == nil || int(s.Attempts) < w.calls[of] {
			w.violated("call %d for %s of the order of %s has intent %+v", w.calls[of], stage, c.Name, s)
		}
	}
}

func (w *fixture) ownerOf(p *v1alpha1.ChangePod) *v1alpha1.ChangeWorkload {
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		if len(p.OwnerReferences) > 0 && p.OwnerReferences[0].UID == c.UID {
			return c
		}
	}
	return nil
}

// nodes returns the order nodes in ChangePods and ChangeWorkloads.
func (w *fixture) nodes() map[string]bool {
	out := map[string]bool{}
	for _, c := range all[*v1alpha1.ChangeWorkload](w.api, "changeworkloads") {
		for _, node := range c.Status.Order.Nodes() {
			out[node] = true
		}
	}
	for _, p := range all[*v1alpha1.ChangePod](w.api, "changepods") {
		for _, node := range p.Status.Nodes() {
			out[node] = true
		}
	}
	return out
}

// recordPromise records the verdicts of a callback that was answered with 200.
func (w *fixture) recordPromise(p callbackRequest, known map[string]bool) {
	said, err := callback.Read(p.header, p.body)
	if err != nil {
		w.violated("a malformed callback was answered with 200: %v", err)
		return
	}
	for _, r := range said {
		w.promises = append(w.promises, promise{r, known[r.Data.NodeID]})
	}
}

// personJudges: a person judges a batch with kubectl.
func (w *fixture) personJudges() bool {
	list := all[*v1alpha1.ChangePod](w.api, "changepods")
	if len(list) == 0 {
		return false
	}
	p := list[w.draw("batch", len(list))]
	verdict := []string{"pass", "unpass", "fail"}[w.draw("verdict", 3)]
	w.judgeByHand(p, verdict)
	return true
}

func (w *fixture) judgeByHand(p *v1alpha1.ChangePod, verdict string) {
	results := slices.Clone(p.Spec.PodInfos)
	w.personResults[p.UID] = map[string]string{}
	for i := range results {
		results[i].Verdict = verdict
		w.personResults[p.UID][results[i].Pod] = verdict
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{"podResults": results, "message": "PostFinish"}})
	if err == nil {
		_, err = w.api.patch("person", id{"changepods", p.Namespace, p.Name}, types.MergePatchType, raw, "status")
	}
	if err != nil {
		panic(err)
	}
}

// judgeOrderByHand: a person judges the order with kubectl.
func (w *fixture) judgeOrderByHand(c *v1alpha1.ChangeWorkload, verdict string) {
	raw := []byte(`{"status":{"orderResult":{"verdict":"` + verdict + `"}}}`)
	if _, err := w.api.patch("person", id{"changeworkloads", c.Namespace, c.Name}, types.MergePatchType, raw, "status"); err != nil {
		panic(err)
	}
}
