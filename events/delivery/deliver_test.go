package delivery

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestDeliverReportsWhetherTheBrokerAccepted(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{}, to(b.URL))
	s.run(t)
	if err := s.Deliver(t.Context(), wakeUp(t, "a")); err != nil {
		t.Errorf("accepted: %v", err)
	}

	var status *StatusError
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusUnauthorized} {
		b.answer(code)
		if err := s.Deliver(t.Context(), wakeUp(t, "a")); !errors.As(err, &status) || status.Permanent() {
			t.Errorf("%d: %v", code, err)
		}
	}
	b.answer(http.StatusForbidden)
	if err := s.Deliver(t.Context(), wakeUp(t, "a")); !errors.As(err, &status) || !status.Permanent() {
		t.Errorf("403: %v", err)
	}

	b.block()
	t.Cleanup(b.unblock)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Deliver(ctx, wakeUp(t, "a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no response in time: %v", err)
	}
}

func TestDeliverWithoutABrokerFailsAtOnce(t *testing.T) {
	s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) { return Endpoint{}, errors.New("not there") })
	s.run(t)
	var noBroker *NoBrokerError
	if err := s.Deliver(t.Context(), wakeUp(t, "a")); !errors.As(err, &noBroker) {
		t.Errorf("error %v", err)
	}
	if n := s.value(t, "breakwater_event_broker_resolved"); n != 0 {
		t.Errorf("breakwater_event_broker_resolved is %d", n)
	}
}

func TestDeliverWaitsForTheFirstLookup(t *testing.T) {
	b := newBroker(t)
	started, proceed := make(chan struct{}), make(chan struct{})
	s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) {
		close(started)
		<-proceed
		return Endpoint{URL: b.URL}, nil
	})
	s.run(t)
	<-started
	delivered := make(chan error)
	go func() { delivered <- s.Deliver(t.Context(), wakeUp(t, "a")) }()
	close(proceed)
	if err := <-delivered; err != nil {
		t.Error(err)
	}
	if n := s.value(t, "breakwater_event_broker_resolved"); n != 1 {
		t.Errorf("breakwater_event_broker_resolved is %d", n)
	}
}

func TestTheCertificatesOfTheEndpointAreTrusted(t *testing.T) {
	b := newBroker(t)
	secure := httptest.NewTLSServer(b.Config.Handler)
	t.Cleanup(secure.Close)
	certificates := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	for name, tc := range map[string]struct {
		endpoint Endpoint
		ok       bool
	}{
		"trusted":   {Endpoint{URL: secure.URL, CACerts: certificates}, true},
		"untrusted": {Endpoint{URL: secure.URL}, false},
		"not PEM":   {Endpoint{URL: secure.URL, CACerts: "none"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, Options{}, func(context.Context) (Endpoint, error) { return tc.endpoint, nil })
			s.run(t)
			if err := s.Deliver(t.Context(), wakeUp(t, "a")); (err == nil) != tc.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}
