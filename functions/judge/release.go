package judge

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
)

const (
	// releaseTTL is how long the pods of a release are cached: the batches of a release
	// are looked at within seconds of each other.
	releaseTTL = 5 * time.Second
	// releaseCacheSize is the size of the LRU cache.
	releaseCacheSize = 1000
	// maxPodNames is the maximum number of names of pods in a matcher. The samples of so many
	// pods suffice for a verdict, and Prometheus compiles the names for each query.
	maxPodNames = 500
)

// release has the namespace of a release, its start, and patterns that match the names
// of its new and old pods.
type release struct {
	namespace string
	patterns
	newSince newSince
	// noReferenceBefore is true if no earlier pod had the names of the new ones, or maybe one of a version that failed.
	noReferenceBefore bool
	// start is when the first batch of the release was created.
	start time.Time
	// firstRecord is the record of the first batch; nil if it has none, or was compared with pods of a version that failed later.
	firstRecord *judgev1alpha1.Record
}

// patterns are regular expressions that match the names of pods.
type patterns struct {
	// newPods match the pods of the new version, and oldPods those of other versions. If oldPods is empty, no
	// old pods exist at the same time.
	newPods, oldPods []string
	// failedPods match the pods of versions that failed. These are no old pods: a new version with the same fault
	// is no worse.
	failedPods []string
}

// releaseCache caches releases by the UID of their ChangeWorkload and the versions that had failed.
type releaseCache struct{ entries *cache.LRUExpireCache }

func newReleaseCache(c clock.PassiveClock) *releaseCache {
	return &releaseCache{cache.NewLRUExpireCacheWithClock(releaseCacheSize, c)}
}

// checkOf returns the MetricCheck of a batch, or nil if it was deleted.
func (f *function) checkOf(ctx context.Context, asked v1alpha1.Judge) (*judgev1alpha1.MetricCheck, error) {
	namespace, name, _ := strings.Cut(asked.Check, "/")
	check, err := f.Change.JudgeV1alpha1().MetricChecks(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read MetricCheck %s: %w", asked.Check, err)
	}
	return check, nil
}

// releaseOf returns the release of a batch, at most releaseTTL old, or errOutdated if it has none.
func (f *function) releaseOf(ctx context.Context, batch *v1alpha1.ChangePod) (release, error) {
	owner := metav1.GetControllerOfNoCopy(batch)
	if owner == nil {
		return release{}, errOutdated
	}
	failed := failedVersions(batch)
	key := string(owner.UID) + "/" + strings.Join(failed, "/")
	if found, ok := f.releases.entries.Get(key); ok {
		return found.(release), nil
	}
	ctx, leave, err := f.lists.Enter(ctx, batch.Namespace)
	if err != nil {
		return release{}, fmt.Errorf("wait for the lists of other releases: %w", err)
	}
	defer leave()
	if found, ok := f.releases.entries.Get(key); ok { // another batch of the release waited before
		return found.(release), nil
	}
	parent, err := f.Change.AppV1alpha1().ChangeWorkloads(batch.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return release{}, errOutdated
	} else if err != nil {
		return release{}, fmt.Errorf("read ChangeWorkload: %w", err)
	}
	first, err := f.firstOf(ctx, parent, batch)
	if err != nil {
		return release{}, err
	}
	out := release{namespace: batch.Namespace, start: first.CreationTimestamp.Time}
	if slices.Equal(failedVersions(first), failed) {
		out.firstRecord = first.Status.MetricRecord
	}
	if err := f.findPods(ctx, parent, batch, &out, func(pods []*corev1.Pod) (patterns, error) {
		claimed := batch.Spec.PodInfos
		var revisions []savedtemplate.Template
		if len(failed) > 0 || !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return isClaimed(p, claimed) }) {
			var err error
			if revisions, err = f.revisionsOf(ctx, parent, len(failed) > 0); err != nil {
				return patterns{}, err
			}
		}
		found := podsOfWorkload(pods, parent.Spec.WorkloadRef.UID, claimed, latestOf(revisions), ofVersions(revisions, failed))
		var admitted metav1.Time
		if updatesInPlace(parent.Spec.WorkloadRef) {
			admitted = parent.CreationTimestamp
		}
		out.newSince = newSinceOf(pods, found.newPods, admitted)
		return found, nil
	}); err != nil {
		return release{}, err
	}
	f.releases.entries.Add(key, out, releaseTTL)
	return out, nil
}

