package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
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

// world is an API server with one object: Data has the admitted names, and
// "places" the limit. Each replica has its own cache.
type world struct {
	mu     sync.Mutex
	object *corev1.ConfigMap
	swaps  int
	reads  int
	// delay is the duration of each call.
	delay time.Duration
	// fail, if set, returns the error of the next swaps; done means that they
	// are written anyway.
	fail func(swap int) (err error, done bool)
}

func newWorld(places int) *world {
	return &world{delay: 5 * time.Millisecond, object: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", ResourceVersion: "1"},
		Data:       map[string]string{"places": strconv.Itoa(places)},
	}}
}

// write changes the object without the replicas.
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
	delete(in, "places")
	return in
}

// replica is one process. Its cache has the object of its creation until follow
// is called.
type replica struct {
	*world
	cached *corev1.ConfigMap
}

// follow updates the cache to the current object.
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
		return nil, apierrs.NewConflict(resource, "one", errors.New("the object was changed"))
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

// admitName admits a name once, while a place is available.
func admitName(state *corev1.ConfigMap, group []string) Decision[*corev1.ConfigMap, bool] {
	d := Decision[*corev1.ConfigMap, bool]{Next: state.DeepCopy(), Answers: make([]bool, len(group))}
	places, _ := strconv.Atoi(state.Data["places"])
	for i, name := range group {
		_, in := d.Next.Data[name]
		if !in && places > 0 {
			places--
			d.Next.Data[name], in, d.Changed = "in", true, true
		}
		d.Answers[i] = in
	}
	d.Next.Data["places"] = strconv.Itoa(places)
	return d
}

type committer = Committer[*corev1.ConfigMap, string, bool]

func newReplica(w *world, options Options) *committer {
	return New(&replica{world: w, cached: w.object}, admitName, options)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// storm requests n names concurrently from the replicas and returns the number
// of admitted names.
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

func TestOnePlaceAdmitsOneOfManyRequestsToTwoReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		if got := storm(t, 100, newReplica(w, Options{}), newReplica(w, Options{})); got != 1 || len(w.admitted()) != 1 {
			t.Errorf("%d responses admit a name, admitted are %v", got, w.admitted())
		}
	})
}

func TestRequestsAtOnceShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(75)
		w.delay = 50 * time.Millisecond
		if got := storm(t, 150, newReplica(w, Options{})); got != 75 || w.swaps > 2 {
			t.Errorf("%d of 150 responses admit a name, with %d writes", got, w.swaps)
		}
	})
}

func TestConflictsDenyNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(300)
		if got := storm(t, 300, newReplica(w, Options{}), newReplica(w, Options{}), newReplica(w, Options{})); got != 300 || len(w.admitted()) != 300 {
			t.Errorf("%d of 300 responses admit a name, %d names are admitted", got, len(w.admitted()))
		}
		if w.swaps > 30 {
			t.Errorf("300 requests took %d writes", w.swaps)
		}
	})
}

// A write with a conflict is repeated on the state from the watch, together
// with the requests that arrived meanwhile.
func TestAConflictCostsOneMoreWriteForAllWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10)
		r := &replica{world: w, cached: w.object}
		c := New[*corev1.ConfigMap, string, bool](r, admitName, Options{})
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
		time.Sleep(w.delay / 2) // during the write
		ask("second")
		synctest.Wait()
		r.follow()
		wg.Wait()
		if w.swaps != 2 || w.reads != 0 {
			t.Errorf("%d writes and %d reads, want the write with the conflict and one for both", w.swaps, w.reads)
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
				t.Errorf("took %s, one write takes %s", took, w.delay)
			}
		}
		if w.reads != 0 {
			t.Errorf("%d live reads: the last written state was not used", w.reads)
		}
	})
}

