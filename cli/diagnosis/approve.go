package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// PersonVerdict is a person's verdict on pods of one batch.
type PersonVerdict struct {
	Batch *v1alpha1.ChangePod
	// Results are the podResults to write.
	Results []v1alpha1.PodSummary
	// Pods are the names of the pods that get the verdict.
	Pods []string
}

// IsCurrent reports whether an object is the current release or a batch of it.
func (in Input) IsCurrent(o metav1.Object) bool {
	current := in.CurrentChangeWorkload()
	return current != nil && (o.GetUID() == current.UID || metav1.IsControlledBy(o, current))
}

// VerdictsOfPerson returns the verdicts of a person, pass or fail, for the batches that have a pod to judge. tree is the
// command that shows the pods of each batch.
func VerdictsOfPerson(batches []v1alpha1.ChangePod, verdict, message string, names []string, tree string) ([]PersonVerdict, error) {
	var all []PersonVerdict
	missing := slices.Clone(names)
	for i := range batches {
		j := VerdictOfPerson(&batches[i], verdict, message, names)
		missing = slices.DeleteFunc(missing, func(n string) bool { return slices.Contains(j.Pods, n) })
		if len(j.Pods) > 0 {
			all = append(all, j)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("pod %s is in no batch that is judged: `%s` shows the pods of each batch", strings.Join(missing, ", "), tree)
	}
	return all, nil
}

// VerdictOfPerson returns the podResults that give a verdict of a person to pods of a batch. Without names a pass is for
// all pods that have not passed, and a fail for all pods. Results of other pods are kept.
func VerdictOfPerson(b *v1alpha1.ChangePod, verdict, message string, names []string) PersonVerdict {
	j := PersonVerdict{Batch: b, Results: slices.Clone(b.Status.PodResults)}
	for _, p := range b.Spec.PodInfos {
		outcome, _ := b.OutcomeOf(p.Pod)
		wanted := verdict == "fail" || outcome != v1alpha1.OutcomePass
		if len(names) > 0 {
			wanted = slices.Contains(names, p.Pod)
		}
		if !wanted {
			continue
		}
		p.Verdict, p.Message, p.Source = verdict, message, ""
		j.Results = slices.DeleteFunc(j.Results, func(r v1alpha1.PodSummary) bool { return r.Pod == p.Pod })
		j.Results, j.Pods = append(j.Results, p), append(j.Pods, p.Pod)
	}
	return j
}
