package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// maxMessage is the maximum length of a condition's message in bytes, because
// kubectl describe shows the whole message.
const maxMessage = 1000

// applicationMessage describes the permissions of an application that are not
// granted: the state of each, since when, the next call and whom to ask.
func applicationMessage(app api.Application) string {
	granted := 0
	var pending []string
	for _, p := range app.Permissions {
		if p.State == api.Granted {
			granted++
			continue
		}
		pending = append(pending, permissionMessage(p))
	}
	message := fmt.Sprintf("permission set %s, attempt %d", app.Set, app.Attempt)
	if n := len(app.Permissions); n > 1 {
		message += fmt.Sprintf(", %d of %d permissions granted", granted, n)
	}
	if len(pending) == 0 && app.Message != "" && app.State != api.Granted {
		pending = []string{app.Message}
	}
	if len(pending) > 0 {
		message += ": " + strings.Join(pending, "; ")
	}
	return message
}

func permissionMessage(p api.ApplicationPermission) string {
	message := fmt.Sprintf("permission %s is %s", p.Permission, p.State)
	if !p.Since.IsZero() {
		message += " since " + formatTime(p.Since)
	}
	if p.Message != "" {
		message += " (" + p.Message + ")"
	}
	if p.NextTry != nil {
		message += ", the next call is at " + formatTime(*p.NextTry)
	}
	if p.Owner != "" {
		message += ", ask " + p.Owner
	}
	return message
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// leakedGrantMessage describes a leaked grant to the pod's address. The pod that it was
// granted to may still exist, for example with another address.
func leakedGrantMessage(leak api.LeakedGrant) string {
	return fmt.Sprintf("address %s still has permission %s, which was granted to pod %s/%s and is not revoked; ask %s to revoke it",
		leak.IP, leak.Permission, leak.Namespace, leak.Pod, leak.Owner)
}

// breakerMessage says when the next attempt begins while the breaker is open;
// otherwise it returns an empty string.
func breakerMessage(o podbreaker.State, e podbreaker.Entry, next time.Time) string {
	switch o {
	case podbreaker.OpenDenied:
		return fmt.Sprintf("permissions were denied %d times; no new attempt begins until the breaker is reset", e.Denied)
	case podbreaker.OpenFailed:
		return fmt.Sprintf("%d attempts failed; the next attempt begins at %s", e.Failed, formatTime(next))
	}
	return ""
}

// waitingMessage is the message of the condition while the pod waits.
func waitingMessage(in Input, d Decision) string {
	var parts []string
	switch d.Reason {
	case podmeta.ReasonWaitingForPodIP:
		parts = append(parts, "the pod has no IP address yet; if this lasts, ask the platform team")
	case podmeta.ReasonWaitingForFinalizer:
		parts = append(parts, "the permission-controller has not added its finalizer to the pod yet; if this lasts, ask the platform team")
	case podmeta.ReasonPodTerminating:
		parts = append(parts, "the pod is being deleted or is completed; no permission is granted to it")
	case podmeta.ReasonBreakerOpenDenied:
		parts = append(parts, breakerMessage(podbreaker.OpenDenied, in.Breaker.Entry, d.Until)+"; last denial: "+in.Breaker.Entry.Message)
	case podmeta.ReasonBreakerOpenFailed:
		parts = append(parts, breakerMessage(podbreaker.OpenFailed, in.Breaker.Entry, d.Until)+"; last failure: "+in.Breaker.Entry.Message)
	case podmeta.ReasonPermissionRequested:
		if d.Action == WaitForBreaker {
			parts = append(parts, "another call of this pod requests the permissions; this call waits for it, until "+formatTime(d.Until)+" at the latest")
		}
	}
	for _, set := range in.Sets {
		app, ok := in.Applications[set]
		switch {
		case ok && app.State != api.Granted && d.Action != WaitForBreaker:
			parts = append(parts, applicationMessage(app))
		case !ok && in.ApplicationsKnown && len(parts) == 0:
			parts = append(parts, fmt.Sprintf("permission set %s was not requested yet", set))
		}
		for _, leak := range app.Leaked {
			parts = append(parts, leakedGrantMessage(leak))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "the init-action-server reads the state of "+joinSets(in.Sets)+" from the permission centre")
	}
	return text.Truncate(strings.Join(parts, "; "), maxMessage)
}
