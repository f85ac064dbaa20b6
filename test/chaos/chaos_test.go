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
	"github.com/breakwater-dev/breakwater/test/e2e/judge"
)

// dumps is the folder for the log and state of a failed run.
const dumps = "../../bin/chaos"

// quiet is the time without changes that ends a run.
const quiet = 6 * time.Second

// options are the environment variables; see the package doc.
type options struct {
	Seed     uint64
	Releases int           `default:"8"`
	Pods     int           `default:"5"`
	Lanes    int           `default:"4"`
	Limit    time.Duration `default:"8m"`
	// Pause is the mean time between two kills.
	Pause time.Duration `default:"5s"`
	// Deaths is the maximum number of kills of each part, ServerDeaths that of
	// the double; 0: no limit.
	Deaths       int `default:"2"`
	ServerDeaths int `split_words:"true" default:"1"`
}

func TestEveryReleaseEndsAsTheVerdictsSay(t *testing.T) {
	var o options
	if err := envconfig.Process("chaos", &o); err != nil {
		t.Fatal(err)
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	t.Logf("CHAOS_SEED=%d repeats these verdicts and this order of kills: %+v", o.Seed, o)
	// An interrupt ends the run like its time limit, with a cleanup.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	w, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.sweep(ctx), w.swept(ctx)); err != nil {
		t.Fatal("clean up after an earlier run:", err)
	}
	if err := judge.Install(ctx, w.kube, os.Stderr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.sweep(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := w.configure(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	r := newRun(w, o, t.Logf)
	began := time.Now()
	if err := r.do(ctx); err != nil {
		r.keep(t, began)
		t.Fatalf("CHAOS_SEED=%d: %v", o.Seed, err)
	}
	t.Logf("%d releases of %d pods in %s; killed: %v", o.Releases, o.Pods, time.Since(began).Round(time.Second), r.killer.kills())
}

// run is one chaos run.
type run struct {
	*world
	options
	log     func(format string, args ...any)
	lanes   []*lane
	killer  *killer
	witness *witness
}

func newRun(w *world, o options, logf func(format string, args ...any)) *run {
	log := func(format string, args ...any) {
		logf(time.Now().Format("15:04:05.000 ")+format, args...)
	}
	r := &run{world: w, options: o, log: log, witness: &witness{suspended: map[types.UID]bool{}}}
	r.killer = &killer{
		kube: w.kube, rand: rand.New(rand.NewPCG(o.Seed, 0)), pause: o.Pause, log: log,
		targets: targets(o.Deaths, o.ServerDeaths), killed: map[string]int{},
	}
	run := fmt.Sprintf("chaos-%x", o.Seed&0xffff)
	for i := range min(o.Lanes, o.Releases) {
		r.lanes = append(r.lanes, &lane{
			world: w, guarded: make(chan struct{}), namespace: fmt.Sprintf("%s-%d", run, i+1), pods: o.Pods, log: log,
			rand: rand.New(rand.NewPCG(o.Seed, uint64(i)+1)),
		})
	}
	return r
}

// share is the number of releases of a lane.
func (r *run) share(lane int) int {
	n := r.Releases / len(r.lanes)
	if lane < r.Releases%len(r.lanes) {
		n++
	}
	return n
}

// do runs the releases during the kills, and then checks that their results do
// not change.
func (r *run) do(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(r.clients, 0)
	seen := factory.App().V1alpha1().ChangeWorkloads().Informer()
	if _, err := seen.AddEventHandler(r.witness.handler()); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if err := r.batching(ctx); err != nil {
		return err
	}

	fire, cease := context.WithCancel(ctx)
	ceased := make(chan struct{})
	go func() {
		defer close(ceased)
		for _, l := range r.lanes {
			select {
			case <-l.guarded:
			case <-fire.Done():
				return
			}
		}
		r.killer.run(fire)
	}()
	group, gctx := errgroup.WithContext(ctx)
	for i, l := range r.lanes {
		group.Go(func() error { return l.run(gctx, r.share(i)) })
	}
	err := group.Wait()
	cease()
	<-ceased
	if err != nil {
		return err
	}
	if len(r.killer.kills()) == 0 {
		return errors.New("no part was killed")
	}
	if err := r.recovered(ctx); err != nil {
		return err
	}
	if err := r.settled(ctx); err != nil {
		return err
	}
	for i, l := range r.lanes {
		if _, err := l.awaitEnd(ctx, r.share(i)); err != nil {
			return err
		}
	}
	if wrong := r.witness.complaints(); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// batching draws whether pods are judged one by one, and changes the setting.
func (r *run) batching(ctx context.Context) error {
	draw := rand.New(rand.NewPCG(r.Seed, 1<<32))
	spec := v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigBatch, Content: "10"}
	if draw.IntN(2) == 0 {
		spec.Enable, spec.Content = true, fmt.Sprint(10+draw.IntN(40))
	}
	r.log("batches: %t, %s per cent", spec.Enable, spec.Content)
	return r.setBatches(ctx, spec)
}

// settled waits until no object of the run has changed for a while.
func (r *run) settled(ctx context.Context) error {
	since, before := time.Now(), map[string]string{}
	return await(ctx, time.Minute, "the cluster is quiet", func(ctx context.Context) error {
		now := map[string]string{}
		for _, l := range r.lanes {
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
		if left := quiet - time.Since(since); left > 0 {
			return fmt.Errorf("no object has changed for %s", time.Since(since).Round(time.Second))
		}
		return nil
	})
}

// keep writes the log and state of a failed run to bin/chaos.
func (r *run) keep(t *testing.T, since time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := filepath.Join(dumps, fmt.Sprint(r.Seed))
	var namespaces []string
	for _, l := range r.lanes {
		namespaces = append(namespaces, l.namespace)
	}
	if err := dump.Write(ctx, r.kube, dir, since, namespaces...); err != nil {
		t.Log(err)
	}
	log, nodes, err := r.judge.OrderLog(ctx, "")
	raw, encoded := json.MarshalIndent(map[string]any{"log": log, "nodes": nodes}, "", " ")
	if err := errors.Join(err, encoded, os.WriteFile(filepath.Join(dir, "server.json"), raw, 0o644)); err != nil {
		t.Log(err)
	}
	t.Logf("the state of the failed run is in bin/chaos/%d", r.Seed)
}
