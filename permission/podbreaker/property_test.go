package podbreaker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// fakeAPIServer rejects writes with an old resourceVersion, and ConfigMaps above 1 MiB.
type fakeAPIServer struct {
	mu        sync.Mutex
	maps      map[string]*corev1.ConfigMap
	version   int
	conflicts int
}

// replica reads through a cache that is updated only by its own reads.
type replica struct {
	*fakeAPIServer
	cache map[string]*corev1.ConfigMap
}

func (s *fakeAPIServer) get(name string) *corev1.ConfigMap {
	if s.maps[name] == nil {
		s.version++
		s.maps[name] = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(s.version)}}
	}
	return s.maps[name].DeepCopy()
}

func (r *replica) Cached(key types.NamespacedName) (*corev1.ConfigMap, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cm, ok := r.cache[key.Name]
	return cm, ok
}

func (r *replica) Live(_ context.Context, key types.NamespacedName) (*corev1.ConfigMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	cm := r.get(key.Name)
	r.cache[key.Name] = cm
	return cm, nil
}

func (r *replica) Swap(_ context.Context, next *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.get(next.Name).ResourceVersion != next.ResourceVersion {
		r.conflicts++
		return nil, apierrs.NewConflict(schema.GroupResource{Resource: "configmaps"}, next.Name, errors.New("changed"))
	}
	values := 0
	for _, value := range next.Data {
		values += len(value)
	}
	if values > 1<<20 {
		return nil, apierrs.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, next.Name, nil)
	}
	r.version++
	next = next.DeepCopy()
	next.ResourceVersion = strconv.Itoa(r.version)
	r.maps[next.Name] = next
	return next.DeepCopy(), nil
}

func (s *fakeAPIServer) newReplica() *Breaker {
	r := &replica{s, map[string]*corev1.ConfigMap{}}
	decide := func(cm *corev1.ConfigMap, group []Request) groupDecision {
		return DefaultPolicy().decideGroup(cm, group)
	}
	return &Breaker{policy: DefaultPolicy, commit: groupcommit.New[*corev1.ConfigMap, Request, reply](r, decide, groupcommit.Options{})}
}

// Several replicas record the same attempts concurrently. Each attempt counts once.
func TestConcurrentReplicasCountEachAttemptOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &fakeAPIServer{maps: map[string]*corev1.ConfigMap{}}
		replicas := []*Breaker{s.newReplica(), s.newReplica(), s.newReplica()}
		pods := rapid.IntRange(1, 4).Draw(t, "pods")
		attempts := rapid.IntRange(1, 3).Draw(t, "attempts")
		times := rapid.IntRange(1, 4).Draw(t, "times")
		var wg sync.WaitGroup
		counted := make([]int, pods)
		var mu sync.Mutex
		for pod := range pods {
			for range times {
				for i, b := range replicas {
					wg.Go(func() {
						for attempt := 1; attempt <= attempts; attempt++ {
							d, err := b.Do(context.Background(), Request{Operation: RecordFailure, Key: fmt.Sprintf("ns.pod-%d", pod), UID: "uid",
								Application: "app", Attempt: attempt, Denied: true, Now: zero})
							if err != nil {
								t.Errorf("replica %d: %v", i, err)
							}
							if d.Counted {
								mu.Lock()
								counted[pod]++
								mu.Unlock()
							}
						}
					})
				}
			}
		}
		wg.Wait()
		for pod := range pods {
			e, ok := decode(s.get(PrimaryName).Data[fmt.Sprintf("ns.pod-%d", pod)], "uid")
			if !ok || e.Denied != attempts || counted[pod] > attempts {
				t.Errorf("pod %d: %d denials recorded, want %d; counted %d times", pod, e.Denied, attempts, counted[pod])
			}
		}
	})
}

// One attempt may begin per interval, even if several replicas ask.
func TestOneOfManyCallersAcquiresTheBreaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &fakeAPIServer{maps: map[string]*corev1.ConfigMap{}}
		replicas := []*Breaker{s.newReplica(), s.newReplica(), s.newReplica()}
		for attempt := 1; attempt <= 3; attempt++ {
			if _, err := replicas[0].Do(context.Background(), Request{Operation: RecordFailure, Key: "ns.pod", UID: "uid", Application: "app", Attempt: attempt, Now: zero}); err != nil {
				t.Fatal(err)
			}
		}
		n := rapid.IntRange(2, 12).Draw(t, "callers")
		var mu sync.Mutex
		var acquired int
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				d, err := replicas[i%3].Do(context.Background(), Request{Operation: Acquire, Key: "ns.pod", UID: "uid", Holder: fmt.Sprint(i), Now: zero.Add(time.Hour)})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if d.State == MayBegin {
					acquired++
				}
			})
		}
		wg.Wait()
		if acquired != 1 {
			t.Errorf("%d of %d callers acquired the breaker", acquired, n)
		}
	})
}

