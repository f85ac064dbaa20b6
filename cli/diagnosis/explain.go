package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// WayOut is a way out of a state: what it does, and the command.
type WayOut struct {
	Do      string `json:"do"`
	Command string `json:"command,omitempty"`
}

// Explanation says why a request is denied, or why an object waits or is stuck.
type Explanation struct {
	Subject string   `json:"subject"`
	State   State    `json:"state"`
	Reason  string   `json:"reason,omitempty"`
	Why     []string `json:"why"`
	WaysOut []WayOut `json:"waysOut"`
}

// maxListed is the maximum number of pods or batches in an explanation.
const maxListed = 5

func (in Input) subject() string { return in.Kind + "/" + in.Name }

func (in Input) command(verb string, more ...string) string {
	return Command(verb, in.subject(), in.Namespace, more...)
}

// Command returns a command of the plugin for an object, which people copy.
func Command(verb, object, namespace string, more ...string) string {
	words := append([]string{"kubectl breakwater", verb, object, "-n", namespace}, more...)
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// Explain explains the state of a workload's current release.
func Explain(in Input) Explanation {
	current := in.CurrentRelease()
	e := Explanation{Subject: in.subject()}
	c := in.CurrentChangeWorkload()
	state := in.StateOf(current)
	e.State, e.Reason = state.State, state.Reason
	if state.Message != "" {
		e.Why = append(e.Why, state.Message)
	}
	switch {
	case v1alpha1.ExcludedNamespace(in.Namespace): // cannot be opted in
	case !in.OptedIn:
		e.WaysOut = []WayOut{{"opt the namespace in", fmt.Sprintf("kubectl label namespace %s %s=%s --overwrite", in.Namespace, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled)}}
	case current.Version == "":
		e.Why = []string{"the workload has no version yet: the webhook has not seen it. It gets one within seconds if the kind is judged (ConfigMap config-workloads)"}
		e.WaysOut = []WayOut{{"check the installation", "kubectl breakwater doctor"}}
	case v1alpha1.SuspensionOf(in.Labels) != "":
		in.explainSuspended(&e, c)
	case in.Missed != "" && c == nil:
		e.WaysOut = []WayOut{{"check the installation", "kubectl breakwater doctor"}}
	case state.State == StateHeld:
		in.explainUnjudged(&e, c)
		in.addRollback(&e)
	case state.State == StateFailed:
		in.explainFailed(&e, c)
	case state.State == StateRunning && c != nil:
		in.explainRunning(&e, c)
	}
	if c != nil {
		if drifted := c.Status.GetCondition(v1alpha1.ReleaseDrifted); drifted.IsTrue() {
			e.Why = append(e.Why, drifted.Message)
		}
		if p := c.Status.Probation; p != nil && p.NextLookTime != nil {
			e.Why = append(e.Why, fmt.Sprintf("on probation until %s: function judge looked %d times, and looks again at %s",
				p.EndTime.UTC().Format(time.RFC3339), p.Looks, p.NextLookTime.UTC().Format(time.RFC3339)))
		}
	}
	e.addDeletion(in.Labels, in.Namespace)
	return e
}

func (in Input) explainSuspended(e *Explanation, c *v1alpha1.ChangeWorkload) {
	e.Why = append(e.Why, v1alpha1.SuspensionText(in.Labels)+": changes of its pod template are denied, unless isBlockingUp is off or shadow is on")
	failed := c
	if failed == nil || failed.Status.Phase != v1alpha1.ReleaseSuspend {
		failed = in.newest(v1alpha1.ReleaseSuspend)
	}
	if failed != nil {
		for _, line := range failedPods(failed) {
			if failed != c {
				line = "version " + failed.Spec.Reversion + ": " + line
			}
			if !slices.Contains(e.Why, line) { // the message of the release names a pod, too
				e.Why = append(e.Why, line)
			}
		}
	}
	in.explainCurrent(e, c, failed)
	repair := WayOut{"release a repair, once per suspension", in.command("repair", "--image CONTAINER=IMAGE")}
	restart := WayOut{"or use the repair to restart the pods, if the cause was outside of the template", in.command("retry")}
	if b := v1alpha1.CurrentBypassOf(in.Labels, in.Annotations); b.UsesRepair() {
		e.Why = append(e.Why, fmt.Sprintf("a repair of this suspension was already admitted for %s", b.User))
		repair = WayOut{"release another repair", in.command("repair", "--again", "--image CONTAINER=IMAGE")}
		restart = WayOut{"or use another repair to restart the pods, if the cause was outside of the template", in.command("retry", "--again")}
	}
	e.WaysOut = append(e.WaysOut, repair, restart)
	in.addRollback(e)
	e.WaysOut = append(e.WaysOut, WayOut{"see whether a change would be denied now", Command("simulate apply", "", in.Namespace, "-f FILE")})
}

// explainCurrent adds the ways out that the current release of a suspended workload has. Verdicts
// change only the current release: after a repair or rollback was admitted, the ways out are those of
// that newer release.
func (in Input) explainCurrent(e *Explanation, c, failed *v1alpha1.ChangeWorkload) {
	switch {
	case c == nil:
	case c == failed && e.Reason == v1alpha1.ReasonOrderNotAccepted:
		e.WaysOut = append(e.WaysOut, checkServer(c))
	case c == failed && e.Reason == v1alpha1.ReasonFailedCheckLost: // no verdict changes it
	case c == failed:
		e.WaysOut = append(e.WaysOut, WayOut{"overrule the verdict (role breakwater-judge)", in.command("approve", orderFlag(c)+"-m REASON")})
	case e.State == StateHeld:
		in.explainUnjudged(e, c)
	case e.State == StateRunning:
		in.explainRunning(e, c)
	}
}

func (in Input) addRollback(e *Explanation) {
	if to := in.rollbackTarget(); to != "" {
		e.WaysOut = append(e.WaysOut, WayOut{"roll back to the version that succeeded last, which a suspension does not deny", in.command("rollback", "--to "+to)})
	}
}

// rollbackTarget returns the version to roll back to, or "". After a version failed that had succeeded, there is no
// ChangeWorkload of a version that succeeded, because those of earlier releases were deleted. The saved templates remain.
func (in Input) rollbackTarget() string {
	if last := in.LastSucceeded(); last != nil {
		return last.Spec.Reversion
	}
	failed := savedtemplate.FailedVersions(in.Releases)
	saved, _ := savedtemplate.Newest(in.Saved, in.CurrentRelease().Version, func(version string) bool { return failed[version] })
	return saved.Release.Version
}

func failedPods(c *v1alpha1.ChangeWorkload) []string {
	var lines []string
	for i, p := range c.Status.DefenseCheckFailPods {
		if i == maxListed {
			lines = append(lines, fmt.Sprintf("and %d more pods failed", int(c.Status.Counts.Failed)-i))
			break
		}
		lines = append(lines, p.Failure())
	}
	return lines
}

// orderFlag is the flag of approve for a release whose order check failed or has no verdict.
func orderFlag(c *v1alpha1.ChangeWorkload) string {
	if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); cond.IsFalse() &&
		(cond.Reason == v1alpha1.ReasonOrderCheckFailed || cond.Reason == v1alpha1.ReasonHeldUnjudged || cond.Reason == v1alpha1.ReasonFailedUnjudged) {
		return "--order "
	}
	return ""
}

