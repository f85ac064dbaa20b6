package deletionflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

var begin = time.Unix(1700000000, 0)

func sharesOf(deletions ...allowedDeletion) (s *v1alpha1.DeletionShares) {
	for _, d := range deletions {
		s = addDeletion(s, d, begin, time.Hour)
	}
	return s
}

func times(n int64, d allowedDeletion) allowedDeletion {
	d.Count = n
	return d
}

func TestTheMostFrequentComeFirst(t *testing.T) {
	s := sharesOf(
		allowedDeletion{User: "ann", Owner: "Deployment a/web", Namespace: "a", Count: 1},
		allowedDeletion{User: "bob", Owner: "Deployment b/web", Namespace: "b", Count: 3},
		allowedDeletion{User: "ann", Namespace: "b", Count: 1, Eviction: true},
	)
	if diff := cmp.Diff([]v1alpha1.DeletionShare{{Name: "bob", Count: 3}, {Name: "ann", Count: 2}}, s.Users); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.DeletionShare{{Name: "Deployment b/web", Count: 3}, {Name: "Deployment a/web", Count: 1}}, s.Owners); diff != "" {
		t.Error(diff)
	}
	if s.Total != 5 || s.Evictions != 1 {
		t.Errorf("%d of which %d were evictions", s.Total, s.Evictions)
	}
}

func TestSharesAreBoundedAndKeepTheMostFrequent(t *testing.T) {
	var s *v1alpha1.DeletionShares
	for i := range 300 {
		s = addDeletion(s, allowedDeletion{User: fmt.Sprintf("user-%d", i), Owner: strings.Repeat("失", 400), Count: 1}, begin, time.Hour)
		s = addDeletion(s, allowedDeletion{User: "loop", Count: 1}, begin, time.Hour)
	}
	if len(s.Users) != maxShares || s.Users[0].Name != "loop" || s.Users[0].Count < 300 {
		t.Errorf("%v", s.Users)
	}
	if got := s.Owners[0].Name; len(got) > maxName || !strings.HasPrefix(strings.Repeat("失", 400), got) {
		t.Errorf("a name of %d bytes", len(got))
	}
}

func TestSharesDecay(t *testing.T) {
	s := sharesOf(times(8, allowedDeletion{User: "ann"}), times(1, allowedDeletion{User: "bob"}))
	s = addDeletion(s, allowedDeletion{User: "eve", Count: 3}, begin.Add(2*time.Hour+time.Minute), time.Hour)
	if diff := cmp.Diff([]v1alpha1.DeletionShare{{Name: "eve", Count: 3}, {Name: "ann", Count: 2}}, s.Users); diff != "" {
		t.Error(diff)
	}
	if s.Total != 5 || !s.Since.Time.Equal(begin.Add(2*time.Hour)) {
		t.Errorf("%d since %s", s.Total, s.Since)
	}
	// After a year without deletions all shares are 0, without a loop over every hour.
	s = addDeletion(s, allowedDeletion{User: "eve", Count: 1}, begin.AddDate(1, 0, 0), time.Second)
	if s.Total != 1 || len(s.Users) != 1 || !s.Since.Time.Equal(begin.AddDate(1, 0, 0)) {
		t.Errorf("%+v", s)
	}
}

func TestAddDeletionDoesNotModifyItsArgument(t *testing.T) {
	s := sharesOf(times(8, allowedDeletion{User: "ann"}))
	addDeletion(s, allowedDeletion{User: "ann", Count: 8}, begin.Add(time.Hour), time.Hour)
	if s.Total != 8 || s.Users[0].Count != 8 {
		t.Errorf("%+v", s)
	}
}

func TestSuspectedCauses(t *testing.T) {
	const kube = "system:serviceaccount:kube-system:"
	eviction := allowedDeletion{User: "ann", Eviction: true}
	for name, tc := range map[string]struct {
		of   *v1alpha1.DeletionShares
		want Cause
	}{
		"evictions":                     {sharesOf(times(9, eviction), times(1, allowedDeletion{User: "ann"})), CauseDrain},
		"evictions by a controller":     {sharesOf(times(9, allowedDeletion{User: kube + "replicaset-controller", Eviction: true})), CauseDrain},
		"a rollout":                     {sharesOf(times(9, allowedDeletion{User: kube + "replicaset-controller"}), times(4, eviction)), CauseRollout},
		"rollouts of many kinds":        {sharesOf(times(5, allowedDeletion{User: kube + "daemon-set-controller"}), times(5, allowedDeletion{User: kube + "statefulset-controller"}), times(9, eviction)), CauseRollout},
		"a person":                      {sharesOf(times(9, allowedDeletion{User: "ann"}), times(1, eviction)), CauseMassDelete},
		"the garbage collector":         {sharesOf(times(9, allowedDeletion{User: kube + "generic-garbage-collector"})), CauseMassDelete},
		"a rollout and a deletion loop": {sharesOf(times(5, allowedDeletion{User: kube + "replicaset-controller"}), times(5, allowedDeletion{User: "loop"})), CauseMassDelete},
		"no shares":                     {nil, CauseMassDelete},
	} {
		if got := suspectedCause(tc.of); got != tc.want {
			t.Errorf("%s: cause %s", name, got)
		}
	}
}