// The last written object of a queue is kept while the cache lags. Any other request
// ends that, also if the object was deleted meanwhile and is never requested again.
func TestTheLastWrittenObjectIsNotKeptForEver(t *testing.T) {
	for name, then := range map[string]func(*replica){
		"the cache has it":       (*replica).follow,
		"the object was deleted": func(r *replica) { r.cached = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(10)
				r := &replica{world: w, cached: w.object}
				c := New[*corev1.ConfigMap, string, bool](r, admitName, Options{})
				ask := func(key types.NamespacedName) {
					if in, err := c.Do(within(t, time.Second), key, key.Name); !in || err != nil {
						t.Fatal(in, err)
					}
					synctest.Wait() // until the queue has run empty
				}
				if ask(key); c.queues[key] == nil {
					t.Error("the last written object is not kept while the cache lags")
				}
				then(r)
				if ask(types.NamespacedName{Namespace: "ns", Name: "other"}); c.queues[key] != nil {
					t.Error("the last written object is kept")
				}
			})
		})
	}
}

// Requests that arrive while a group collects share its write. A steady stream
// of requests does not delay it.
func TestAGroupCollectsRequestsForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		var sizes []int
		c := newReplica(w, Options{Observe: func(o Stats) { sizes = append(sizes, o.Size) }})
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
			t.Errorf("groups of %v: more than one group per 20 ms of waiting and 5 ms of writing", sizes)
		}
	})
}

func TestNoAnswerDependsOnAStaleCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0)
		full := newReplica(w, Options{}) // its cache has no place
		w.write(func(data map[string]string) { data["places"] = "1" })
		if in, err := full.Do(within(t, time.Second), key, "a"); !in || err != nil {
			t.Errorf("denied while a place is available: %v", err)
		}
		idle := newReplica(w, Options{}) // its cache has a as admitted
		w.write(func(data map[string]string) { delete(data, "a") })
		if in, err := idle.Do(within(t, time.Second), key, "a"); in || err != nil {
			t.Errorf("admitted by a refunded place: %v", err)
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
				t.Errorf("done %v: not admitted: %v", done, err)
			}
			if in, err := c.Do(within(t, time.Second), key, "b"); in || err != nil {
				t.Errorf("done %v: one place admitted two names: %v", done, err)
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
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Do(canceled, key, "b"); !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v", err)
		}
		if w.swaps != 0 || len(w.admitted()) != 0 {
			t.Error("the object was written")
		}
		// A request ends although the API server does not respond.
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
		c := New(&replica{world: w}, admitName, Options{})
		w.object = nil
		if _, err := c.Do(within(t, 5*time.Second), key, "a"); !apierrs.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestATransientErrorIsReturnedAtOnceIfTheCallersRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.fail = func(int) (error, bool) { return apierrs.NewInternalError(errors.New("etcd")), false }
		c, start := newReplica(w, Options{ReturnErrors: true}), time.Now()
		if _, err := c.Do(within(t, 5*time.Second), key, "a"); !apierrs.IsInternalError(err) || time.Since(start) > time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestTheEndOfTheTimeOfOneCallDoesNotEndTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(5)
		w.delay = time.Second
		c := newReplica(w, Options{ReturnErrors: true, Margin: time.Millisecond})
		c.queues[key] = &queue[*corev1.ConfigMap, string, bool]{arrived: make(chan struct{}, 1), size: 2} // so that it waits for both
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Do(within(t, 500*time.Millisecond), key, "a"); !errors.Is(err, ErrDeadline) {
				t.Errorf("the call with little time: %v", err)
			}
		})
		wg.Go(func() {
			if in, err := c.Do(within(t, 10*time.Second), key, "b"); err != nil || !in {
				t.Errorf("the other call: %v, %v", in, err)
			}
		})
		wg.Wait()
	})
}

// In the goroutine of the commit a panic would end the process.
func TestAPanicReachesItsCallersAndTheNextRequestIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(5)
		w.fail = func(swap int) (error, bool) {
			if swap == 1 {
				panic("first swap")
			}
			return nil, false
		}
		c := newReplica(w, Options{})
		func() {
			defer func() {
				p, ok := recover().(*Panic)
				if !ok || p.Value != "first swap" || !strings.Contains(p.String(), "TestAPanicReaches") {
					t.Errorf("panic is %v", p)
				}
			}()
			_, err := c.Do(within(t, 5*time.Second), key, "a")
			t.Errorf("no panic, error %v", err)
		}()
		if in, err := c.Do(within(t, 5*time.Second), key, "b"); err != nil || !in {
			t.Errorf("the next request: %v, %v", in, err)
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
		synctest.Wait() // the request is submitted
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