func (in Input) explainUnjudged(e *Explanation, c *v1alpha1.ChangeWorkload) {
	why := "the rollout is held because it is unjudged"
	if v1alpha1.SuspensionOf(in.Labels) == "" {
		why += "; a newer template is admitted"
	}
	e.Why = append(e.Why, why)
	if c.Status.GetCondition(v1alpha1.ReleaseOrderAccepted).GetReason() == v1alpha1.ReasonOrderNotAccepted {
		e.Why = append(e.Why, "a verdict does not resume the rollout before the server accepts the order")
		e.WaysOut = append(e.WaysOut, checkServer(c))
		return
	}
	in.addVerdicts(e, c)
}

func (in Input) addVerdicts(e *Explanation, c *v1alpha1.ChangeWorkload) {
	flag := orderFlag(c)
	e.WaysOut = append(e.WaysOut,
		WayOut{"judge it: pass", in.command("approve", flag+"-m REASON")}, WayOut{"judge it: fail", in.command("reject", flag+"-m REASON")})
}

// checkServer is the way out of an order that the server did not accept.
func checkServer(c *v1alpha1.ChangeWorkload) WayOut {
	check := "check the address and token of the server"
	if _, called := c.Status.Order.FirstResult(); !called {
		check = "check the Broker, function submit, the circuit breaker and ConfigMap config-altershield: the server was not called"
	}
	return WayOut{check, "kubectl breakwater doctor"}
}

