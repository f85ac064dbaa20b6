// SPDX-License-Identifier: Apache-2.0

// Package record makes releases of the shop and records what Prometheus shows
// of them: for each release it runs old and new pods as processes on loopback
// addresses, with load on them, as a cluster would, and writes the samples as
// OpenMetrics and the list of releases with their labels.
package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/breakwater-dev/breakwater/test/shop/service"
)

const (
	// starting is the time for all processes to start, before the recorded time begins.
	starting = 25 * time.Second
	day      = 24 * time.Hour
	// dayPrefix marks the namespaces that run at the same time without a release; their
	// samples are written 24 hours earlier.
	dayPrefix = "day-before-"
)

// Options say which recording is made.
type Options struct {
	// Run is the name of the recording; it is part of the names of the namespaces.
	Run string
	// Half is 0 or 1, see Plan.
	Half int
	// Seed of the plan and the load.
	Seed uint64
	// Out is the folder of the result.
	Out string
	// Only limits the number of releases of the plan that are made; 0 means all.
	Only int
	// Before and After are recorded before and after each release.
	Before, After time.Duration
	// Log receives the progress.
	Log io.Writer
}

// recorder is one recording.
type recorder struct {
	Options
	folder  string
	client  *http.Client
	meters  *metric.MeterProvider
	server  *prometheus
	lag     lagMeter
	running sync.WaitGroup // Prometheus and the server of the state
	active  sync.WaitGroup // pods and load

	mu    sync.Mutex
	shops []*shop

	targets sync.Mutex // held while the list of targets is written
}

// Run makes a recording.
func Run(ctx context.Context, o Options) error {
	folder, err := os.MkdirTemp("", "shop-record-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	r := &recorder{Options: o, folder: folder, client: &http.Client{Timeout: 3 * time.Second}, server: &prometheus{folder: folder}}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(folder, "shop"), "github.com/breakwater-dev/breakwater/test/shop/cmd/shop").CombinedOutput(); err != nil {
		return fmt.Errorf("build the shop: %w: %s", err, out)
	}
	ctx, stop := context.WithCancel(ctx)
	defer r.running.Wait()
	defer stop()
	if err := r.serve(ctx); err != nil {
		return err
	}
	r.running.Go(func() { r.lag.run(ctx) })
	// The shops end first: the steps that follow need the CPU.
	shops, end := context.WithCancel(ctx)
	defer end()
	results := r.releases(shops)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(results) == 0 {
		return errors.New("no release was made")
	}
	stopped := time.Now()
	end()
	r.active.Wait()
	if err := r.dump(ctx, results, stopped); err != nil {
		return err
	}
	stop()
	r.running.Wait()
	r.printCPU(stopped)
	return writeLabels(o.Out, o.Run, results)
}

// serve starts Prometheus and the server that shows the state of the pods.
func (r *recorder) serve(ctx context.Context) error {
	meters, metrics, err := service.Telemetry(nil)
	if err != nil {
		return err
	}
	r.meters = meters
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", metrics)
	routes.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { writeState(w, r.pods()) })
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: time.Second}
	r.running.Go(func() { _ = server.Serve(listener) })
	r.running.Go(func() { <-ctx.Done(); _ = server.Close() })
	free, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := free.Addr().String()
	r.server.url = "http://" + address
	if err := errors.Join(free.Close(), r.server.writeTargets(nil)); err != nil {
		return err
	}
	r.running.Go(func() {
		if err := r.server.run(ctx, address, listener.Addr().String()); err != nil {
			_, _ = fmt.Fprintln(r.Log, err)
		}
	})
	return nil
}

