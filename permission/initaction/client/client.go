package client

import (
	"bytes"
	"context"
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
	// first and last are the pauses between two tries: short at first, because
	// the network of a pod that only starts may take a moment.
	minPause = 100 * time.Millisecond
	maxPause = 15 * time.Second
	// silence is how long the server may say nothing. It sends a line feed every
	// few seconds, so a longer one means that it is gone.
	idleTimeout = time.Minute
	// maxAnswer bounds what is read of an answer, line feeds included.
	maxResponse = 64 << 10
)

// Result is what the container ends with.
type Result struct {
	Code int
	// Words are the last ones: for the log and the termination message.
	Message string
}

// Client asks the server until it decides.
type Client struct {
	Config
	// HTTP sends the request. It needs no timeout of its own.
	HTTP *http.Client
	// Pause waits between two tries, and returns early when ctx ends.
	Sleep func(ctx context.Context, d time.Duration)
	// Log gets a line for each try that decided nothing.
	Log io.Writer
}

// New returns a Client of the real world.
func New(c Config, log io.Writer) *Client {
	dial := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	return &Client{
		Config: c, Log: log,
		HTTP:  &http.Client{Transport: &http.Transport{DialContext: dial.DialContext, TLSHandshakeTimeout: 10 * time.Second}},
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

// Run asks until everything was granted or something denied, or the round is
// over. With restartPolicy Never a round that is over is followed by the next
// one: the pod would be lost otherwise.
func (c *Client) Run(ctx context.Context) Result {
	for {
		result, again := c.round(ctx)
		if !again || !c.RestartNever || ctx.Err() != nil {
			return result
		}
		_, _ = fmt.Fprintln(c.Log, result.Message)
	}
}

// round is at most Deadline long; again says that the next one may help.
func (c *Client) round(parent context.Context) (result Result, again bool) {
	ctx, cancel := context.WithTimeout(parent, c.Deadline)
	defer cancel()
	words, wait := "nothing was tried", minPause
	for ctx.Err() == nil {
		answer, err := c.post(ctx)
		switch {
		case err == nil && answer.State == protocol.Granted:
			return Result{protocol.ExitGranted, formatAnswer(answer)}, false
		case err == nil && answer.State == protocol.Denied:
			return Result{protocol.ExitDenied, formatAnswer(answer)}, false
		case ctx.Err() != nil:
		case err != nil:
			words = err.Error()
		default:
			words = formatAnswer(answer)
		}
		if ctx.Err() != nil {
			break
		}
		_, _ = fmt.Fprintln(c.Log, words)
		if err == nil && answer.State == protocol.Waiting {
			wait = minPause // it was heard, and is to come again
		}
		c.Sleep(ctx, wait/2+rand.N(wait/2+1))
		wait = min(2*wait, maxPause)
	}
	return Result{protocol.ExitDeadline, fmt.Sprintf("not authorized within %s: %s", c.Deadline, words)}, true
}

// try is one POST.
func (c *Client) post(ctx context.Context) (protocol.Answer, error) {
	token, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return protocol.Answer{}, fmt.Errorf("read the token: %w", err)
	}
	body, err := json.Marshal(protocol.Request{Sets: c.Sets})
	if err != nil {
		return protocol.Answer{}, err
	}
	// Whatever says nothing for too long is taken for dead.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(idleTimeout, func() { cancel(errIdle) })
	defer watch.Stop()
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
	err = json.NewDecoder(&activityReader{io.LimitReader(res.Body, maxResponse), watch}).Decode(&answer)
	switch {
	case res.StatusCode != http.StatusOK:
		// An error's state is never believed: who refuses has decided nothing.
		return protocol.Answer{}, fmt.Errorf("the server answered %s: %s", res.Status, formatAnswer(answer))
	case err != nil:
		return protocol.Answer{}, fmt.Errorf("read the answer: %w", idleOr(ctx, err))
	}
	return answer, nil
}

var errIdle = errors.New("the server said nothing for " + idleTimeout.String())

func idleOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		return cause
	}
	return err
}

// alive notes each sign of life.
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
	words := string(a.State)
	for _, more := range []string{a.Reason, a.Message} {
		if more != "" {
			words += ": " + more
		}
	}
	return words
}
