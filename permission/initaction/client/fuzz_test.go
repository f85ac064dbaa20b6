package client

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

type answering func() *http.Response

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a(), nil }

// FuzzRun reads answers of the init-action-server. Only a 200 whose first JSON value has
// the state Granted starts the app containers, and the message is bounded.
func FuzzRun(f *testing.F) {
	f.Add(200, "\n\n{\"state\":\"Granted\"}\n")
	f.Add(200, "\n{\"state\":\"Denied\",\"reason\":\"PermissionDenied\",\"message\":\"ask team-a\"}")
	f.Add(403, `{"state":"Granted"}`)
	f.Add(200, `{"state":"granted"}`)
	f.Add(200, `{"STATE":"Granted","state":null}`)
	f.Add(200, `{"state":"Waiting"}{"state":"Granted"}`)
	f.Add(200, strings.Repeat("\n", maxResponse)+`{"state":"Granted"}`)
	f.Add(500, `{"message":"`+strings.Repeat("m", 20_000)+`"}`)
	f.Add(200, `{"state":"Granted"`)
	token := filepath.Join(f.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, body string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := New(Config{URL: "http://server.invalid", Sets: []string{"a"}, TokenFile: token, Deadline: time.Minute}, io.Discard)
		c.HTTP = &http.Client{Transport: answering(func() *http.Response {
			return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		})}
		c.Sleep = func(context.Context, time.Duration) { cancel() } // one call
		result := c.Run(ctx)
		switch result.Code {
		case protocol.ExitGranted, protocol.ExitDenied:
			state := map[int]protocol.State{protocol.ExitGranted: protocol.Granted, protocol.ExitDenied: protocol.Denied}[result.Code]
			if status != http.StatusOK || !strings.HasPrefix(result.Message, string(state)) || len(body) > 2*maxResponse && !strings.Contains(body[:maxResponse], string(state)) {
				t.Errorf("status %d, %.200q: %+v", status, body, result)
			}
		case protocol.ExitUndecided:
		default:
			t.Errorf("status %d, %.200q: %+v", status, body, result)
		}
		if len(result.Message) > 2*maxResponse {
			t.Errorf("a message of %d bytes", len(result.Message))
		}
	})
}
