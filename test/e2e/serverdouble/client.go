package serverdouble

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

// Client is a client of the installed double. Use New; the zero value is not
// usable.
//
// Answers are set per namespace, so that tests of different namespaces run in
// parallel. Rules of parallel tests must not count (nth, times): the double resets its
// counts when any rule changes.
type Client struct {
	http *http.Client

	mu     sync.Mutex
	checks map[string][]double.CheckRule
	faults map[string][]double.FaultRule
	// secondFinish is a rate for all namespaces.
	secondFinish float64
}

// New returns a client of the double at URL. A nil client is
// http.DefaultClient.
func New(client *http.Client) *Client {
	if client == nil {
		client = http.DefaultClient
	}
	return &Client{http: client, checks: map[string][]double.CheckRule{}, faults: map[string][]double.FaultRule{}}
}

// SetChecks sets the double's answers to checks of a namespace, in the order of
// the rules. Without a rule a check passes at once.
func (c *Client) SetChecks(ctx context.Context, namespace string, rules ...double.CheckRule) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].Match.Step == "ORDER" {
			rules[i].Match.Order = within(namespace) // an order has no other reference to its namespace
			continue
		}
		rules[i].Match.Namespace = namespace
	}
	c.checks[namespace] = rules
	return c.put(ctx)
}

// SetFaults sets the calls of a namespace that fail.
func (c *Client) SetFaults(ctx context.Context, namespace string, rules ...double.FaultRule) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Order = within(namespace)
	}
	c.faults[namespace] = rules
	return c.put(ctx)
}

// SetSecondFinish sets the rate, from 0 to 1, of second finishes that the double calls back
// again, for all namespaces.
func (c *Client) SetSecondFinish(ctx context.Context, rate float64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secondFinish = rate
	return c.put(ctx)
}

// within returns the substring that only order ids of a namespace contain.
func within(namespace string) string { return "/" + namespace + "/" }

func (c *Client) put(ctx context.Context) error {
	s := double.Script{SecondFinish: c.secondFinish}
	for _, rules := range c.checks {
		s.Checks = append(s.Checks, rules...)
	}
	for _, rules := range c.faults {
		s.Faults = append(s.Faults, rules...)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write the script: %w", err)
	}
	return c.do(ctx, http.MethodPut, "/double/script", raw, nil)
}

// Log returns the calls and callbacks of a namespace at the double.
func (c *Client) Log(ctx context.Context, namespace string) (double.Log, error) {
	var log double.Log
	err := c.do(ctx, http.MethodGet, "/double/log?order="+url.QueryEscape(within(namespace)), nil, &log)
	return log, err
}

// OrderLog returns the calls, callbacks and nodes of one order at the double.
func (c *Client) OrderLog(ctx context.Context, order string) (double.Log, []double.Node, error) {
	var log double.Log
	var nodes []double.Node
	query := "?order=" + url.QueryEscape(order)
	if err := c.do(ctx, http.MethodGet, "/double/log"+query, nil, &log); err != nil {
		return log, nil, err
	}
	err := c.do(ctx, http.MethodGet, "/double/nodes"+query, nil, &nodes)
	return log, nodes, err
}

// Reset deletes all answers, faults and logs of the double.
func (c *Client) Reset(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.checks)
	clear(c.faults)
	c.secondFinish = 0
	return c.do(ctx, http.MethodDelete, "/double", nil, nil)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("call the double: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("call the double: %w", err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the double answered %s %s with %s: %s", method, path, response.Status, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}