// updatesInPlace reports whether the controller of a workload may change the version of an existing pod:
// those of the built-in kinds replace pods.
func updatesInPlace(ref v1alpha1.WorkloadRef) bool {
	return !slices.ContainsFunc(workload.BuiltIn(), func(k workload.Kind) bool { return k.Is(ref.APIVersion, ref.Kind) })
}

// keepsNames reports whether new pods of a workload that owns its pods itself may have the names of earlier ones.
func keepsNames(ref v1alpha1.WorkloadRef) bool {
	return workload.StatefulSet.Is(ref.APIVersion, ref.Kind) || updatesInPlace(ref)
}

// succeededReleaseOf returns a release that has succeeded. All pods of its workload are new: a newer
// release ends the probation. The names of old pods that the workload owned itself are not
// used. The record may lack many of them. In a workload that keeps names, such as a StatefulSet,
// new pods have these names now.
func (f *function) succeededReleaseOf(ctx context.Context, parent *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod) (release, error) {
	first, err := f.firstOf(ctx, parent, batch)
	if err != nil {
		return release{}, err
	}
	ctx, leave, err := f.lists.Enter(ctx, batch.Namespace)
	if err != nil {
		return release{}, fmt.Errorf("wait for the lists of other releases: %w", err)
	}
	defer leave()
	out := release{namespace: batch.Namespace, start: first.CreationTimestamp.Time}
	err = f.findPods(ctx, parent, batch, &out, func(pods []*corev1.Pod) (patterns, error) {
		var newPods []string
		for _, p := range pods {
			if v1alpha1.OwnedBy(p, parent.Spec.WorkloadRef.UID) {
				newPods = append(newPods, regexp.QuoteMeta(p.Name))
			}
		}
		return patterns{newPods: sortAndLimit(newPods)}, nil
	})
	return out, err
}

// firstOf returns the first batch of a release, or the given one if the first was deleted.
func (f *function) firstOf(ctx context.Context, parent *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod) (*v1alpha1.ChangePod, error) {
	first, err := f.Change.AppV1alpha1().ChangePods(batch.Namespace).Get(ctx, v1alpha1.ChangePodName(parent.Name, 1), metav1.GetOptions{})
	switch {
	case err == nil && v1alpha1.OwnedBy(first, parent.UID):
		return first, nil
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read the first ChangePod: %w", err)
	default:
		return batch, nil
	}
}

// findPods finds the pods of a release and those of the other versions of its workload. The
// pods of a ReplicaSet have its name as prefix, also if there are none now: the Revisions of a
// Knative Service scale to zero. If the prefix is ambiguous, the claimed pods, those that exist and the
// old ones in the record are found. Pods that the workload owns itself are found by their names; those of a StatefulSet
// have the same names in each version.
func (f *function) findPods(ctx context.Context, parent *v1alpha1.ChangeWorkload, batch *v1alpha1.ChangePod, out *release, owned func([]*corev1.Pod) (patterns, error)) error {
	owners, err := f.ownersOfReplicaSets(ctx, parent)
	if err != nil {
		return err
	}
	own, err := f.replicaSets(ctx, parent.Namespace, owners)
	if err != nil {
		return err
	}
	releaseOf := releaseOfReplicaSet
	if isKnativeService(parent.Spec.WorkloadRef) {
		releaseOf = releaseOfRevision
	}
	failed := failedVersions(batch)
	out.noReferenceBefore = len(own) > 0 || !keepsNames(parent.Spec.WorkloadRef) || len(failed) > 0
	find := func(podsOf func(*appsv1.ReplicaSet) []string) patterns {
		return podsOfReplicaSets(own, parent.Release(), failed, releaseOf, podsOf)
	}
	out.patterns = find(func(set *appsv1.ReplicaSet) []string { return []string{podPattern(set.Name)} })
	if ambiguous := out.ambiguous(parent.Spec.WorkloadRef.Name); len(ambiguous) > 0 {
		pods, err := f.pods(ctx, parent.Namespace, "")
		if err != nil {
			return err
		}
		newAreAmbiguous := slices.ContainsFunc(out.newPods, func(p string) bool { return ambiguous[p] })
		out.patterns = find(byName(ambiguous, pods))
		if record := batch.Status.MetricRecord; record != nil {
			out.oldPods = append(out.oldPods, patternsOf(record.Target.Old)...) // those of a release on probation are deleted
		}
		if newAreAmbiguous {
			out.newPods = append(out.newPods, claimedPods(batch.Spec.PodInfos)...)
		}
	}
	out.newPods, out.oldPods = sortAndLimit(firstPatterns(out.newPods)), sortAndLimit(firstPatterns(out.oldPods))
	if len(out.newPods) > 0 {
		return nil
	}
	pods, err := f.pods(ctx, parent.Namespace, appsv1.ControllerRevisionHashLabelKey)
	if err != nil {
		return err
	}
	out.patterns, err = owned(pods)
	return err
}

