package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// longest is how long a call may take; the client asks again.
	maxCallDuration = 10 * time.Minute
	// beat is how often a call that lasts shows that it lives.
	heartbeatInterval = 10 * time.Second
	// addressTimeout is how long the kubelet may take to tell the API server the
	// address of a pod whose init container runs already.
	addressTimeout = 30 * time.Second
)

// authorize is the one call of an init container.
func (s *server) authorize(c echo.Context) error {
	var body protocol.Request
	if err := c.Bind(&body); err != nil {
		return problemf(http.StatusBadRequest, "BadRequest", "the body is not what an init-action-client sends")
	}
	who, err := s.authenticatePod(c)
	if err != nil {
		return err
	}
	woken, leave := s.Notifier.Subscribe(string(who.uid))
	defer leave()
	ctx, cancel := context.WithTimeout(c.Request().Context(), maxCallDuration)
	defer cancel()
	pod, err := s.verifyPod(ctx, c.Request().RemoteAddr, who, body.Sets, woken)
	if err != nil {
		return err
	}
	began := s.Clock.Now()
	stream := openStream(c, s)
	answer := s.newCall(pod, woken).run(ctx)
	stream.end(answer)
	s.metrics.ended(context.WithoutCancel(ctx), string(answer.State), answer.Reason, s.Clock.Since(began))
	return nil
}

// admit says whether the pod of the token may be authorized for the sets, from
// where the connection comes.
func (s *server) verifyPod(ctx context.Context, remote string, who caller, sets []string, woken <-chan struct{}) (*corev1.Pod, error) {
	pod, err := s.waitForIP(ctx, who, woken)
	if err != nil {
		return nil, err
	}
	if asked := podmeta.Sets(pod); len(asked) == 0 || pod.Labels[podmeta.Label] != podmeta.LabelRequired || !slices.Equal(asked, sets) {
		return nil, problemf(http.StatusForbidden, "OtherSets", "pod %s does not carry the init container for these permission sets", who)
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return nil, fmt.Errorf("read the source address: %w", err)
	}
	if !containsIP(podmeta.IPs(pod), host) {
		// What is cached may be that of a former sandbox.
		if pod, err = s.getPod(ctx, who); err != nil {
			return nil, err
		}
		if from, err := s.sourceIPs(ctx, pod); err != nil {
			return nil, err
		} else if !containsIP(from, host) {
			return nil, problemf(http.StatusForbidden, "ForeignAddress", "the request does not come from an address of pod %s", who)
		}
	}
	if isTerminating(pod) {
		return nil, problemf(http.StatusConflict, podmeta.ReasonPodTerminating, "pod %s is going", who)
	}
	return pod, nil
}

// from are the addresses that a pod's requests come from: its own, and for one
// with its node's network those of the node among its pods.
func (s *server) sourceIPs(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	ips := podmeta.IPs(pod)
	if !pod.Spec.HostNetwork {
		return ips, nil
	}
	on, err := s.nodes.get(ctx, pod.Spec.NodeName)
	return slices.Concat(ips, on.addresses, on.gateways), err
}

// withAddress waits until the API server knows an address of the pod.
func (s *server) waitForIP(ctx context.Context, who caller, woken <-chan struct{}) (*corev1.Pod, error) {
	patience := s.Clock.NewTimer(addressTimeout)
	defer patience.Stop()
	for {
		pod, err := s.Pods.Pods(who.Namespace).Get(who.Name)
		if err != nil || pod.UID != who.uid {
			if pod, err = s.getPod(ctx, who); err != nil {
				return nil, err
			}
		}
		if len(podmeta.IPs(pod)) > 0 || isTerminating(pod) {
			return pod, nil
		}
		select {
		case <-woken:
		case <-patience.C():
			return nil, problemf(http.StatusServiceUnavailable, podmeta.ReasonWaitingForPodIP, "pod %s has no address yet", who)
		case <-s.Draining:
			return nil, problemf(http.StatusServiceUnavailable, "Draining", "this replica is about to end")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *server) getPod(ctx context.Context, who caller) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod, err := s.Kube.CoreV1().Pods(who.Namespace).Get(ctx, who.Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) || (err == nil && pod.UID != who.uid) {
		return nil, problemf(http.StatusForbidden, "PodGone", "pod %s with UID %s is gone", who, who.uid)
	} else if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", who, err)
	}
	return pod, nil
}

// going says that the pod gets nothing any more.
func isTerminating(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// has compares addresses, not their spelling.
func containsIP(ips []string, host string) bool {
	want, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(ips, func(ip string) bool {
		a, err := netip.ParseAddr(ip)
		return err == nil && a.Unmap() == want.Unmap().WithZone("")
	})
}

// stream is an answer that takes its time: a line feed every few seconds, then
// JSON, to which line feeds before it mean nothing.
type stream struct {
	c         echo.Context
	done      chan struct{}
	heartbeat sync.WaitGroup
}

func openStream(c echo.Context, s *server) *stream {
	control := http.NewResponseController(c.Response())
	// The server's limits are for requests that are short.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	t := &stream{c: c, done: make(chan struct{})}
	ticker := s.Clock.NewTicker(heartbeatInterval)
	t.heartbeat.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				if _, err := c.Response().Write([]byte("\n")); err != nil {
					return // the client has gone; its context ends the call
				}
				c.Response().Flush()
			case <-t.done:
				return
			}
		}
	})
	return t
}

func (t *stream) end(a protocol.Answer) {
	close(t.done)
	t.heartbeat.Wait()
	_ = json.NewEncoder(t.c.Response()).Encode(a) // who does not read it has gone
	t.c.Response().Flush()
}
