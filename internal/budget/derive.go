package budget

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Observed is the state of a budget according to the watches.
type Observed struct {
	// Pods are the covered pods.
	Pods []*corev1.Pod
	// MayBeCovered are pods whose owners could not be read. They do not count as available, and keep
	// their charges.
	MayBeCovered []*corev1.Pod
	// ExistsUncovered reports whether the namespace has a pod, by UID, that the budget
	// does not cover (anymore).
	ExistsUncovered func(types.UID) bool
	// ResourceVersion is the resourceVersion of the pod watch.
	ResourceVersion string
	// Total is how many pods are wanted: see TotalReplicas of the status.
	Total int32
	// UnknownReplicas says why the replicas of an owner are unknown. Then Total counts
	// its existing pods. It is empty if all replicas are known.
	UnknownReplicas string
	// CoversNothing says why the budget covers neither a pod nor a workload; it is empty if it covers any.
	CoversNothing string
	// Excess is the number of available pods, charged or not, above the replicas of their
	// ReplicaSet, StatefulSet or ReplicationController.
	Excess int32
	// Expired reports whether a charge is older than the time in which the API server
	// completes a request.
	Expired func(key string) bool
	// KeepSettled reports whether the charge of a deletion whose outcome is known is kept for a short time.
	// It has no effect on the numbers. The API server may send one deletion twice, the second
	// time with the old pod, which must not be charged again.
	KeepSettled func(key string) bool
}

// Derivation is the result of Derive.
type Derivation struct {
	Numbers
	// UnknownReplicas says why the budget allows nothing: Observed.UnknownReplicas, if the
	// limit depends on the replicas.
	UnknownReplicas string
	Deleted         map[types.UID]string
	Unavailable     map[string]string
	// Refunded is how many charges were refunded because their request did not take
	// effect.
	Refunded int
	// KeptSettled is how many charges of deletions whose outcome is known are kept for a short
	// time; see Observed.KeepSettled.
	KeptSettled int
}

// Derive computes the numbers of a budget and decides which charges remain, from
// the observed pods and the charges of the webhook.
func Derive(b *v1alpha1.PodUnavailableBudget, observed Observed) Derivation {
	pods := map[types.UID]*corev1.Pod{}
	all := slices.Concat(observed.Pods, observed.MayBeCovered)
	for _, p := range all {
		pods[p.UID] = p
	}
	d := Derivation{Deleted: maps.Clone(b.Status.DeletedPods), Unavailable: maps.Clone(b.Status.UnavailablePods)}
	t := PodCounts{Total: observed.Total, Excess: observed.Excess}
	for uid, rv := range d.Deleted {
		switch deletionOutcome(pods[uid], uid, rv, observed) {
		case outcomePending:
			if pods[uid] == nil {
				t.ChargedUnseen++
			}
		case outcomeRefunded:
			d.Refunded++
			delete(d.Deleted, uid)
		case outcomeDone:
			if observed.KeepSettled(DeletedKey(uid, rv)) {
				d.KeptSettled++
			} else {
				delete(d.Deleted, uid)
			}
		}
	}
	for name, value := range d.Unavailable {
		switch e := ParseEntry(value); changeOutcome(pods[e.UID], name, e, observed) {
		case outcomePending:
			if pods[e.UID] == nil {
				t.ChargedUnseen++
			}
		case outcomeRefunded:
			d.Refunded++
			fallthrough
		case outcomeDone:
			delete(d.Unavailable, name)
		}
	}
	for i, p := range all {
		if !CountsAsAvailable(p) {
			continue
		}
		_, deleted := d.Deleted[p.UID]
		switch {
		case deleted || ParseEntry(d.Unavailable[p.Name]).UID == p.UID:
			t.Charged++
		case i < len(observed.Pods):
			t.Available++
		}
	}
	d.Numbers = ComputeNumbers(b.Spec, t)
	if observed.UnknownReplicas != "" && NeedsReplicas(b.Spec) {
		d.Allowed, d.UnknownReplicas = 0, observed.UnknownReplicas
	}
	return d
}

// DeletedKey identifies the charge of a deletion by its entry. A renewed charge has
// another key, so that its time begins again.
func DeletedKey(uid types.UID, entry string) string { return string(uid) + "@" + entry }

// RepeatedTTL is how long a deletion that was allowed may be repeated without renewing
// its charge. A charge must be kept at least that much longer than its timeout.
const RepeatedTTL = 2 * time.Second

// ChangedKey identifies the charge of an in-place change.
func ChangedKey(name string, e Entry) string { return name + "/" + e.String() }

// NotOlder reports whether resourceVersion a is b or newer. It is false if they
// cannot be compared.
func NotOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}
