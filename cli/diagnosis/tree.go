package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xlab/treeprint"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// Paint colours a text by the state that it shows.
type Paint func(word string, meaning State) string

// Plain returns the text without colours.
func Plain(word string, _ State) string { return word }

// maxPods is the maximum number of pods of a batch in a tree.
const maxPods = 20

// Tree draws a workload with its releases, newest first, their batches and pods.
func Tree(in Input, paint Paint) string {
	currentRelease := in.CurrentRelease()
	label := in.Namespace + "/" + in.subject()
	if v1alpha1.SuspensionOf(in.Labels) != "" {
		label += "  " + paint("suspended", StateHeld)
	}
	tree := treeprint.NewWithRoot(label)
	if in.Unreadable != nil {
		tree.AddNode(text.OneLine(in.Unreadable.Error()))
		return tree.String()
	}
	releases := slices.Clone(in.Releases)
	slices.SortFunc(releases, func(a, b v1alpha1.ChangeWorkload) int { return cmp.Compare(b.Spec.Attempt, a.Spec.Attempt) })
	if len(releases) == 0 {
		tree.AddNode("no release")
	}
	for i := range releases {
		c := &releases[i]
		state := StateOf(c.Release(), c.Release(), c)
		current := ""
		if c.Release() == currentRelease {
			current = " (current)"
		}
		branch := tree.AddBranch(fmt.Sprintf("release %s attempt %d%s  %s %s  %d of %d pods passed%s",
			shortVersion(c.Spec.Reversion), c.Spec.Attempt, current, paint(string(state.State), state.State), state.Reason,
			c.Status.Counts.Passed, c.Status.Counts.Pods, failedCount(c.Status.Counts)))
		for _, b := range in.BatchesOf(c) {
			addBatch(branch, &b, paint)
		}
	}
	return tree.String()
}

func failedCount(n v1alpha1.PodCounts) string {
	if n.Failed == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed", n.Failed)
}

// shortVersion returns the part of a version that distinguishes it from other versions of a workload.
func shortVersion(version string) string { return version[:min(len(version), 8)] }

func addBatch(branch treeprint.Tree, b *v1alpha1.ChangePod, paint Paint) {
	phase := string(b.Status.Phase)
	if phase == "" {
		phase = "Init"
	}
	if why := waits(b); why != "" {
		phase += ", " + why
	} else if b.Status.Message != "" {
		phase += " after " + b.Status.Message
	}
	batch := branch.AddBranch(fmt.Sprintf("batch %d  %s", v1alpha1.ChangePodIndex(b.Name), text.OneLine(phase)))
	for i, p := range b.Spec.PodInfos {
		if i == maxPods {
			batch.AddNode(fmt.Sprintf("and %d more pods", len(b.Spec.PodInfos)-i))
			return
		}
		outcome, message := b.OutcomeOf(p.Pod)
		line := "pod " + p.Pod + "  " + paint(string(outcome), stateOfOutcome(outcome))
		if r := b.Status.ResultOf(p.Pod); r != nil && r.Source == "" && outcome != v1alpha1.OutcomeNoVerdict {
			line += " by a person"
		}
		batch.AddNode(strings.TrimSuffix(line+": "+text.OneLine(message), ": "))
	}
}

func stateOfOutcome(o v1alpha1.Outcome) State {
	switch o {
	case v1alpha1.OutcomePass:
		return StatePassed
	case v1alpha1.OutcomeFail:
		return StateFailed
	case v1alpha1.OutcomeNoVerdict:
		return StateHeld
	default:
		return StateRunning
	}
}
