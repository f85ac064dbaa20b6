package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
)

// maxAnswer is the maximum size of an answer in bytes.
const maxAnswer = 1 << 20

// exchange is one call and its answer.
type exchange struct {
	action string
	body   []byte
	status int
	answer []byte
	// err is the error if there was no answer.
	err error
	// variant: a check sent the call, not the client.
	variant bool
}

// wire is the client's transport. It records all exchanges, so that checks can
// examine raw answers and repeat a call with changes.
type wire struct {
	mu   sync.Mutex
	seen []exchange
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Body = io.NopCloser(bytes.NewReader(body))
	e := exchange{action: path.Base(request.URL.Path), body: body, variant: request.Context().Value(variant{}) != nil}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		e.status = response.StatusCode
		e.answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		_ = response.Body.Close() // the body was read completely
		response.Body = io.NopCloser(bytes.NewReader(e.answer))
	}
	e.err = err
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, e)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// all returns the exchanges so far.
func (w *wire) all() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]exchange{}, w.seen...)
}

// last returns the client's last successful call of an action.
func (w *wire) last(action string) (exchange, error) {
	all := w.all()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].action == action && !all[i].variant && all[i].accepted() == nil {
			return all[i], nil
		}
	}
	return exchange{}, skip("%s was never answered with success", action)
}

// variant marks the context of calls by send.
type variant struct{}

// send posts a body unchanged, with the headers from sign.
func (w *wire) send(ctx context.Context, url string, body []byte, sign func(http.Header, []byte)) (exchange, error) {
	ctx = context.WithValue(ctx, variant{}, true)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return exchange{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	sign(request.Header, body)
	response, err := w.RoundTrip(request)
	if err != nil {
		return exchange{}, err
	}
	defer func() { _ = response.Body.Close() }() // it is in memory
	answer, err := io.ReadAll(response.Body)
	return exchange{action: path.Base(url), body: body, status: response.StatusCode, answer: answer}, err
}

// envelope is a parsed answer. It distinguishes missing fields from null.
type envelope struct {
	has     map[string]json.RawMessage
	success bool
	code    string
	msg     string
}

func (e exchange) envelope() (envelope, error) {
	out := envelope{}
	if err := json.Unmarshal(e.answer, &out.has); err != nil {
		return out, fmt.Errorf("%s was answered with %q, which is not a JSON object", e.action, head(e.answer))
	}
	var typed struct {
		Success    *bool   `json:"success"`
		ResultCode *string `json:"resultCode"`
		Msg        *string `json:"msg"`
	}
	if err := json.Unmarshal(e.answer, &typed); err != nil {
		return out, fmt.Errorf("%s was answered with %q: %w", e.action, head(e.answer), err)
	}
	if typed.Success == nil {
		return out, fmt.Errorf("%s was answered with %q, which has no field success", e.action, head(e.answer))
	}
	out.success = *typed.Success
	if typed.ResultCode != nil {
		out.code = *typed.ResultCode
	}
	if typed.Msg != nil {
		out.msg = *typed.Msg
	}
	return out, nil
}

// rejectedWith returns an error unless the answer is HTTP 200 with the code.
func (e exchange) rejectedWith(code string) error {
	if e.status != http.StatusOK {
		return fmt.Errorf("%s was answered with HTTP %d, not with code %s", e.action, e.status, code)
	}
	answer, err := e.envelope()
	if err != nil {
		return err
	}
	if answer.success || answer.code != code {
		return fmt.Errorf("%s was answered with success %t and code %q, not with %s: %s", e.action, answer.success, answer.code, code, answer.msg)
	}
	return nil
}

// accepted returns an error unless the answer is a success.
func (e exchange) accepted() error {
	answer, err := e.envelope()
	switch {
	case err != nil:
		return err
	case !answer.success || (answer.code != "" && answer.code != "000"):
		return fmt.Errorf("%s was rejected with code %q: %s", e.action, answer.code, answer.msg)
	}
	return nil
}

// edited returns the body with changed fields; nil removes a field.
func (e exchange) edited(fields map[string]any) ([]byte, error) {
	body := map[string]any{}
	if err := json.Unmarshal(e.body, &body); err != nil {
		return nil, err
	}
	for name, value := range fields {
		if value == nil {
			delete(body, name)
			continue
		}
		body[name] = value
	}
	return json.Marshal(body)
}

func head(b []byte) string { return string(b[:min(len(b), 120)]) }
