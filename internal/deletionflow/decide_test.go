package deletionflow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const skew = 5 * time.Second

// zero is the start of a cell of every length.
var zero = time.Unix(1<<30, 0)

func control(limit int64, change func(*v1alpha1.PodDeletionFlowControl)) *v1alpha1.PodDeletionFlowControl {
	f := &v1alpha1.PodDeletionFlowControl{Spec: v1alpha1.PodDeletionFlowControlSpec{
		LimitRules: []v1alpha1.LimitRule{{Interval: "10m", Limit: limit}},
	}}
	if change != nil {
		change(f)
	}
	return f
}

func deletion(uid types.UID) Request {
	return Request{UID: uid, User: "ann", Owner: "Deployment shop/web", Namespace: Namespace{Name: "shop"}, Pods: []Pod{{}}}
}

func deletions(uids ...types.UID) (all []Request) {
	for _, uid := range uids {
		all = append(all, deletion(uid))
	}
	return all
}

func with(r Request, change func(*Request)) Request {
	change(&r)
	return r
}

func namespace(uid types.UID, pods int) Request {
	return with(deletion(uid), func(r *Request) { r.OfNamespace, r.Pods = true, make([]Pod, pods) })
}

func TestDeletionsAreAllowedUpToTheLimit(t *testing.T) {
	const allowed, denied, shadow, free = "allowed", "denied", "shadow", "free"
	for name, tc := range map[string]struct {
		f *v1alpha1.PodDeletionFlowControl
		// before is decided first, then group.
		before, group []Request
		want          []string
		counted       int64
	}{
		"up to the limit":   {control(2, nil), nil, deletions("a", "b", "c"), []string{allowed, allowed, denied}, 2},
		"none with limit 0": {control(0, nil), nil, deletions("a"), []string{denied}, 0},
		"earlier deletions count": {control(2, nil), deletions("a", "b"), deletions("c"),
			[]string{denied}, 2},
		"a repeated request counts once": {control(1, nil), deletions("a"), deletions("a", "a"), []string{allowed, allowed}, 1},
		"a request that is repeated in a group counts once": {control(1, nil), nil, deletions("a", "a", "b"),
			[]string{allowed, allowed, denied}, 1},
		"a request that is repeated after its cell counts once": {control(1, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Status.Buckets = []v1alpha1.DeletionCell{{Start: zero.Unix() - 1, End: zero.Unix(), Count: 1}}
			f.Status.Newest = []types.UID{"a"}
		}), deletions("b"), deletions("a", "b"), []string{allowed, denied}, 1},
		"a dry run is decided but not counted": {control(1, nil), nil, []Request{
			with(deletion("a"), func(r *Request) { r.DryRun = true }), deletion("b"), with(deletion("c"), func(r *Request) { r.DryRun = true }),
		}, []string{allowed, allowed, denied}, 1},
		"pods that are not counted are allowed while others are denied": {control(0, nil), nil, []Request{
			with(deletion("a"), func(r *Request) { r.Pods[0].Completed = true }), deletion("b")}, []string{free, denied}, 0},
		"a namespace within the limit":                      {control(3, nil), deletions("a"), []Request{namespace("n", 2)}, []string{allowed}, 3},
		"a namespace beyond the limit, and a pod":           {control(3, nil), deletions("a"), []Request{namespace("n", 3), deletion("b")}, []string{denied, allowed}, 2},
		"a repeated deletion of a namespace":                {control(3, nil), []Request{namespace("n", 3)}, []Request{namespace("n", 3)}, []string{allowed}, 3},
		"a repeated deletion of a namespace that has grown": {control(3, nil), []Request{namespace("n", 1)}, []Request{namespace("n", 9)}, []string{denied}, 1},
		"a repeated deletion of a namespace that has shrunk": {control(10, nil), []Request{namespace("n", 6)}, []Request{namespace("n", 5), deletion("a")},
			[]string{allowed, allowed}, 7},
		"a namespace that has shrunk after its cell, and grown again": {control(11, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Status.Buckets = []v1alpha1.DeletionCell{{Start: zero.Unix() - 1, End: zero.Unix(), Count: 6}}
			f.Status.Newest = []types.UID{"n/6"}
		}), nil, []Request{namespace("n", 5), namespace("n", 6)}, []string{allowed, denied}, 11},
		"a repeated deletion of a grown namespace keeps the counts of others": {control(10, nil), append(deletions("a", "b", "c"), namespace("n", 1)),
			[]Request{namespace("n", 5), deletion("d"), deletion("e")}, []string{allowed, allowed, denied}, 10},
		"shadow mode denies nothing and counts all": {control(1, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.Shadow = true }), nil,
			deletions("a", "b"), []string{allowed, shadow}, 2},
		"an invalid rule": {control(9, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "soon" }), nil,
			deletions("a"), []string{denied}, 0},
		"all rules apply": {control(9, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Spec.LimitRules = append(f.Spec.LimitRules, v1alpha1.LimitRule{Interval: "1d", Limit: 1})
		}), nil, deletions("a", "b"), []string{allowed, denied}, 1},
		"a raised limit": {control(1, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Status.Buckets = []v1alpha1.DeletionCell{{Start: zero.Unix() - 60, End: zero.Unix() - 59, Count: 1}}
			f.Spec.LimitRules[0].Limit = 2
		}), nil, deletions("b", "c"), []string{allowed, denied}, 2},
		"a person closed the breaker": {control(1, func(f *v1alpha1.PodDeletionFlowControl) {
			f.Status.Buckets = []v1alpha1.DeletionCell{{Start: zero.Unix() - 60, End: zero.Unix() - 59, Count: 1}}
			f.Annotations = map[string]string{v1alpha1.ClosedAnnotation: zero.Add(-2 * time.Second).Format(time.RFC3339)}
		}), nil, deletions("b", "c"), []string{allowed, denied}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := tc.f
			if _, next := Decide(f, tc.before, zero, skew); next != nil {
				f.Status = *next
			}
			seen := f.DeepCopy()
			decisions, next := Decide(f, tc.group, zero.Add(time.Second), skew)
			if diff := cmp.Diff(seen, f, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the argument was modified: %s", diff)
			}
			var got []string
			for _, d := range decisions {
				switch {
				case d.Shadow && d.Allowed:
					got = append(got, shadow)
				case d.Allowed && d.CountsAs == 0:
					got = append(got, free)
				case d.Allowed:
					got = append(got, allowed)
				default:
					got = append(got, denied)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if next == nil {
				next = &f.Status
			}
			var counted int64
			for _, b := range next.Buckets {
				counted += b.Count
			}
			if counted != tc.counted {
				t.Errorf("%d counted in %v", counted, next.Buckets)
			}
		})
	}
}