// releases runs the plan and returns the releases that were made. A release that
// was not made is reported and omitted.
func (r *recorder) releases(ctx context.Context) []result {
	plan := Plan(r.Run, r.Half, r.Seed)
	if r.Only > 0 {
		plan = plan[:min(r.Only, len(plan))]
	}
	at := starting + r.Before
	var wait sync.WaitGroup
	made := make([]*result, len(plan))
	begin := time.Now()
	for i, release := range plan {
		s := r.shop(release, 2*i)
		s.begin(ctx)
		r.startLoad(ctx, s, at+release.Delay, uint64(2*i))
		if release.DayBefore {
			twin := release
			twin.Namespace = dayPrefix + release.Namespace
			d := r.shop(twin, 2*i+1)
			d.begin(ctx)
			r.startLoad(ctx, d, at+release.Delay, uint64(2*i+1))
		}
		wait.Go(func() {
			if !pause(ctx, time.Until(begin.Add(at+release.Delay))) {
				return
			}
			when, err := s.do(ctx)
			if err != nil {
				_, _ = fmt.Fprintln(r.Log, err)
				return
			}
			pause(ctx, time.Until(when.Add(r.After)))
			made[i] = &result{release: release, at: when}
			made[i].lagBefore = r.lag.between(when.Add(-r.Before), when)
			made[i].lagAfter = r.lag.between(when, when.Add(r.After))
			for _, p := range s.of(release.Service, "v2") {
				p.locked(func() { made[i].restarts += p.restarts })
			}
		})
	}
	_, _ = fmt.Fprintf(r.Log, "%s %d releases, %d processes, started in %s\n", time.Now().Format(time.TimeOnly), len(plan), len(r.pods()), time.Since(begin).Round(time.Second))
	wait.Wait()
	var results []result
	for _, m := range made {
		if m != nil {
			results = append(results, *m)
		}
	}
	return results
}

// shop returns the shop of a release; the number decides its addresses.
func (r *recorder) shop(release Release, number int) *shop {
	s := &shop{release: release, program: filepath.Join(r.folder, "shop"), folder: filepath.Join(r.folder, release.Namespace), client: r.client,
		network: fmt.Sprintf("127.%d.%d", 77+r.Half, 1+number), stops: map[*pod]func(){}}
	s.changed = func() {
		r.targets.Lock()
		defer r.targets.Unlock()
		if err := r.server.writeTargets(r.pods()); err != nil {
			_, _ = fmt.Fprintln(r.Log, err)
		}
	}
	_ = os.Mkdir(s.folder, 0o700)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shops = append(r.shops, s)
	return s
}

func (r *recorder) startLoad(ctx context.Context, s *shop, at time.Duration, number uint64) {
	r.active.Go(func() { s.running.Wait() })
	if s.release.Rate == 0 {
		return
	}
	profile := s.release.Load(at)
	r.active.Go(func() {
		// Requests before the first pod is Ready would fail.
		pause(ctx, starting-10*time.Second)
		if err := s.load(ctx, r.meters, profile, r.Seed<<8+number); err != nil {
			_, _ = fmt.Fprintln(r.Log, err)
		}
	})
}

func (r *recorder) pods() []*pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*pod
	for _, s := range r.shops {
		s.mu.Lock()
		list = append(list, s.pods...)
		s.mu.Unlock()
	}
	return list
}

// dump writes the samples of all releases. Those of the day before have a
// separate file.
func (r *recorder) dump(ctx context.Context, results []result, end time.Time) error {
	var today, before []series
	length := time.Since(results[0].at) + r.Before + time.Minute
	for _, result := range results {
		name := result.release.Namespace
		list, err := r.server.raw(ctx, name, end, length)
		if err != nil {
			return err
		}
		today = append(today, list...)
		if !result.release.DayBefore {
			continue
		}
		list, err = r.server.raw(ctx, dayPrefix+name, end, length)
		if err != nil {
			return err
		}
		for _, s := range list {
			s.Metric["namespace"] = strings.TrimPrefix(s.Metric["namespace"], dayPrefix)
		}
		before = append(before, list...)
	}
	if err := os.MkdirAll(r.Out, 0o755); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(r.Log, "%s %d series, and %d of the day before\n", time.Now().Format(time.TimeOnly), len(today), len(before))
	return errors.Join(
		compress(ctx, filepath.Join(r.Out, "series.om.zst"), func(w io.Writer) error { return writeOpenMetrics(w, today, 0) }),
		compress(ctx, filepath.Join(r.Out, "day-before.om.zst"), func(w io.Writer) error { return writeOpenMetrics(w, before, -day.Seconds()) }))
}

func (r *recorder) printCPU(stopped time.Time) {
	var used time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err == nil {
			used += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
	}
	_, _ = fmt.Fprintf(r.Log, "CPU time of all processes, with build and compression: %s; median lag of the machine: %s\n", used.Round(time.Second), r.lag.between(time.Time{}, stopped))
}
