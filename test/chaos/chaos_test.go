//go:build e2e

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kelseyhightower/envconfig"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	informers "github.com/breakwater-dev/breakwater/client/informers/externalversions"
	"github.com/breakwater-dev/breakwater/test/e2e/dump"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// dumps is the folder for the log and state of a failed run.
const dumps = "../../bin/chaos"

// quietPeriod is the time without changes that ends a run.
const quietPeriod = 6 * time.Second

// options are the environment variables; see the package doc.
type options struct {
	Seed        uint64
	Releases    int           `default:"8"`
	Pods        int           `default:"5"`
	Deployments int           `default:"4"`
	Limit       time.Duration `default:"8m"`
	// Duration is the minimum time during which releases begin.
	Duration time.Duration
	// Interval is the mean time between two faults.
	Interval time.Duration `default:"2s"`
	// Rounds is the number of rounds of faults; 0: until the releases have
	// ended.
	Rounds int `default:"1"`
	// KillsPerTarget is the maximum number of kills of each target, ServerKills that
	// of the double and of the permission centre; 0: no limit.
	KillsPerTarget int `split_words:"true" default:"2"`
	ServerKills    int `split_words:"true" default:"1"`
}

func TestEveryReleaseEndsAsTheVerdictsSay(t *testing.T) {
	var o options
	if err := envconfig.Process("chaos", &o); err != nil {
		t.Fatal(err)
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHAOS_SEED=%d repeats these verdicts and faults: %+v", o.Seed, o)
	// An interrupt ends the run like its time limit, with a cleanup.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	f, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.cleanUp(ctx), f.awaitCleanup(ctx)); err != nil {
		t.Fatal("clean up after an earlier run:", err)
	}
	if err := renewKept(ctx, f.kube); err != nil {
		t.Fatal(err)
	}
	if err := serverdouble.Install(ctx, f.kube, os.Stderr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.cleanUp(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := f.configure(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	r := newRun(f, o, t.Logf)
	began := time.Now()
	if err := r.do(ctx); err != nil {
		r.save(t, began)
		t.Fatalf("CHAOS_SEED=%d: %v", o.Seed, err)
	}
	t.Logf("%d releases of %d pods in %s; killed: %v; paused: %v",
		r.releases(), o.Pods, time.Since(began).Round(time.Second), r.injector.count(Kill), r.injector.count(Pause))
}

// run is one chaos run.
type run struct {
	*fixture
	options
	log      func(format string, args ...any)
	loops    []*releaseLoop
	budget   *budgetLoop
	granted  *permissionLoop
	injector *injector
	watcher  *watcher
}

func newRun(f *fixture, o options, logf func(format string, args ...any)) *run {
	log := func(format string, args ...any) {
		logf(time.Now().Format("15:04:05.000 ")+format, args...)
	}
	r := &run{fixture: f, options: o, log: log, watcher: &watcher{suspended: map[types.UID]bool{}}}
	r.injector = &injector{
		kube: f.kube, seed: o.Seed, interval: o.Interval, rounds: o.Rounds, maxKills: maxKills(o.KillsPerTarget, o.ServerKills), targets: targets(),
		log: log, roundDone: make(chan struct{}), counts: map[FaultKind]map[string]int{},
	}
	until := time.Now().Add(o.Duration)
	run := fmt.Sprintf("chaos-%x", o.Seed&0xffff)
	for i := range min(o.Deployments, o.Releases) {
		r.loops = append(r.loops, &releaseLoop{
			fixture: f, versioned: make(chan struct{}), roundDone: r.injector.roundDone,
			namespace: fmt.Sprintf("%s-%d", run, i+1), pods: o.Pods, until: until, log: log,
			rand:   rand.New(rand.NewPCG(o.Seed, uint64(i)+1)),
			faults: rand.New(rand.NewPCG(o.Seed, 1<<34+uint64(i))),
		})
	}
	r.budget = &budgetLoop{
		fixture: f, namespace: run + "-budget", seed: o.Seed, log: log,
		prepared: make(chan struct{}), availability: NewAvailability(), results: map[string]int{},
	}
	r.granted = &permissionLoop{fixture: f, namespace: run + "-permission", seed: o.Seed, log: log, prepared: make(chan struct{}), seen: NewGrants()}
	return r
}

// releases returns the number of releases.
func (r *run) releases() (n int) {
	for _, l := range r.loops {
		n += l.done
	}
	return n
}

// share is the minimum number of releases of a loop.
func (r *run) share(loop int) int {
	n := r.Releases / len(r.loops)
	if loop < r.Releases%len(r.loops) {
		n++
	}
	return n
}

// do runs the releases and deletions during the faults, and then checks that
// their results do not change.
func (r *run) do(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(r.clients, 0)
	workloads := factory.App().V1alpha1().ChangeWorkloads().Informer()
	if _, err := workloads.AddEventHandler(r.watcher.handler()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if err := r.drawBatches(ctx); err != nil {
		return err
	}

	if err := r.inject(ctx); err != nil {
		return err
	}
	injected := map[FaultKind]map[string]int{Kill: r.injector.count(Kill), Pause: r.injector.count(Pause)}
	if left := Missing(r.Seed, r.Interval, r.injector.maxKills, injected); len(left) > 0 {
		return fmt.Errorf("faults that were not injected: %v", left)
	}
	if err := r.awaitRecovery(ctx); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.budget.check(gctx) })
	group.Go(func() error { return r.granted.check(gctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.awaitQuiet(ctx); err != nil {
		return err
	}
	for _, l := range r.loops {
		end, err := l.awaitEnd(ctx, l.done)
		if err != nil {
			return err
		}
		if err := l.awaitFormer(ctx, end.Phase); err != nil {
			return err
		}
	}
	if wrong := append(r.watcher.violations(), r.budget.availability.Violations()...); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// inject runs the releases and the deletions during the faults. The faults
// begin when every loop has begun.
func (r *run) inject(ctx context.Context) error {
	if err := errors.Join(r.budget.watch(ctx), r.granted.seen.Watch(ctx, r.granted.kube, r.granted.namespace)); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	faults, stop := context.WithCancel(gctx)
	var background sync.WaitGroup
	background.Go(func() {
		for _, l := range r.loops {
			select {
			case <-l.versioned:
			case <-faults.Done():
				return
			}
		}
		for _, prepared := range []<-chan struct{}{r.budget.prepared, r.granted.prepared} {
			select {
			case <-prepared:
			case <-faults.Done():
				return
			}
		}
		deletions, stopDeletions := context.WithCancel(faults)
		background.Go(func() { r.budget.run(deletions) })
		background.Go(func() { r.granted.run(deletions) })
		r.injector.run(faults)
		stopDeletions()
	})
	group.Go(func() error { return r.budget.prepare(gctx) })
	group.Go(func() error { return r.granted.prepare(gctx) })
	for i, l := range r.loops {
		group.Go(func() error { return l.run(gctx, r.share(i)) })
	}
	err := group.Wait()
	stop()
	background.Wait()
	return err
}

// drawBatches draws whether pods are judged one by one, and changes the setting.
func (r *run) drawBatches(ctx context.Context) error {
	draw := rand.New(rand.NewPCG(r.Seed, 1<<32))
	spec := v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBatch, Content: "10"}
	if draw.IntN(2) == 0 {
		spec.Enable, spec.Content = true, fmt.Sprint(10+draw.IntN(40))
	}
	r.log("batches: %t, %s per cent", spec.Enable, spec.Content)
	return r.setBatches(ctx, spec)
}

// awaitQuiet waits until no object of the run has changed for a while.
func (r *run) awaitQuiet(ctx context.Context) error {
	since, before := time.Now(), map[string]string{}
	return await(ctx, time.Minute, "no object changes", func(ctx context.Context) error {
		now := map[string]string{}
		for _, l := range r.loops {
			versions, err := r.versions(ctx, l.namespace)
			if err != nil {
				return err
			}
			for object, version := range versions {
				now[l.namespace+" "+object] = version
			}
		}
		if diff := cmp.Diff(before, now); diff != "" {
			since, before = time.Now(), now
			return errors.New("objects changed: " + diff)
		}
		if left := quietPeriod - time.Since(since); left > 0 {
			return fmt.Errorf("no object has changed for %s", time.Since(since).Round(time.Second))
		}
		return nil
	})
}

// save writes the log and state of a failed run to bin/chaos.
func (r *run) save(t *testing.T, since time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := filepath.Join(dumps, fmt.Sprint(r.Seed))
	var namespaces []string
	for _, l := range r.loops {
		namespaces = append(namespaces, l.namespace)
	}
	namespaces = append(namespaces, r.budget.namespace, r.granted.namespace)
	if err := dump.Write(ctx, r.kube, dir, since, namespaces...); err != nil {
		t.Log(err)
	}
	log, nodes, err := r.double.OrderLog(ctx, "")
	raw, encoded := json.MarshalIndent(map[string]any{"log": log, "nodes": nodes}, "", " ")
	if err := errors.Join(err, encoded, os.WriteFile(filepath.Join(dir, "server.json"), raw, 0o644)); err != nil {
		t.Log(err)
	}
	t.Logf("the state of the failed run is in bin/chaos/%d", r.Seed)
}
