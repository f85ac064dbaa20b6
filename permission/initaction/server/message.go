package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// maxMessage is how long the message of a condition may be: it is shown whole by
// kubectl describe.
const maxMessage = 1000

// describe says of an application which permission is how far, since when, when
// it is tried again and whom to ask.
func applicationMessage(app api.Application) string {
	granted := 0
	var open []string
	for _, p := range app.Permissions {
		if p.State == api.Granted {
			granted++
			continue
		}
		open = append(open, permissionMessage(p))
	}
	words := fmt.Sprintf("set %s, attempt %d", app.Set, app.Attempt)
	if n := len(app.Permissions); n > 1 {
		words += fmt.Sprintf(", %d of %d permissions granted", granted, n)
	}
	if len(open) == 0 && app.Message != "" && app.State != api.Granted {
		open = []string{app.Message}
	}
	if len(open) > 0 {
		words += ": " + strings.Join(open, "; ")
	}
	return words
}

func permissionMessage(p api.ApplicationPermission) string {
	words := fmt.Sprintf("permission %s is %s", p.Permission, p.State)
	if !p.Since.IsZero() {
		words += " since " + formatTime(p.Since)
	}
	if p.Message != "" {
		words += " (" + p.Message + ")"
	}
	if p.NextTry != nil {
		words += ", next try " + formatTime(*p.NextTry)
	}
	if p.Owner != "" {
		words += ", ask " + p.Owner
	}
	return words
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// explain is the message of the condition while the pod waits.
func waitingMessage(f Facts, d Decision) string {
	var words []string
	switch d.Reason {
	case podmeta.ReasonWaitingForPodIP:
		words = append(words, "the pod has no address yet")
	case podmeta.ReasonWaitingForFinalizer:
		words = append(words, "the permission-controller has not put its finalizer on the pod yet")
	case podmeta.ReasonPodTerminating:
		words = append(words, "the pod is going; nothing is granted to it any more")
	case podmeta.ReasonBreakerOpenDenied:
		words = append(words, fmt.Sprintf("denied %d times: not asked for again until somebody resets it; last: %s",
			f.Breaker.Entry.Denied, f.Breaker.Entry.Message))
	case podmeta.ReasonBreakerOpenFailed:
		words = append(words, fmt.Sprintf("failed %d times: next try %s; last: %s",
			f.Breaker.Entry.Failed, formatTime(d.Until), f.Breaker.Entry.Message))
	}
	for _, set := range f.Sets {
		app, ok := f.Applications[set]
		switch {
		case ok && app.State != api.Granted && d.Action != WaitForBreaker:
			words = append(words, applicationMessage(app))
		case !ok && f.ApplicationsKnown && len(words) == 0:
			words = append(words, fmt.Sprintf("set %s was not asked for yet", set))
		}
		for _, leak := range app.Leaked {
			words = append(words, fmt.Sprintf("address %s still has permission %s of pod %s/%s, which is gone, ask %s",
				leak.IP, leak.Permission, leak.Namespace, leak.Pod, leak.Owner))
		}
	}
	if len(words) == 0 {
		words = append(words, "sets "+strings.Join(f.Sets, ", ")+" are looked up")
	}
	return text.Cut(strings.Join(words, "; "), maxMessage)
}
