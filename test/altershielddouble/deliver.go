package altershielddouble

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
)

// contentType is the exact value of the server. It is not a valid media type.
const contentType = "application/json;UTF-8"

// deliver posts one callback and logs it.
func (d *Double) deliver(ctx context.Context, c *check, m message) {
	entry := CallbackEntry{
		Sent: d.options.Clock.Now(), Order: c.node.order.biz, Node: m.data.NodeID, Stage: c.stage,
		Verdict: m.data.Verdict, As: c.behaviour.As, URL: c.url,
	}
	if entry.As == "" {
		entry.As = asJSON
	}
	request, body, err := c.request(ctx, m)
	entry.Body = string(body)
	n := d.recordSending(c, entry)
	if err != nil {
		entry.Error = err.Error()
		d.recordCallback(n, entry)
		return
	}
	d.signTo(request.Header, c.node.order.platform, body, entry.Sent.Add(c.behaviour.Skew.Duration), c.behaviour.BadSignature)
	entry.Status, err = d.post(request)
	if err != nil {
		entry.Error = err.Error()
	}
	entry.Done = d.options.Clock.Now()
	d.recordCallback(n, entry)
}

// post returns the status of the response and discards its body.
func (d *Double) post(request *http.Request) (int, error) {
	ctx, cancel := context.WithTimeout(request.Context(), callbackTimeout)
	defer cancel()
	response, err := d.options.HTTP.Do(request.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }() // the body was discarded
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, err
}

// request encodes a message and returns the request and the signed body.
func (c *check) request(ctx context.Context, m message) (*http.Request, []byte, error) {
	if c.behaviour.BadBody != "" {
		return jsonRequest(ctx, c.url, []byte(c.behaviour.BadBody))
	}
	if c.behaviour.As == "" || c.behaviour.As == asJSON {
		return jsonRequest(ctx, c.url, m.json())
	}
	e, err := m.event()
	if err != nil {
		return nil, nil, fmt.Errorf("create the event: %w", err)
	}
	request, err := eventRequest(ctx, c.url, c.behaviour.As, e)
	if err != nil {
		return nil, nil, fmt.Errorf("write the event: %w", err)
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the event: %w", err)
	}
	setBody(request, body)
	return request, body, nil
}

func jsonRequest(ctx context.Context, url string, body []byte) (*http.Request, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Content-Type", contentType)
	setBody(request, body)
	return request, body, nil
}

func eventRequest(ctx context.Context, url, mode string, e cloudevents.Event) (*http.Request, error) {
	if mode == asBatched {
		return cehttp.NewHTTPRequestFromEvents(ctx, url, []cloudevents.Event{e})
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, err
	}
	encoding := binding.WithForceBinary(ctx)
	if mode == asStructured {
		encoding = binding.WithForceStructured(ctx)
	}
	return request, cehttp.WriteRequest(encoding, binding.ToMessage(&e), request)
}

func setBody(request *http.Request, body []byte) {
	request.Body = io.NopCloser(bytes.NewReader(body))
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	request.ContentLength = int64(len(body))
}
