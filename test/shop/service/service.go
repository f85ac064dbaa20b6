// SPDX-License-Identifier: Apache-2.0

// Package service runs one service of the shop: it answers requests, calls the
// services that it depends on, shows its metrics, and does what its fault says.
package service

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
)

// podHeader names the pod that answered.
const podHeader = "Shop-Pod"

// spread is the standard deviation of the logarithm of the time of service.
const spread = 0.4

// Service answers the requests of one service.
type Service struct {
	// Spec is one of Specs, the services of the shop.
	Spec Spec
	// Pod is its pod's name.
	Pod string
	// Effects are the effects of its fault.
	Effects fault.Effects
	// Errors is the share of requests that fail without a fault.
	Errors float64
	// Speed divides the time of service; 1 is usual.
	Speed float64
	// Dependencies are called once for each request.
	Dependencies []*Client
	// Started is the time of its start.
	Started time.Time
}

// Handler returns the routes of the service, with the metrics of OpenTelemetry
// for its requests.
func (s *Service) Handler(meters metric.MeterProvider, metricsHandler http.Handler) http.Handler {
	routes := http.NewServeMux()
	routes.Handle("GET "+s.Spec.Route, otelhttp.NewHandler(http.HandlerFunc(s.serve), s.Spec.Name, otelhttp.WithMeterProvider(meters),
		otelhttp.WithTracerProvider(noop.NewTracerProvider())))
	routes.Handle("GET /metrics", metricsHandler)
	routes.HandleFunc("GET /readyz", s.ready)
	return routes
}

// ready answers 503 for the fault's share of each minute.
func (s *Service) ready(w http.ResponseWriter, _ *http.Request) {
	since := time.Since(s.Started)
	if since > 10*time.Second && math.Mod(since.Seconds(), 60)/60 < s.Effects.Unready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(r.URL.Query().Get("id"))
	if err != nil {
		http.Error(w, "parameter id is not a number", http.StatusBadRequest)
		return
	}
	w.Header().Set(podHeader, s.Pod)
	if happens(s.Effects.Hangs) {
		<-r.Context().Done()
		return
	}
	work()
	if !s.wait(r.Context()) {
		return
	}
	switch {
	case happens(s.Effects.Resets):
		// Half an answer, because a client repeats a request that got none.
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case happens(s.Effects.Errors) || happens(s.Errors):
		w.WriteHeader(http.StatusInternalServerError)
		return
	case happens(s.Effects.NotFound):
		w.WriteHeader(http.StatusNotFound)
		return
	}
	answer := Right(id)
	for _, d := range s.Dependencies {
		if happens(s.Effects.Missed) {
			answer.Receipt = ""
			continue
		}
		if err := s.call(r.Context(), d, id); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	if happens(s.Effects.Wrong) {
		answer.Price++
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// call calls a dependency, with the calls that the fault adds.
func (s *Service) call(ctx context.Context, d *Client, id int) error {
	if happens(s.Effects.BadCalls) {
		d.CallWrongly(ctx, id)
		return nil
	}
	for n := s.Effects.ExtraCalls; n > 0; n-- {
		if happens(n) {
			_ = d.Call(ctx, id)
		}
	}
	return d.Call(ctx, id)
}

// wait waits for the time of service. It returns false if the caller disconnected.
func (s *Service) wait(ctx context.Context) bool {
	timer := time.NewTimer(s.serviceTime(rand.NormFloat64(), time.Since(s.Started)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serviceTime is log-normal around the median.
func (s *Service) serviceTime(normal float64, age time.Duration) time.Duration {
	factor := math.Exp(spread*normal) / s.Speed
	if s.Effects.Slowdown > 0 && (s.Effects.WarmUp == 0 || age < s.Effects.WarmUp) {
		factor *= s.Effects.Slowdown
	}
	if happens(s.Effects.SlowShare) {
		factor *= 8
	}
	return time.Duration(factor * float64(s.Spec.Median))
}

// work is the CPU time of a request.
func work() {
	block := make([]byte, 1<<14)
	for range 4 {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
}

func happens(share float64) bool { return share > 0 && rand.Float64() < share }
