package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	key      = types.NamespacedName{Namespace: "ns", Name: "one"}
	resource = schema.GroupResource{Resource: "things"}
)

// world is an API server with one object: Data holds who was let in, and
// "slots" how many may be. Each replica has a cache of its own.
type world struct {
	mu     sync.Mutex
	object *corev1.ConfigMap
	swaps  int
	reads  int
	// delay is how long each call takes.
	delay time.Duration
	// fail, if set, is what the next swaps return; done says that they are
	// written all the same.
	fail func(swap int) (err error, done bool)
}

func newWorld(slots int) *world {
	return &world{delay: 5 * time.Millisecond, object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", ResourceVersion: "1"},
		Data:       map[string]string{"slots": strconv.Itoa(slots)},
	}}
}

// write changes the object behind everybody's back.
func (w *world) write(change func(map[string]string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store(w.object, change)
}

func (w *world) store(from *corev1.ConfigMap, change func(map[string]string)) {
	next := from.DeepCopy()
	if change != nil {
		change(next.Data)
	}
	rv, _ := strconv.Atoi(w.object.ResourceVersion)
	next.ResourceVersion = strconv.Itoa(rv + 1)
	w.object = next
}

func (w *world) admitted() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := maps.Clone(w.object.Data)
	delete(in, "slots")
	return in
}

// replica is one process: its cache is what the world was when it was made,
// until follow is called.
type replica struct {
	*world
	cached *corev1.ConfigMap
}

// follow has the watch tell it what there is now.
func (r *replica) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cached = r.object
}

func (r *replica) Cached(types.NamespacedName) (*corev1.ConfigMap, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cached, r.cached != nil
}

func (r *replica) Live(ctx context.Context, _ types.NamespacedName) (*corev1.ConfigMap, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if r.object == nil {
		return nil, apierrs.NewNotFound(resource, "one")
	}
	return r.object.DeepCopy(), nil
}

func (r *replica) Swap(ctx context.Context, next *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swaps++
	if next.ResourceVersion != r.object.ResourceVersion {
		return nil, apierrs.NewConflict(resource, "one", errors.New("it was changed"))
	}
	if r.fail != nil {
		if err, done := r.fail(r.swaps); err != nil {
			if done {
				r.store(next, nil)
			}
			return nil, err
		}
	}
	r.store(next, nil)
	return r.object.DeepCopy(), nil
}

func (w *world) wait(ctx context.Context) error {
	t := time.NewTimer(w.delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// letIn admits a name while there is a slot, and once.
func letIn(state *corev1.ConfigMap, group []string) Decision[*corev1.ConfigMap, bool] {
	d := Decision[*corev1.ConfigMap, bool]{Next: state.DeepCopy(), Answers: make([]bool, len(group))}
	slots, _ := strconv.Atoi(state.Data["slots"])
	for i, name := range group {
		_, in := d.Next.Data[name]
		if !in && slots > 0 {
			slots--
			d.Next.Data[name], in, d.Changed = "in", true, true
		}
		d.Answers[i] = in
	}
	d.Next.Data["slots"] = strconv.Itoa(slots)
	return d
}

type committer = Committer[*corev1.ConfigMap, string, bool]

func newReplica(w *world, options Options) *committer {
	return New(&replica{world: w, cached: w.object}, letIn, options)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// storm asks for n names at once, spread over the replicas, and returns how many
// were let in.
func storm(t *testing.T, n int, replicas ...*committer) int {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for i := range n {
		wg.Go(func() {
			in, err := replicas[i%len(replicas)].Do(within(t, 5*time.Second), key, fmt.Sprint("pod-", i))
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			if in {
				mu.Lock()
				admitted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return admitted
}

func TestOneSlotAdmitsOneOfManyRequestsToTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		if got := storm(t, 100, newReplica(w, Options{}), newReplica(w, Options{})); got != 1 || len(w.admitted()) != 1 {
			t.Errorf("%d were told that they are in, %v are", got, w.admitted())
		}
	})
}

func TestConflictsDenyNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(300)
		if got := storm(t, 300, newReplica(w, Options{}), newReplica(w, Options{}), newReplica(w, Options{})); got != 300 || len(w.admitted()) != 300 {
			t.Errorf("%d of 300 were let in, %d are", got, len(w.admitted()))
		}
		if w.swaps > 30 {
			t.Errorf("300 requests took %d writes", w.swaps)
		}
	})
}

// A write that came too late is repeated on what the watch has told meanwhile,
// and takes those along who came during it.
func TestAConflictCostsOneMoreWriteForAllWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10)
		r := &replica{world: w, cached: w.object}
		c := New[*corev1.ConfigMap, string, bool](r, letIn, Options{})
		w.write(nil)
		var wg sync.WaitGroup
		ask := func(who string) {
			wg.Go(func() {
				if in, err := c.Do(within(t, time.Second), key, who); !in || err != nil {
					t.Error(in, err)
				}
			})
		}
		ask("first")
		time.Sleep(w.delay / 2) // its write is on the way
		ask("second")
		synctest.Wait()
		r.follow()
		wg.Wait()
		if w.swaps != 2 || w.reads != 0 {
			t.Errorf("%d writes and %d reads, want the one that came too late and one for both", w.swaps, w.reads)
		}
	})
}

func TestASingleRequestIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10)
		c := newReplica(w, Options{})
		for i := range 3 {
			start := time.Now()
			if in, err := c.Do(within(t, time.Second), key, fmt.Sprint(i)); !in || err != nil {
				t.Fatal(in, err)
			}
			if took := time.Since(start); took != w.delay {
				t.Errorf("it took %s, one write takes %s", took, w.delay)
			}
		}
		if w.reads != 0 {
			t.Errorf("%d live reads: what was written last was forgotten", w.reads)
		}
	})
}

// Those who come one after another while a group gathers share its write; who
// never stops coming cannot hold it up.
func TestAGroupCollectsRequestsForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		var sizes []int
		c := newReplica(w, Options{Observe: func(o Outcome) { sizes = append(sizes, o.Size) }})
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if in, err := c.Do(within(t, 5*time.Second), key, fmt.Sprint(i)); !in || err != nil {
					t.Error(in, err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		if len(sizes) > 8 {
			t.Errorf("groups of %v: more than one a lingering of 20 ms and a write of 5 ms", sizes)
		}
	})
}

func TestNoAnswerDependsOnAStaleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		full := newReplica(w, Options{}) // remembers no slot
		w.write(func(data map[string]string) { data["slots"] = "1" })
		if in, err := full.Do(within(t, time.Second), key, "a"); !in || err != nil {
			t.Errorf("refused though there was a slot: %v", err)
		}
		idle := newReplica(w, Options{}) // remembers that a is in
		w.write(func(data map[string]string) { delete(data, "a") })
		if in, err := idle.Do(within(t, time.Second), key, "a"); in || err != nil {
			t.Errorf("let in by what was given back: %v", err)
		}
	})
}

func TestAWriteOfUnknownOutcomeCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, done := range []bool{false, true} {
			w := newWorld(1)
			w.fail = func(swap int) (error, bool) {
				if swap > 1 {
					return nil, false
				}
				return apierrs.NewTimeoutError("the etcd leader changed", 0), done
			}
			c := newReplica(w, Options{})
			if in, err := c.Do(within(t, time.Second), key, "a"); !in || err != nil {
				t.Errorf("done %v: not let in: %v", done, err)
			}
			if in, err := c.Do(within(t, time.Second), key, "b"); in || err != nil {
				t.Errorf("done %v: one slot let two in: %v", done, err)
			}
		}
	})
}

func TestNoCommitBeginsWithoutEnoughTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		c := newReplica(w, Options{})
		if _, err := c.Do(within(t, 499*time.Millisecond), key, "a"); !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Do(gone, key, "b"); !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v", err)
		}
		if w.swaps != 0 || len(w.admitted()) != 0 {
			t.Error("something was written")
		}
		// An API server that never answers does not hold anybody for ever.
		w.delay = time.Hour
		start := time.Now()
		if _, err := c.Do(within(t, 2*time.Second), key, "c"); !errors.Is(err, ErrDeadline) || time.Since(start) > 3*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestAPermanentErrorIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		c := New(&replica{world: w}, letIn, Options{})
		w.object = nil
		if _, err := c.Do(within(t, 5*time.Second), key, "a"); !apierrs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheNumberOfWaitingRequestsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.delay = time.Second
		c := newReplica(w, Options{MaxWaiting: 3})
		var wg sync.WaitGroup
		ask := func(i int) {
			wg.Go(func() {
				if in, err := c.Do(within(t, 10*time.Second), key, fmt.Sprint(i)); !in || err != nil {
					t.Error(i, in, err)
				}
			})
		}
		ask(0)
		synctest.Wait() // it is on its way
		for i := range 3 {
			ask(1 + i)
		}
		synctest.Wait()
		if _, err := c.Do(within(t, 10*time.Second), key, "over"); !errors.Is(err, ErrQueueFull) {
			t.Errorf("got %v", err)
		}
		wg.Wait()
	})
}