func (in Input) explainFailed(e *Explanation, c *v1alpha1.ChangeWorkload) {
	if c == nil {
		return
	}
	e.Why = append(e.Why, failedPods(c)...)
	switch e.Reason {
	case v1alpha1.ReasonReleaseTimedOut:
		e.WaysOut = append(e.WaysOut, WayOut{"find out why its pods are not Ready; the release continues when one becomes Ready", "kubectl describe pods -n " + in.Namespace})
	case v1alpha1.ReasonOrderNotAccepted:
		e.WaysOut = append(e.WaysOut, checkServer(c), WayOut{"restart the pods in a new release", in.command("retry")})
	default:
		if held := c.Status.GetCondition(v1alpha1.ReleaseHeld); held != nil && held.Message != "" {
			e.Why = append(e.Why, held.Message)
		}
	}
	in.addRollback(e)
}

// explainRunning says what a running release waits for.
func (in Input) explainRunning(e *Explanation, c *v1alpha1.ChangeWorkload) {
	if o := c.Status.Order; o != nil && o.Error != nil && !o.Opened() {
		e.Why = append(e.Why, fmt.Sprintf("the server has not accepted the order: %s: %s", o.Error.Reason, o.Error.Message))
	}
	held := c.Status.GetCondition(v1alpha1.ReleaseHeld)
	resumed := held.GetReason() == v1alpha1.ReasonResumedUnjudged
	if resumed || held.GetReason() == v1alpha1.ReasonTrafficUntilJudged {
		e.Why = append(e.Why, held.GetMessage())
	}
	listed := 0
	for _, b := range in.BatchesOf(c) {
		why := waits(&b)
		if why == "" {
			continue
		}
		if listed++; listed > maxListed {
			e.Why = append(e.Why, "and more batches wait")
			break
		}
		e.Why = append(e.Why, "batch "+b.Name+" "+why)
	}
	if e.Reason == v1alpha1.ReasonRolloutStuck {
		e.WaysOut = append(e.WaysOut, WayOut{"see what its controller reports", fmt.Sprintf("kubectl describe %s -n %s", in.subject(), in.Namespace)})
	}
	if len(in.BatchesOf(c)) == 0 {
		e.Why = append(e.Why, "no pod is in a batch yet: a pod is judged when it is Ready")
		if in.LastSucceeded() != nil && in.Kind != workload.KnativeService.Argument() {
			e.Why = append(e.Why, "if a pod does not run and none becomes Ready, Breakwater may roll back "+
				"(OpsConfigInfo of type self-healing: by default on, after 2m; docs/change/rollback.md)")
		}
		e.WaysOut = append(e.WaysOut, WayOut{"see its pods", "kubectl get pods -n " + in.Namespace})
	}
	if resumed && e.Reason != v1alpha1.ReasonOrderPending || e.Reason == v1alpha1.ReasonHeldUnjudged { // its rollout is complete, or is not stopped
		in.addVerdicts(e, c)
	}
	e.WaysOut = append(e.WaysOut, WayOut{"wait for the end", in.command("status", "--timeout 10m")})
}
