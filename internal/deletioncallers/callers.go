// Package deletioncallers says whose deletions fill a window, and what they look like:
// it helps a person to tell accident from intent.
//
// It is a sketch of bounded size, not an account. Of users, owners and
// namespaces the most frequent are kept; a name that comes new takes the place
// and the count of the least frequent, so that a count is rather too high than
// too low (the algorithm is called space-saving). What is old weighs less.
package deletioncallers

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxShares and maxName are those of the schema.
	maxShares = 8
	maxName   = 512
)

// Deletion is what was let through at once.
type Deletion struct {
	User, Owner, Namespace string
	// Count is how many pods; more than one where a namespace goes.
	Count    int64
	Eviction bool
}

// Add returns the shares with one more deletion. All are halved once in a half
// life, which is the shortest interval.
func Add(s *v1alpha1.DeletionShares, d Deletion, now time.Time, halfLife time.Duration) *v1alpha1.DeletionShares {
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
	next.Users = addShare(next.Users, d.User, d.Count)
	next.Owners = addShare(next.Owners, d.Owner, d.Count)
	next.Namespaces = addShare(next.Namespaces, d.Namespace, d.Count)
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

// more counts for a name; the most frequent come first.
func addShare(all []v1alpha1.DeletionShare, name string, n int64) []v1alpha1.DeletionShare {
	if name == "" || n == 0 {
		return all
	}
	name = text.Cut(name, maxName)
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