// A group whose write had an unknown outcome is decided again, on a state that it may
// have written itself.
func TestDecidingAGroupAgainChangesNothing(t *testing.T) {
	f := control(3, nil)
	first, next := Decide(f, deletions("a", "b", "c", "d"), zero, skew)
	f.Status = *next
	again, more := Decide(f, deletions("a", "b", "c", "d"), zero, skew)
	if more != nil {
		t.Errorf("it changes the status: %+v", more)
	}
	for i := range first {
		if first[i].Allowed != again[i].Allowed {
			t.Errorf("request %d: allowed %t, then %t", i, first[i].Allowed, again[i].Allowed)
		}
	}
}

func TestADecisionNamesTheExceededRuleAndItsRoomTime(t *testing.T) {
	f := control(2, nil)
	decisions, _ := Decide(f, deletions("a", "b", "c"), zero, skew)
	d := decisions[2]
	if !d.OverLimit || d.Exceeded.Used != 2 || d.Exceeded.Rule.Text != "10m" || !d.RoomTime.Equal(zero.Add(10*time.Minute+11*time.Second)) {
		t.Errorf("%+v", d)
	}
	decisions, _ = Decide(f, []Request{namespace("n", 3)}, zero, skew)
	if d := decisions[0]; !d.OverLimit || !d.RoomTime.IsZero() || d.CountsAs != 3 {
		t.Errorf("%+v", d)
	}
}

