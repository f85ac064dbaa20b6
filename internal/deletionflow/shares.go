package deletionflow

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxShares and maxName equal maxItems and maxLength of the schema.
	maxShares = 8
	maxName   = 512
)

// allowedDeletion is a deletion that was allowed.
type allowedDeletion struct {
	User, Owner, Namespace string
	// Count is the number of pods: more than one for a namespace.
	Count    int64
	Eviction bool
}

// addDeletion returns status.shares of a PodDeletionFlowControl with one more deletion: how many recent deletions each
// user, owner and namespace has. Counts decay: they do not follow the interval of a limit. All counts are halved once
// per halfLife, which is the shortest interval.
//
// It is a sketch of bounded size. The most frequent names are kept; a new name
// replaces the least frequent one and inherits its count, so that a count may be
// too high but never too low (the space-saving algorithm).
func addDeletion(s *v1alpha1.DeletionShares, d allowedDeletion, now time.Time, halfLife time.Duration) *v1alpha1.DeletionShares {
	next := &v1alpha1.DeletionShares{Since: metav1.NewTime(now.Truncate(time.Second))}
	if s != nil {
		next = s.DeepCopy()
	}
	for halfLife > 0 && next.Total > 0 && now.Sub(next.Since.Time) >= halfLife {
		halve(next)
		next.Since.Time = next.Since.Add(halfLife)
	}
	if next.Total == 0 {
		next.Since.Time = now.Truncate(time.Second)
	}
	next.Total += d.Count
	if d.Eviction {
		next.Evictions += d.Count
	}
	next.Users = addCount(next.Users, d.User, d.Count)
	next.Owners = addCount(next.Owners, d.Owner, d.Count)
	next.Namespaces = addCount(next.Namespaces, d.Namespace, d.Count)
	return next
}

func halve(s *v1alpha1.DeletionShares) {
	s.Total, s.Evictions = s.Total/2, s.Evictions/2
	for _, list := range []*[]v1alpha1.DeletionShare{&s.Users, &s.Owners, &s.Namespaces} {
		for i := range *list {
			(*list)[i].Count /= 2
		}
		*list = slices.DeleteFunc(*list, func(share v1alpha1.DeletionShare) bool { return share.Count == 0 })
	}
}

// addCount adds n to the count of a name and sorts by count, highest first.
func addCount(all []v1alpha1.DeletionShare, name string, n int64) []v1alpha1.DeletionShare {
	if name == "" || n == 0 {
		return all
	}
	name = text.Truncate(name, maxName)
	at := slices.IndexFunc(all, func(s v1alpha1.DeletionShare) bool { return s.Name == name })
	switch {
	case at >= 0:
		all[at].Count += n
	case len(all) < maxShares:
		all = append(all, v1alpha1.DeletionShare{Name: name, Count: n})
	default:
		all[len(all)-1] = v1alpha1.DeletionShare{Name: name, Count: all[len(all)-1].Count + n}
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.DeletionShare) int { return cmp.Compare(b.Count, a.Count) })
	return all
}