// failedVersions returns the versions that had failed when the batch was created.
func failedVersions(batch *v1alpha1.ChangePod) []string {
	if asked := batch.JudgeOf(v1alpha1.JudgeMetrics); asked != nil {
		return asked.FailedVersions
	}
	return nil
}

// isControlledBy reports whether the controller of an object has one of the UIDs.
func isControlledBy(o metav1.Object, uids ...types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(o)
	return owner != nil && slices.Contains(uids, owner.UID)
}

// latestOf returns the name of the ControllerRevision with the current template of its workload, which has the highest
// number; empty if there is none.
func latestOf(revisions []savedtemplate.Template) string {
	var latest savedtemplate.Template
	for _, t := range revisions {
		if t.Revision > latest.Revision {
			latest = t
		}
	}
	return latest.Name
}

// ofVersions returns the names of the ControllerRevisions of a workload with one of the versions. A version is computed
// from the template: the annotations are missing if the revision is older than the opt-in, and name an earlier version if the
// webhook missed it. They count for a version that no template has.
func ofVersions(templates []savedtemplate.Template, versions []string) (names []string) {
	for _, t := range templates {
		recorded := slices.Contains(versions, t.Recorded) &&
			!slices.ContainsFunc(templates, func(other savedtemplate.Template) bool { return other.Version == t.Recorded })
		if recorded || slices.Contains(versions, t.Version) {
			names = append(names, t.Name)
		}
	}
	return names
}

func isKnativeService(ref v1alpha1.WorkloadRef) bool {
	return workload.KnativeService.Is(ref.APIVersion, ref.Kind)
}

// releaseOfReplicaSet returns the release of a ReplicaSet; all are those of its owner.
func releaseOfReplicaSet(set *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) (v1alpha1.Release, bool) {
	return savedtemplate.ReleaseOf(set, all, func(o *appsv1.ReplicaSet) string { return o.Annotations[computedKey] })
}

// releaseOfRevision returns the release of a ReplicaSet of a Revision. Its Deployment has several if Serving changed its
// own parts of it, such as queue-proxy. All have the release: a Revision cannot change its template.
func releaseOfRevision(set *appsv1.ReplicaSet, _ []*appsv1.ReplicaSet) (v1alpha1.Release, bool) {
	return v1alpha1.ReleaseOf(set.Annotations)
}

// podsOfReplicaSets returns the patterns of the pods of a workload's ReplicaSets, of the newest first: Serving keeps many
// Revisions without pods. failed are the versions that failed, and podsOf returns the patterns of a ReplicaSet's pods.
func podsOfReplicaSets(sets []*appsv1.ReplicaSet, of v1alpha1.Release, failed []string,
	releaseOf func(set *appsv1.ReplicaSet, all []*appsv1.ReplicaSet) (v1alpha1.Release, bool),
	podsOf func(set *appsv1.ReplicaSet) []string) (out patterns) {
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	ofOwner := map[types.UID][]*appsv1.ReplicaSet{}
	for _, set := range sets {
		owner := metav1.GetControllerOfNoCopy(set).UID
		ofOwner[owner] = append(ofOwner[owner], set)
	}
	for _, set := range sets {
		found := podsOf(set)
		switch r, known := releaseOf(set, ofOwner[metav1.GetControllerOfNoCopy(set).UID]); {
		case known && r == of:
			out.newPods = append(out.newPods, found...)
		case known && slices.Contains(failed, r.Version):
			out.failedPods = append(out.failedPods, found...)
		default:
			out.oldPods = append(out.oldPods, found...)
		}
	}
	return out
}

// claimedPods returns the names of the claimed pods of a batch; a pod may be deleted.
func claimedPods(claimed []v1alpha1.PodSummary) (names []string) {
	for _, c := range claimed {
		names = append(names, regexp.QuoteMeta(c.Pod))
	}
	return names
}

