package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

const (
	// maxCallDuration is how long a call may take. The client calls again.
	maxCallDuration = 10 * time.Minute
	// reasonReplaced is the reason of the answer to a call that a later one replaced.
	reasonReplaced = "Replaced"
	// reasonDraining and drainingMessage are those of the answer to a call of a replica that is shutting down.
	reasonDraining, drainingMessage = "Draining", "this replica is shutting down; retry"
	// reasonPodNotFound is the reason of a problem: the API server does not have the pod.
	reasonPodNotFound = "PodNotFound"
	// reasonSourceAddressMismatch is the reason of an answer: the request does not come from an address of the pod.
	reasonSourceAddressMismatch = "SourceAddressMismatch"
	// heartbeatInterval is the time between two line feeds in a response.
	heartbeatInterval = 10 * time.Second
	// addressTimeout is how long the kubelet may take to report the IP address of a
	// pod whose init container already runs.
	addressTimeout = 30 * time.Second
)

// errDraining is the answer to a new call of a replica that is shutting down, and to a reset. The client pauses before it
// retries an error, and the pause grows.
var errDraining = problemf(http.StatusServiceUnavailable, reasonDraining, drainingMessage)

func (s *server) draining() bool {
	select {
	case <-s.Draining:
		return true
	default:
		return false
	}
}

// authorize handles the call of an init container.
func (s *server) authorize(c echo.Context) error {
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err // the body is too large, or the connection failed
	}
	var body protocol.Request
	if json.Unmarshal(raw, &body) != nil {
		return problemf(http.StatusBadRequest, "BadRequest", "the body is not a valid request of an init-action-client")
	}
	id, err := s.authenticatePod(c)
	if err != nil {
		return err
	}
	changed, unsubscribe := s.Notifier.Subscribe(string(id.uid))
	defer unsubscribe()
	ctx, cancel := context.WithTimeout(c.Request().Context(), maxCallDuration)
	defer cancel()
	ctx, end := s.calls.begin(ctx, id.uid)
	defer end()
	source, _, err := net.SplitHostPort(c.Request().RemoteAddr)
	if err != nil {
		return fmt.Errorf("read the source address: %w", err)
	}
	pod, err := s.verifyPod(ctx, source, id, body.Sets, changed)
	if err != nil {
		return err
	}
	if s.draining() {
		return errDraining
	}
	start := s.Clock.Now()
	stream := openStream(c, s)
	defer stream.stop() // also after a panic: another request gets the context then
	answer := s.newCall(pod, source, changed).run(ctx)
	stream.end(answer)
	s.metrics.ended(context.WithoutCancel(ctx), string(answer.State), answer.Reason, s.Clock.Since(start))
	return nil
}

// verifyPod checks that the pod of the token requests these sets and that the
// connection comes from one of its addresses.
func (s *server) verifyPod(ctx context.Context, source string, id podIdentity, sets []string, changed <-chan struct{}) (*corev1.Pod, error) {
	pod, err := s.waitForIP(ctx, source, id, changed)
	if err != nil {
		return nil, err
	}
	if pod.Labels[podmeta.Label] != podmeta.LabelRequired {
		// The webhook does not see in a copy which sets the original got from its workload.
		return nil, problemf(http.StatusForbidden, "PermissionSetMismatch", "pod %s does not have label %s=%s; if it is a copy by kubectl debug, create it "+
			"with --keep-annotations, or without permissions, with --keep-init-containers=false", id, podmeta.Label, podmeta.LabelRequired)
	}
	if required := podmeta.Sets(pod); len(required) == 0 || !slices.Equal(required, sets) {
		return nil, problemf(http.StatusForbidden, "PermissionSetMismatch", "the init container of pod %s does not request these permission sets", id)
	}
	if !containsIP(s.currentIPs(ctx, pod, source), source) {
		// The cached address may be that of the previous sandbox.
		if pod, err = s.getPod(ctx, id); err != nil {
			return nil, err
		}
		if sources, err := s.sourceIPs(ctx, pod); err != nil {
			return nil, err
		} else if !containsIP(sources, source) {
			return nil, problemf(http.StatusForbidden, reasonSourceAddressMismatch, "the request comes from %s and not from an address of pod %s: %s", source, id, strings.Join(sources, ", "))
		}
	}
	if !workload.PodActive(pod) {
		return nil, problemf(http.StatusConflict, podmeta.ReasonPodTerminating, "pod %s is being deleted or is completed", id)
	}
	return pod, nil
}

