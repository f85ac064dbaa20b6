package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

const (
	// floodedAddress is the address that a process of the benchmark floods.
	floodedAddress = "FLOODED_WEBHOOK"
	strangers      = 1000
	reviewsInFlood = 200
)

// BenchmarkReviewsWhileStrangersConnect reports how long 200 reviews take, 20 at a time, while
// another process keeps opening 1000 connections with TLS handshakes. FLOOD_NICE is its niceness.
func BenchmarkReviewsWhileStrangersConnect(b *testing.B) {
	f := newFixture()
	url, stop, ended := startServerWith(b, f.handler, decodeReview)
	ctx, cancel := context.WithCancel(b.Context())
	attacker := exec.CommandContext(ctx, "nice", "-n", cmp.Or(os.Getenv("FLOOD_NICE"), "10"), os.Args[0], "-test.run=^TestProcessOfTheStrangers$")
	attacker.Env = append(os.Environ(), floodedAddress+"="+strings.TrimPrefix(url, "https://"))
	ready, err := attacker.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := attacker.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		b.Fatal(err)
	}
	body := `{"request":{"uid":"u","object":{"data":"` + strings.Repeat("x", 8<<10) + `"}}}`
	client := apiServer()
	var took []time.Duration
	for b.Loop() {
		took = append(took, timeReviews(b, client, url+webhookpath.Path([]byte("key"), webhookName, now), body)...)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)*99/100].Seconds()*1000, "p99-ms")
	cancel()
	_ = attacker.Wait() // it was killed
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

func timeReviews(b *testing.B, client *http.Client, url, body string) (took []time.Duration) {
	b.Helper()
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range 20 {
		senders.Go(func() {
			for range reviewsInFlood / 20 {
				began := time.Now()
				response, err := client.Post(url, "application/json", strings.NewReader(body)) //nolint:noctx // our own server
				if err != nil {
					b.Error(err)
					return
				}
				_ = response.Body.Close()
				if response.StatusCode != http.StatusOK {
					b.Errorf("status %d", response.StatusCode)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	return took
}

// TestProcessOfTheStrangers is no test: it is the main function of the process of the strangers.
func TestProcessOfTheStrangers(t *testing.T) {
	address := os.Getenv(floodedAddress)
	if address == "" {
		t.Skip("a process of the benchmark")
	}
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a server of the test
	var opened, all sync.WaitGroup
	opened.Add(strangers)
	for range strangers {
		first := sync.OnceFunc(opened.Done)
		all.Go(func() {
			for t.Context().Err() == nil {
				c, err := dialer.DialContext(t.Context(), "tcp", address)
				first()
				if err == nil {
					_, _ = c.Read(make([]byte, 1)) // until the server closes
					_ = c.Close()
				}
			}
		})
	}
	opened.Wait()
	_, _ = os.Stdout.WriteString("flooding\n")
	all.Wait()
}
