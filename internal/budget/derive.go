package budget

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Seen is what the watch showed.
type Observed struct {
	// Pods are those that the budget covers.
	Pods []*corev1.Pod
	// Exists says whether a pod of the namespace is there that is not covered
	// (any more), by UID.
	Exists func(types.UID) bool
	// ResourceVersion is how far the watch of pods is.
	ResourceVersion string
	// Total is the sum of the replicas of the topmost owners; an orphan is one.
	Total int32
	// Excess is how many pods that count are more than their own controllers want.
	Excess int32
	// Expired says whether a charge was kept for as long as the API server may
	// take to carry it out.
	Expired func(key string) bool
	// Lingers says whether the charge of a deletion that is seen to be carried
	// out is kept for a moment longer. It costs nothing then. The API server may
	// ask twice about one deletion, the second time with the pod as it was; that
	// must not be charged again.
	KeepSettled func(key string) bool
}

// Derivation is what follows for the status.
type Derivation struct {
	Numbers
	Deleted     map[types.UID]string
	Unavailable map[string]string
	// Returned is how many charges were given back because nothing became of
	// them.
	Refunded int
	// Lingering is how many are kept though they cost nothing any more.
	KeptSettled int
}

// Derive computes a budget's status from what the watch showed and from what
// the webhook charged.
func Derive(b *v1alpha1.PodUnavailableBudget, seen Observed) Derivation {
	pods := map[types.UID]*corev1.Pod{}
	for _, p := range seen.Pods {
		pods[p.UID] = p
	}
	d := Derivation{Deleted: maps.Clone(b.Status.DeletedPods), Unavailable: maps.Clone(b.Status.UnavailablePods)}
	for uid, rv := range d.Deleted {
		switch deletionOutcome(pods[uid], uid, rv, seen) {
		case outcomeRefunded:
			d.Refunded++
			delete(d.Deleted, uid)
		case outcomeSettled:
			if seen.KeepSettled(DeletedKey(uid, rv)) {
				d.KeptSettled++
			} else {
				delete(d.Deleted, uid)
			}
		}
	}
	for name, value := range d.Unavailable {
		switch e := ParseEntry(value); changeOutcome(pods[e.UID], name, e, seen) {
		case outcomeRefunded:
			d.Refunded++
			fallthrough
		case outcomeSettled:
			delete(d.Unavailable, name)
		}
	}
	t := PodCounts{Total: seen.Total, Excess: seen.Excess}
	for uid, p := range pods {
		if !CountsAsAvailable(p) {
			continue
		}
		_, deleted := d.Deleted[uid]
		if deleted || ParseEntry(d.Unavailable[p.Name]).UID == uid {
			t.Charged++
		} else {
			t.Available++
		}
	}
	d.Numbers = ComputeNumbers(b.Spec, t)
	return d
}

// fate is what became of a charge.
type outcome int

const (
	outcomePending  outcome = iota // nothing is known yet
	outcomeSettled                 // the pod is seen to be unavailable or gone
	outcomeRefunded                // nothing became of it
)

// fateOfDeleted judges the charge of a deletion. That a pod is not in the cache
// means that it is gone only when the cache is as new as the charge.
func deletionOutcome(p *corev1.Pod, uid types.UID, charged string, seen Observed) outcome {
	switch {
	case p == nil && seen.Exists(uid):
		return outcomeSettled // it is not covered any more
	case p == nil && (NotOlder(seen.ResourceVersion, charged) || seen.Expired(DeletedKey(uid, charged))):
		return outcomeSettled
	case p == nil:
		return outcomePending
	case p.DeletionTimestamp != nil, Finished(p):
		return outcomeSettled
	// One that is merely not Ready may be so again before its deletion lands.
	case seen.Expired(DeletedKey(uid, charged)):
		return outcomeRefunded
	}
	return outcomePending
}

// fateOfChanged judges the charge of a change in place: the pod becomes
// unavailable some time after it was written, or not at all.
func changeOutcome(p *corev1.Pod, name string, e Entry, seen Observed) outcome {
	expired := seen.Expired(ChangedKey(name, e))
	switch {
	case p == nil && (expired || seen.Exists(e.UID) || NotOlder(seen.ResourceVersion, e.ResourceVersion)):
		return outcomeSettled
	case p == nil:
		return outcomePending
	case !CountsAsAvailable(p) && p.ResourceVersion != e.ResourceVersion && NotOlder(p.ResourceVersion, e.ResourceVersion):
		return outcomeSettled
	case resizeDone(p, e):
		return outcomeSettled
	case expired:
		return outcomeRefunded
	}
	return outcomePending
}

// resized says whether the pod is seen to be resized, and serves: its kubelet has
// seen a spec that is newer than that which was to be resized, and has nothing
// left to do. (A kubelet that does not say what it has seen leaves it open.)
func resizeDone(p *corev1.Pod, e Entry) bool {
	if e.ResizeGeneration == 0 || p.Generation <= e.ResizeGeneration || p.Status.ObservedGeneration < p.Generation {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			return false
		}
	}
	return true
}

// DeletedKey and ChangedKey name a charge, so that its time can be remembered.
func DeletedKey(uid types.UID, rv string) string { return string(uid) + "@" + rv }

// ChangedKey names a charge of a change in place, see DeletedKey.
func ChangedKey(name string, e Entry) string { return name + "/" + e.String() }

// Since says whether a is b or after it. What cannot be compared is not.
func NotOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}