// sourceIPs returns the possible source addresses of a pod's requests: its own, and
// with hostNetwork also those of its node.
func (s *server) sourceIPs(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	ips := podmeta.IPs(pod)
	if !pod.Spec.HostNetwork {
		return ips, nil
	}
	node, err := s.nodes.get(ctx, pod.Spec.NodeName, pod.Status.HostIP)
	return slices.Concat(ips, node.addresses, node.gateways), err
}

// waitForIP waits until the pod has an IP address, and returns the pod.
func (s *server) waitForIP(ctx context.Context, source string, id podIdentity, changed <-chan struct{}) (*corev1.Pod, error) {
	timer := s.Clock.NewTimer(addressTimeout)
	defer timer.Stop()
	for {
		pod, err := s.Pods.Pods(id.Namespace).Get(id.Name)
		if err != nil || pod.UID != id.uid {
			if pod, err = s.getPod(ctx, id); err != nil {
				return nil, err
			}
		}
		if len(s.currentIPs(ctx, pod, source)) > 0 || !workload.PodActive(pod) {
			return pod, nil
		}
		select {
		case <-changed:
		case <-timer.C():
			return nil, problemf(http.StatusServiceUnavailable, podmeta.ReasonWaitingForPodIP, "pod %s has no IP address yet", id)
		case <-s.Draining:
			return nil, errDraining
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errReplaced) {
				return nil, problemf(http.StatusConflict, reasonReplaced, "%v", errReplaced)
			}
			return nil, ctx.Err()
		}
	}
}

// getPod reads the pod of the token from the API server.
func (s *server) getPod(ctx context.Context, id podIdentity) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, apiServerTimeout)
	defer cancel()
	pod, err := s.Kube.CoreV1().Pods(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) || (err == nil && pod.UID != id.uid) {
		return nil, problemf(http.StatusForbidden, reasonPodNotFound, "pod %s with UID %s does not exist", id, id.uid)
	} else if err != nil {
		return nil, fmt.Errorf("read pod %s: %w", id, err)
	}
	return pod, nil
}

// containsIP reports whether ips contains host. It compares parsed addresses.
func containsIP(ips []string, host string) bool {
	want, err := netip.ParseAddr(host)
	return err == nil && slices.ContainsFunc(ips, func(ip string) bool {
		a, err := netip.ParseAddr(ip)
		return err == nil && a.Unmap() == want.Unmap().WithZone("")
	})
}

// stream is a response that sends a line feed at each heartbeat and then JSON.
// JSON parsers ignore the leading line feeds.
type stream struct {
	c echo.Context
	// stop ends the heartbeats, and waits for the last one.
	stop func()
}

func openStream(c echo.Context, s *server) *stream {
	control := http.NewResponseController(c.Response())
	// The server's timeouts are for short requests.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	done := make(chan struct{})
	var heartbeat sync.WaitGroup
	ticker := s.Clock.NewTicker(heartbeatInterval)
	heartbeat.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				if _, err := c.Response().Write([]byte("\n")); err != nil {
					return // the client disconnected; its context ends the call
				}
				c.Response().Flush()
			case <-done:
				return
			}
		}
	})
	return &stream{c, sync.OnceFunc(func() {
		close(done)
		heartbeat.Wait()
	})}
}

func (t *stream) end(a protocol.Answer) {
	t.stop()
	_ = json.NewEncoder(t.c.Response()).Encode(a) // fails only if the client disconnected
	t.c.Response().Flush()
}
