package diagnosis

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

// Input is the input of the diagnosis of a workload or a release.
type Input struct {
	// Kind, Namespace and Name are those of the workload; Kind is as in an argument.
	Kind, Namespace, Name string
	// Unreadable is the error of a workload that could not be read: a tree shows it. The fields below are then empty.
	Unreadable error
	// OptedIn: the namespace is opted in.
	OptedIn bool
	// NamespaceLabel is the value of the label that opts the namespace in.
	NamespaceLabel string
	// Labels and Annotations are those of the workload.
	Labels, Annotations map[string]string
	// Missed is the version of the workload's pod template if the webhook has not seen it: the annotations
	// are those of the template before. Else it is empty.
	Missed string
	// Releases are the ChangeWorkloads of the workload, Batches their ChangePods.
	Releases []v1alpha1.ChangeWorkload
	Batches  []v1alpha1.ChangePod
	// Saved are the saved templates of the workload, latest attempt first. They are needed only if LastSucceeded is nil.
	Saved []savedtemplate.Saved
}

// CurrentRelease returns the release of the workload's pod template; zero if the workload has none. A template
// that the webhook has not seen becomes the next attempt.
func (in Input) CurrentRelease() v1alpha1.Release {
	annotated, _ := v1alpha1.ReleaseOf(in.Annotations)
	if in.Missed != "" {
		return v1alpha1.Release{Version: in.Missed, Attempt: annotated.NextAttempt()}
	}
	return annotated
}

// Find returns the ChangeWorkload of a release, or nil.
func (in Input) Find(release v1alpha1.Release) *v1alpha1.ChangeWorkload {
	for i := range in.Releases {
		if in.Releases[i].Release() == release {
			return &in.Releases[i]
		}
	}
	return nil
}

// CurrentChangeWorkload returns the ChangeWorkload of the workload's current release, or nil.
func (in Input) CurrentChangeWorkload() *v1alpha1.ChangeWorkload { return in.Find(in.CurrentRelease()) }

// BatchesOf returns the batches of a release in their order.
func (in Input) BatchesOf(c *v1alpha1.ChangeWorkload) []v1alpha1.ChangePod {
	var own []v1alpha1.ChangePod
	for i := range in.Batches {
		if metav1.IsControlledBy(&in.Batches[i], c) {
			own = append(own, in.Batches[i])
		}
	}
	slices.SortFunc(own, func(a, b v1alpha1.ChangePod) int { return cmp.Compare(a.Spec.BatchNo, b.Spec.BatchNo) })
	return own
}

// LastSucceeded returns the newest release of another version that succeeded with pods, or nil.
func (in Input) LastSucceeded() *v1alpha1.ChangeWorkload {
	current := in.CurrentRelease()
	var last *v1alpha1.ChangeWorkload
	for i := range in.Releases {
		c := &in.Releases[i]
		if c.SucceededWithPods() && c.Spec.Reversion != current.Version && (last == nil || c.Spec.Attempt > last.Spec.Attempt) {
			last = c
		}
	}
	return last
}

func (in Input) newest(phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
	var found *v1alpha1.ChangeWorkload
	for i := range in.Releases {
		if c := &in.Releases[i]; c.Status.Phase == phase && (found == nil || c.Spec.Attempt > found.Spec.Attempt) {
			found = c
		}
	}
	return found
}