func TestAFullConfigMapContinuesInShardsWithOneEntryPerPod(t *testing.T) {
	s := &fakeAPIServer{maps: map[string]*corev1.ConfigMap{}}
	first := s.get(PrimaryName)
	first.Data = map[string]string{"ns.old": encode(Entry{UID: "uid", Denied: 1, Counted: map[string]int{"app": 1}}), "filler": string(make([]byte, maxBytes))}
	s.maps[PrimaryName] = first
	a, b := s.newReplica(), s.newReplica()
	record := func(breaker *Breaker, key string, attempt int) Decision {
		d, err := breaker.Do(t.Context(), Request{Operation: RecordFailure, Key: key, UID: "uid", Application: "app", Attempt: attempt, Denied: true, Now: zero})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	record(a, "ns.new", 1)
	delete(s.maps[PrimaryName].Data, "filler") // there is space again, but new entries still go to shards
	record(b, "ns.new", 2)
	if d := record(a, "ns.new", 3); d.State != OpenDenied {
		t.Errorf("%s: a denial was lost", d.State)
	}
	record(b, "ns.old", 2)
	var where []string
	for name, cm := range s.maps {
		for key, raw := range cm.Data {
			e, _ := decode(raw, "uid")
			where = append(where, fmt.Sprintf("%s in %s: %d", key, name, e.Denied))
		}
	}
	want := []string{"ns.new in " + ShardName("ns.new") + ": 3", "ns.old in " + PrimaryName + ": 2"}
	if diff := cmp.Diff(toSet(want), toSet(where)); diff != "" {
		t.Error(diff)
	}
}

// The pods of many workloads fail together, and then their permissions are denied with long
// messages.
func TestEntriesOfAFullConfigMapCountAttemptsWithoutTheirMessages(t *testing.T) {
	const pods = 2500
	s := &fakeAPIServer{maps: map[string]*corev1.ConfigMap{}}
	b := s.newReplica()
	for attempt, message := range []string{"short", strings.Repeat("x", 1000), strings.Repeat("<", 1000)} {
		var wg sync.WaitGroup
		for pod := range pods {
			wg.Go(func() {
				d, err := b.Do(t.Context(), Request{Operation: RecordFailure, Key: fmt.Sprintf("ns.pod-%d", pod), UID: "uid",
					Application: "app", Attempt: attempt + 1, Denied: true, Message: message, Now: zero})
				if err != nil || d.Entry.Denied != attempt+1 {
					t.Errorf("denial %d of pod %d: %d are recorded, %v", attempt+1, pod, d.Entry.Denied, err)
				}
			})
		}
		wg.Wait()
	}
	if n := size(s.get(PrimaryName)); n > maxBytes {
		t.Errorf("the entries have %d bytes, want at most %d", n, maxBytes)
	}
}

func TestAnEntryThatIsTooLargeIsAnErrorOfItsPodAlone(t *testing.T) {
	s := &fakeAPIServer{maps: map[string]*corev1.ConfigMap{}}
	old := encode(Entry{UID: "uid", Denied: 1, Counted: map[string]int{"app": 1}, Call: "call", Message: "denied"})
	first := s.get(PrimaryName)
	first.Data = map[string]string{"ns.old": old, "filler": strings.Repeat("x", maxBytes+maxExcess-len("ns.old")-len(old)-len("filler"))}
	s.maps[PrimaryName] = first
	b := s.newReplica()
	for _, tc := range []struct {
		r    Request
		want error
	}{
		{Request{Operation: RecordFailure, Key: "ns.old", Application: strings.Repeat("other", 20), Attempt: 1, Denied: true, Message: "denied again"}, ErrFull},
		{Request{Operation: RecordFailure, Key: "ns.new", Application: "app", Attempt: 1, Denied: true, Message: "denied"}, nil},
		{Request{Operation: Reset, Key: "ns.old"}, nil},
	} {
		tc.r.UID, tc.r.Now = "uid", zero
		if _, err := b.Do(t.Context(), tc.r); !errors.Is(err, tc.want) {
			t.Errorf("operation %d on %s: %v, want %v", tc.r.Operation, tc.r.Key, err, tc.want)
		}
	}
}

func toSet(all []string) map[string]int {
	set := map[string]int{}
	for _, one := range all {
		set[one]++
	}
	return set
}
