//go:build bench

package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events/eventstest"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/test/manifest"
)

const (
	callbackPath = "/openapi/altershield/callback"
	// callbackBurst is the number of callbacks of a burst, as when the callback was first seen to fail.
	callbackBurst = 189
)

// callbackKinds are the floods of the callback, in the order of the table.
var callbackKinds = []string{
	"nothing",
	"garbage",
	"bodies that arrive slowly",
	"bodies of 1 MB without signature headers",
	"bodies of 4 kB with a forged signature",
	"bodies of 1 MB with a forged signature",
	"the same, without an end",
	"the same, of unknown length",
	"bodies of 100 kB with a forged signature, 200 connections",
}

// callbackFloods are what strangers send to the callback.
func callbackFloods() map[string]floodOf {
	k := callbackKinds
	sends := func(head func() string, body []byte) func(net.Conn) {
		return func(c net.Conn) {
			_, _ = io.WriteString(c, head())
			_, _ = c.Write(body)
			hold(c) // until the answer has closed the connection
		}
	}
	forgedWith := func(n int) func() string {
		return func() string { return forged("Content-Length: " + strconv.Itoa(n)) }
	}
	return map[string]floodOf{
		k[0]: {send: hold},
		k[1]: {send: sends(func() string { return "\x16\x03\x01 garbage\r\n\r\n" }, nil)},
		k[2]: {send: sends(forgedWith(len(megabyte)), []byte("x"))},
		k[3]: {send: sends(func() string {
			return "POST " + callbackPath + " HTTP/1.1\r\nHost: callback\r\nContent-Length: 1000000\r\n\r\n"
		}, megabyte)},
		k[4]: {send: sends(forgedWith(4096), megabyte[:4096])},
		k[5]: {send: sends(forgedWith(len(megabyte)), megabyte)},
		k[6]: {send: sends(forgedWith(len(megabyte)), megabyte[1:])},
		k[7]: {send: sends(func() string { return forged("Transfer-Encoding: chunked") + fmt.Sprintf("%x\r\n", len(megabyte)) },
			[]byte(string(megabyte)+"\r\n0\r\n\r\n"))},
		k[8]: {connections: 200, send: sends(forgedWith(100000), megabyte[:100000])},
	}
}

// forged returns the head of a callback whose signature has the right form.
func forged(length string) string {
	h := http.Header{}
	altershield.SignHeader(h, altershield.DefaultHeaderPrefix, "breakwater", nil, "guessed", time.Now())
	var b strings.Builder
	b.WriteString("POST " + callbackPath + " HTTP/1.1\r\nHost: callback\r\n" + length + "\r\n")
	_ = h.Write(&b)
	return b.String() + "\r\n"
}

// TestCallbackFlood measures how long signed callbacks take while strangers flood the callback.
func TestCallbackFlood(t *testing.T) {
	resources := manifest.ResourcesOf(t, "../../config/core/640-callback.yaml")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	small, large := signedCallback(2<<10), signedCallback(1000000)
	where := machine()
	var results []*flooded
	for _, kind := range callbackKinds {
		if only := os.Getenv(floodKind); only != "" && only != kind {
			continue
		}
		results = append(results, flood(t, "TestProcessOfTheCallback", resources, kind, callbackBurst, func(address string, isLarge bool) (int, error) {
			body := small
			if isLarge {
				body = large
			}
			return postCallback(t.Context(), client, address, body)
		}))
	}
	t.Log("\n" + floodTable(where, "signed callbacks", "1 MB", resources.Memory, results))
}

// signedCallback returns a pass of a batch, with a message of some length.
func signedCallback(message int) string {
	return fmt.Sprintf(`{"callbackRequest":{"bizExecOrderId":%q,"changeSceneKey":"s","defenseStageEnum":"POST","nodeId":"n",`+
		`"verdict":{"allFinish":true,"checkPass":true,"rules":[{"verdict":"PASS","name":"error rate","msg":%q}],"verdict":"pass"}},`+
		`"changeCheckType":"CHANGE_BATCH"}`, ft.OrderID, strings.Repeat("m", message))
}

func postCallback(ctx context.Context, client *http.Client, address, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+callbackPath, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	altershield.SignHeader(r.Header, altershield.DefaultHeaderPrefix, "breakwater", []byte(body), ft.Token, time.Now())
	response, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, nil
}

// TestProcessOfTheCallback is no test: it is the main function of the process of the callback. Its API server
// and Broker are fakes in the same process.
func TestProcessOfTheCallback(t *testing.T) {
	if os.Getenv(floodRole) != "TestProcessOfTheCallback" {
		t.Skip("a process of a flood")
	}
	cluster := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	cluster.Configure("http://server.example.com", ft.Token)
	batches, err := callback.NewBatches(cluster.Change)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := callback.New(callback.Options{
		Change: cluster.Change, Batches: batches, Server: functions.NewReplicaClientSource(cluster.Kube, 1),
		Broker: &eventstest.Recorder{}, Signer: ft.Keys(), Clock: clock.RealClock{}, Meter: noop.Meter{},
	})
	fmt.Println(listener.Addr())
	if err := process.Serve(t.Context(), listener, "callback", process.Program{
		Handler: handler, Background: []func(context.Context) error{batches.Run},
	}); err != nil {
		t.Fatal(err)
	}
}