// podsOfWorkload returns the patterns of the pods that a workload owns itself. Pods with the
// revision of a claimed pod are new. If no claimed pod exists, those with the latest revision are; failed are the
// revisions of versions that failed.
func podsOfWorkload(pods []*corev1.Pod, owner types.UID, claimed []v1alpha1.PodSummary, latest string, failed []string) (out patterns) {
	newHashes := map[string]bool{}
	for _, p := range pods {
		if isClaimed(p, claimed) {
			newHashes[p.Labels[appsv1.ControllerRevisionHashLabelKey]] = true
		}
	}
	isNew := func(p *corev1.Pod) bool {
		if len(newHashes) == 0 {
			return workload.PodOfRevision(p, latest)
		}
		return newHashes[p.Labels[appsv1.ControllerRevisionHashLabelKey]]
	}
	out.newPods = claimedPods(claimed)
	for _, p := range pods {
		name := regexp.QuoteMeta(p.Name)
		switch {
		case !v1alpha1.OwnedBy(p, owner), slices.Contains(out.newPods, name):
		case isNew(p):
			out.newPods = append(out.newPods, name)
		case slices.ContainsFunc(failed, func(revision string) bool { return workload.PodOfRevision(p, revision) }):
			out.failedPods = append(out.failedPods, name)
		default:
			out.oldPods = append(out.oldPods, name)
		}
	}
	out.newPods, out.oldPods = sortAndLimit(out.newPods), sortAndLimit(out.oldPods)
	return out
}

// isClaimed reports whether a pod is one of the claimed pods of a batch. A later pod with the same
// name is not.
func isClaimed(p *corev1.Pod, claimed []v1alpha1.PodSummary) bool {
	return slices.ContainsFunc(claimed, func(c v1alpha1.PodSummary) bool { return c.UID == p.UID })
}

// sortAndLimit sorts patterns and returns the first maxPodNames, each once, so that the same pods give
// the same query.
func sortAndLimit(patterns []string) []string {
	slices.Sort(patterns)
	return firstPatterns(slices.Compact(patterns))
}

func firstPatterns(patterns []string) []string { return patterns[:min(len(patterns), maxPodNames)] }

// Labels has the names of the labels of series that contain the namespace and the pod.
type Labels struct{ Namespace, Pod string }

// withEarlierOldPods returns the release with the old pods in a record, or in that of the first batch if the batch has
// none. When a rollout is complete, the samples of the old pods are still the reference. If a new pod has the name of an
// earlier old pod, the workload keeps names. The names of the new pods then also match the samples of the old pods, so
// no earlier name is added. There are at most maxPodNames names, and those of existing pods come first.
func (r release) withEarlierOldPods(record *judgev1alpha1.Record) release {
	if record == nil {
		record = r.firstRecord
	}
	if record == nil {
		return r
	}
	earlier := patternsOf(record.Target.Old)
	if slices.ContainsFunc(earlier, func(p string) bool { return slices.Contains(r.newPods, p) }) {
		return r
	}
	earlier = slices.DeleteFunc(earlier, func(p string) bool { return slices.Contains(r.oldPods, p) || slices.Contains(r.failedPods, p) })
	r.oldPods = sortAndLimit(firstPatterns(slices.Concat(r.oldPods, earlier)))
	return r
}

// patternsOf returns the patterns of a matcher that target returned. The name of a pod has no "|".
func patternsOf(matcher string) []string {
	conditions, err := prometheus.ParseMatchers(matcher)
	if err != nil {
		return nil
	}
	for _, c := range conditions {
		if c.Op == "=~" {
			return strings.Split(c.Value, "|")
		}
	}
	return nil
}

// target returns the matchers of the pods of a release. The start time, and whether the time before it is a reference, are
// those of an earlier look, if there is one.
func (r release) target(batch *v1alpha1.ChangePod, names Labels) judgev1alpha1.Target {
	matcher := func(patterns []string) string {
		if len(patterns) == 0 {
			return ""
		}
		return names.Namespace + "=" + strconv.Quote(r.namespace) + "," + names.Pod + "=~" + strconv.Quote(strings.Join(patterns, "|"))
	}
	t := judgev1alpha1.Target{New: matcher(r.newPods), Old: matcher(r.oldPods), StartTime: metav1.NewTime(r.start), NoReferenceBefore: r.noReferenceBefore}
	if names.Pod != defaultLabels().Pod {
		t.PodLabel = names.Pod
	}
	if record := batch.Status.MetricRecord; record != nil && !record.Target.StartTime.IsZero() {
		t.StartTime = record.Target.StartTime
		t.NoReferenceBefore = t.NoReferenceBefore && record.Target.NoReferenceBefore
	}
	return t
}
