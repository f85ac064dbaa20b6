package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
)

const (
	// minPause and maxPause bound the pause between two requests. It is short at
	// first, because the network of a new pod may not be ready yet.
	minPause = 100 * time.Millisecond
	maxPause = 15 * time.Second
	// idleTimeout is how long the server may send nothing. It sends a line feed every
	// few seconds, so a longer silence means that the connection is dead.
	idleTimeout = time.Minute
	// maxResponse is the size limit of a response in bytes, including line feeds.
	maxResponse = 64 << 10
)

// Result is the result of the container.
type Result struct {
	// Code is the exit code.
	Code int
	// Message is the last log line and the termination message.
	Message string
}

// Client calls the server until it decides.
type Client struct {
	Config
	// HTTP sends the requests. It needs no timeout.
	HTTP *http.Client
	// Sleep waits between two requests, and returns early when ctx ends.
	Sleep func(ctx context.Context, d time.Duration)
	// Log receives a line for each undecided request.
	Log io.Writer
}

// New returns a Client that uses the network and the clock.
func New(c Config, log io.Writer) *Client {
	dial := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &Client{
		Config: c, Log: log,
		HTTP: &http.Client{Transport: &http.Transport{
			DialContext: dial.DialContext, TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		}},
		Sleep: sleep,
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Run calls the server until all permissions are granted, one is denied, or ctx ends. At the
// deadline of a round it begins the next one and does not return, because the exit of the
// container would count as a failure of its pod.
func (c *Client) Run(ctx context.Context) Result {
	for {
		result, decided := c.round(ctx)
		if decided {
			return result
		}
		if ctx.Err() != nil {
			return Result{protocol.ExitUndecided, fmt.Sprintf("%v before a decision, last result: %s", context.Cause(ctx), result.Message)}
		}
		_, _ = fmt.Fprintf(c.Log, "not authorized within %s, last result: %s\n", c.Deadline, result.Message)
	}
}

// round calls the server for at most Deadline. If the server has not decided by then, it returns false, and
// the message of the last call.
func (c *Client) round(parent context.Context) (result Result, decided bool) {
	ctx, cancel := context.WithTimeout(parent, c.Deadline)
	defer cancel()
	message, wait := "no request was sent", minPause
	if ctx.Err() == nil {
		message = "the server has not decided yet" // until the first result: a call lasts until a decision
	}
	for ctx.Err() == nil {
		answer, err := c.post(ctx)
		switch {
		case err == nil && answer.State == protocol.Granted:
			return Result{protocol.ExitGranted, formatAnswer(answer)}, true
		case err == nil && answer.State == protocol.Denied:
			return Result{protocol.ExitDenied, formatAnswer(answer)}, true
		case ctx.Err() != nil:
		case err != nil:
			message = err.Error()
		default:
			message = formatAnswer(answer)
		}
		if ctx.Err() != nil {
			break
		}
		_, _ = fmt.Fprintln(c.Log, message)
		if err == nil && answer.State == protocol.Waiting {
			wait = minPause // the server is reachable
		}
		c.Sleep(ctx, wait/2+rand.N(wait/2+1))
		wait = min(2*wait, maxPause)
	}
	return Result{protocol.ExitUndecided, message}, false
}

// post sends one request and returns the server's answer.
func (c *Client) post(ctx context.Context) (protocol.Answer, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return protocol.Answer{}, fmt.Errorf("read the token: %w", err)
	}
	body, err := json.Marshal(protocol.Request{Sets: c.Sets})
	if err != nil {
		return protocol.Answer{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer timer.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return protocol.Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := c.HTTP.Do(req)
	if err != nil {
		return protocol.Answer{}, idleOr(ctx, err)
	}
	defer func() { _ = res.Body.Close() }()
	var answer protocol.Answer
	err = json.NewDecoder(&activityReader{io.LimitReader(res.Body, maxResponse), timer}).Decode(&answer)
	switch {
	case res.StatusCode != http.StatusOK:
		// The state in an error response is ignored, because it is no decision.
		return protocol.Answer{}, fmt.Errorf("the server answered %s: %s", res.Status, formatAnswer(answer))
	case err != nil:
		return protocol.Answer{}, fmt.Errorf("read the response: %w", idleOr(ctx, err))
	}
	return answer, nil
}

var errIdle = errors.New("the server sent nothing for " + idleTimeout.String())

// idleOr returns errIdle if the idle timeout ended ctx, otherwise err.
func idleOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		return cause
	}
	return err
}

// activityReader restarts the idle timer at each read of data.
type activityReader struct {
	io.Reader
	timer *time.Timer
}

func (a *activityReader) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.timer.Reset(idleTimeout)
	}
	return n, err
}

func formatAnswer(a protocol.Answer) string {
	text := string(a.State)
	for _, part := range []string{a.Reason, a.Message} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}
