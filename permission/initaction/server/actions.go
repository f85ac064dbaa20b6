package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// preparationTimeout bounds a preparation.
const preparationTimeout = 10 * time.Second

// readApplications reads the applications of the pod from the centre.
func (c *call) readApplications(ctx context.Context) error {
	began := c.Clock.Now()
	all, err := c.Centre.ListByPod(ctx, c.Settings().Cluster, string(c.pod.UID))
	if delay := centreclient.RetryAfter(err); delay > 0 {
		return c.wait(ctx, c.Clock.Now().Add(delay))
	} else if err != nil {
		return err
	}
	c.input.Applications, c.input.OtherIPs, c.input.ApplicationsKnown = map[string]api.Application{}, false, true
	c.applicationsRead = began
	for _, app := range all {
		switch {
		case slices.Equal(app.PodIPs, c.input.IPs):
			c.input.Applications[app.Set] = app
		case app.State != api.Revoking && app.State != api.Revoked && app.State != api.Leaked:
			c.input.OtherIPs = true
		}
	}
	return nil
}

// prepare runs the preparations, which come before the request of permissions.
func (c *call) prepare(ctx context.Context) error {
	request, err := c.applicationRequest(ctx, "")
	if err != nil {
		return err
	}
	for _, p := range c.Preparations {
		limited, cancel := context.WithTimeout(ctx, preparationTimeout)
		err := p.Run(limited, request)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name(), err)
		}
	}
	c.input.Prepared = true
	return nil
}

// applicationRequest returns the request for a set. The fields of the pod are read from
// the API server.
func (c *call) applicationRequest(ctx context.Context, set string) (api.ApplicationRequest, error) {
	node, err := c.nodes.get(ctx, c.pod.Spec.NodeName, c.pod.Status.HostIP)
	if err != nil {
		return api.ApplicationRequest{}, err
	}
	return api.ApplicationRequest{
		Cluster: c.Settings().Cluster, Namespace: c.pod.Namespace, Pod: c.pod.Name, PodUID: string(c.pod.UID),
		PodIPs: c.input.IPs, Node: c.pod.Spec.NodeName, NodeIPs: node.addresses, HostNetwork: c.pod.Spec.HostNetwork,
		ServiceAccount: c.pod.Spec.ServiceAccountName, Set: set,
	}, nil
}

// revokeOtherIPs revokes the grants of the pod's previous sandbox, because another
// pod may have its address now.
func (c *call) revokeOtherIPs(ctx context.Context) error {
	// The cached addresses may be those of the previous sandbox, while another replica already requests permissions
	// for the present ones.
	pod, err := c.getPod(ctx, c.identity())
	if err != nil {
		return err
	}
	c.pod = pod
	if !slices.Equal(c.currentIPs(ctx, pod, c.source), c.input.IPs) {
		return nil // refresh begins again with the present addresses
	}
	_, err = c.Centre.Revoke(ctx, api.RevokeRequest{Cluster: c.Settings().Cluster, PodUID: string(c.pod.UID), KeepIPs: c.input.IPs})
	if err != nil {
		return fmt.Errorf("revoke the grants of the pod's previous IP addresses: %w", err)
	}
	c.input.OtherIPs = false
	return nil
}

// acquireBreaker asks the breaker whether an attempt may begin.
func (c *call) acquireBreaker(ctx context.Context) error {
	d, err := c.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.Acquire, Key: c.key, UID: c.pod.UID, Now: c.Clock.Now(), Holder: c.id})
	if err != nil {
		return err
	}
	c.input.BreakerAcquired = d.State == podbreaker.MayBegin
	if !c.input.BreakerAcquired {
		c.input.ApplicationsKnown = false // the holder of the breaker changes them
	}
	c.lastDecision = &d
	return nil
}

// apply requests a set from the centre, which begins an attempt.
func (c *call) apply(ctx context.Context, set string) error {
	request, err := c.applicationRequest(ctx, set)
	if err != nil {
		return err
	}
	app, err := c.Centre.Apply(ctx, request)
	if delay := centreclient.RetryAfter(err); delay > 0 {
		return c.wait(ctx, c.Clock.Now().Add(delay))
	} else if err != nil {
		return fmt.Errorf("permission set %s: %w", set, err)
	}
	c.input.Applications[set] = app
	c.reporter.requested(ctx, app)
	return nil
}

// poll waits until an application, or the situation of the call, changes.
func (c *call) poll(ctx context.Context, set string) error {
	app := c.input.Applications[set]
	wait := pollTimeout
	if c.reporter.pending {
		wait = shortPollTimeout
	}
	pollCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	type polled struct {
		app api.Application
		err error
	}
	answers := make(chan polled, 1)
	go func() {
		app, err := c.Centre.Wait(pollCtx, app.ID, app.Version, wait)
		answers <- polled{app, err}
	}()
	a, received, err := receive(ctx, c, answers)
	if !received {
		return err
	}
	if delay := centreclient.RetryAfter(a.err); delay > 0 {
		return c.wait(ctx, c.Clock.Now().Add(delay))
	} else if a.err != nil {
		return a.err
	}
	c.input.Applications[set] = a.app
	if len(c.input.Sets) > 1 && c.Clock.Since(c.applicationsRead) >= pollTimeout {
		c.input.ApplicationsKnown = false // another set, which is not polled, may be decided
	}
	return nil
}

// recordFailure counts an attempt that was denied or failed and ends the call. If
// the attempt was counted before, by this or another replica, the call continues.
func (c *call) recordFailure(ctx context.Context, set string) (*protocol.Answer, error) {
	app := c.input.Applications[set]
	message := applicationMessage(app)
	d, err := c.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.RecordFailure, Key: c.key, UID: c.pod.UID, Now: c.Clock.Now(), Jitter: c.Random(),
		Application: app.ID, Attempt: app.Attempt, Denied: app.State == api.Denied, Message: message})
	if err != nil {
		return nil, err
	}
	c.input.BreakerAcquired = false
	if !d.Counted {
		c.lastDecision = &d
		return nil, nil
	}
	state := protocol.Failed
	if app.State == api.Denied {
		state = protocol.Denied
		c.reporter.denied(ctx, app)
	}
	c.reporter.failed(ctx, reasonForState(app.State), message, d)
	return &protocol.Answer{State: state, Reason: reasonForState(app.State), Message: message}, nil
}

// complete closes the breaker, reports success and ends the call.
func (c *call) complete(ctx context.Context) (*protocol.Answer, error) {
	if c.input.Breaker.Exists {
		before := c.input.Breaker.Entry
		if _, err := c.Breaker.Do(ctx, podbreaker.Request{Operation: podbreaker.RecordSuccess, Key: c.key, UID: c.pod.UID, Now: c.Clock.Now()}); err != nil {
			return nil, err
		}
		c.reporter.closed(ctx, before, "")
	}
	message := c.reporter.granted(ctx, c.input, c.Clock.Since(c.start))
	return &protocol.Answer{State: protocol.Granted, Reason: podmeta.ReasonPermissionGranted, Message: message}, nil
}