func TestTheStateOfTheBreaker(t *testing.T) {
	filled := func(limit int64) *v1alpha1.PodDeletionFlowControl {
		f := control(limit, nil)
		var all []Request
		for i := range limit {
			all = append(all, deletion(types.UID(fmt.Sprint(i))))
		}
		if _, next := Decide(f, all, zero, skew); next != nil {
			f.Status = *next
		}
		return f
	}
	f := filled(3)
	s := BreakerOf(f, zero.Add(time.Second), skew)
	if !s.Open || s.Deleted != 3 || s.Suspected != CauseMassDelete || !s.RoomTime.Equal(zero.Add(10*time.Minute+11*time.Second)) {
		t.Errorf("%+v", s)
	}
	message := s.Message(f.Status.Shares)
	for _, want := range []string{"3 deletions in 10m (limit 3)", "allowed again at " + s.RoomTime.UTC().Format(time.RFC3339),
		"suspected: mass-delete, 100% by ann, 100% of Deployment shop/web, 100% in namespace shop"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q does not contain %q", message, want)
		}
	}
	if s := BreakerOf(f, s.RoomTime, skew); s.Open || s.Deleted != 0 {
		t.Errorf("at the room time: %+v", s)
	}
	f.Spec.LimitRules[0].Limit = 4
	if s := BreakerOf(f, zero.Add(time.Second), skew); s.Open || s.Deleted != 3 {
		t.Errorf("with a higher limit: %+v", s)
	}
}

func TestTheMessageOfAnOpenBreakerSaysWhetherDeletionsAreDenied(t *testing.T) {
	full, zeroLimit, invalid := control(1, nil), control(0, nil), control(1, nil)
	if _, next := Decide(full, []Request{deletion("a")}, zero, skew); next != nil {
		full.Status = *next
	}
	invalid.Spec.LimitRules[0].Interval = "soon"
	for _, tc := range []struct {
		f              *v1alpha1.PodDeletionFlowControl
		denies, shadow string
	}{
		{full, "1 deletions in 10m (limit 1); deletions are allowed again at ", "shadow mode: 1 deletions in 10m (limit 1); deletions would be allowed again at "},
		{zeroLimit, "0 deletions in 10m (limit 0); no deletion is allowed until the limit is raised", "shadow mode: 0 deletions in 10m (limit 0); no deletion would be allowed until the limit is raised"},
		{invalid, "every deletion that counts is denied: spec.limitRules[0].interval", "shadow mode: every deletion that counts would be denied: spec.limitRules[0].interval"},
	} {
		for shadow, want := range map[bool]string{false: tc.denies, true: tc.shadow} {
			tc.f.Spec.Shadow = shadow
			s := BreakerOf(tc.f, zero, skew)
			if got := s.Message(nil); !s.Open || !strings.HasPrefix(got, want) {
				t.Errorf("open %v: %q, want %q", s.Open, got, want)
			}
		}
	}
}

func TestTheRatioToTheMedian(t *testing.T) {
	f := control(30, nil)
	for k := range int64(7) {
		start := zero.Unix() - (7-k)*600
		f.Status.Buckets = append(f.Status.Buckets, v1alpha1.DeletionCell{Start: start, End: start + 16, Count: 10})
	}
	f.Status.Buckets = append(f.Status.Buckets, v1alpha1.DeletionCell{Start: zero.Unix(), End: zero.Unix() + 590, Count: 30})
	s := BreakerOf(f, zero.Add(599*time.Second), skew)
	if !s.Open || s.Median != 10 || s.Ratio() < 2.9 || s.Ratio() > 4.1 {
		t.Errorf("%+v, ratio %v", s, s.Ratio())
	}
}

func TestACommittedTimeThatIsTooFarAheadIsCorrected(t *testing.T) {
	f := control(3, nil)
	if got := CorrectCommittedTime(f, zero, skew); got != nil {
		t.Errorf("%+v", got)
	}
	ahead := metav1.NewMicroTime(zero.Add(time.Hour))
	f.Status.CommittedTime = &ahead
	f.Status.Buckets = []v1alpha1.DeletionCell{{Start: ahead.Unix(), End: ahead.Unix() + 1, Count: 2}}
	got := CorrectCommittedTime(f, zero, skew)
	if got == nil || !got.CommittedTime.Time.Equal(zero) || got.Buckets[0].End != zero.Unix()+1 || got.Buckets[0].Count != 2 {
		t.Errorf("%+v", got)
	}
}
