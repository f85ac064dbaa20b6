package callback_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/test/manifest"
)

const signedCallbacks = 189

// forged returns the head of a callback whose signature has the right form.
func forged(length string) string {
	h := http.Header{}
	altershield.SignHeader(h, altershield.DefaultHeaderPrefix, "breakwater", nil, "guessed", ft.Now())
	var b strings.Builder
	b.WriteString("POST " + path + " HTTP/1.1\r\nHost: callback\r\nContent-Length: " + length + "\r\n")
	_ = h.Write(&b)
	return b.String() + "\r\n"
}

// floods are what strangers send on each connection.
var floods = map[string]func(net.Conn){
	"bodies of 1 MB": func(c net.Conn) {
		_, _ = io.WriteString(c, forged("1000000"))
		_, _ = c.Write(megabyte)
	},
	"bodies of 1 MB that never end": func(c net.Conn) {
		_, _ = io.WriteString(c, forged("1000000"))
		_, _ = c.Write(megabyte[1:])
		_, _ = io.Copy(io.Discard, c)
	},
	"dripping bodies": func(c net.Conn) {
		_, _ = io.WriteString(c, forged("1000000")+"x")
		_, _ = io.Copy(io.Discard, c)
	},
	"unsigned bodies": func(c net.Conn) {
		_, _ = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: callback\r\nContent-Length: 1000000\r\n\r\n")
		_, _ = c.Write(megabyte)
	},
}

var megabyte = bytes.Repeat([]byte("x"), 1000000)

// Strangers must neither exhaust the memory nor keep signed callbacks out. How long these take is
// measured by TestCallbackFlood of test/perf.
func TestSignedCallbacksAreAcceptedWhileStrangersFlood(t *testing.T) {
	resources := manifest.ResourcesOf(t, "../../config/core/640-callback.yaml")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(resources.SoftMemory))
	for name, send := range floods {
		t.Run(name, func(t *testing.T) {
			h := newConfiguredFixture(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			h.setStoreTimeout(t, handlingTime)
			server := httptest.NewServer(h.handler)
			defer server.Close()
			var strangers, signed sync.WaitGroup
			stop := make(chan struct{})
			address := strings.TrimPrefix(server.URL, "http://")
			for range strangersAtOnce {
				strangers.Go(func() { flood(t, address, send, stop) })
			}
			peak := samplePeak(stop)
			for range signedCallbacks {
				signed.Go(func() {
					if got := postTo(t, server.URL, batchCallback("n")); got != http.StatusOK {
						t.Errorf("a signed callback: status %d", got)
					}
				})
			}
			signed.Wait()
			close(stop)
			server.CloseClientConnections()
			strangers.Wait()
			got := <-peak
			t.Logf("the largest heap was %d MiB", got>>20)
			if got > uint64(resources.Memory) { //nolint:gosec // not negative
				t.Errorf("the process took %d MiB", got>>20)
			}
		})
	}
}

// flood sends on new connections until stop is closed, at most 100 times.
func flood(t *testing.T, address string, send func(net.Conn), stop <-chan struct{}) {
	for range 100 {
		select {
		case <-stop:
			return
		default:
		}
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		send(c)
		_ = c.Close()
	}
}

// samplePeak returns the largest heap until stop is closed.
func samplePeak(stop <-chan struct{}) <-chan uint64 {
	peak := make(chan uint64, 1)
	go func() {
		var largest uint64
		for {
			select {
			case <-stop:
				peak <- largest
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				largest = max(largest, m.HeapInuse)
			}
		}
	}()
	return peak
}

func postTo(t *testing.T, url, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte(body), ft.Token, ft.Now())
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	return res.StatusCode
}
