package notify

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxMessage is the maximum size of a message in bytes. Slack shows about 4000 characters.
const maxMessage = 3000

// zeroWidthSpace is an invisible character that is part of no mention or link.
const zeroWidthSpace = "\u200b"

// message has the fields of a template. Its texts are escaped, so that text of a server or user can
// neither mention people nor write links.
type message struct {
	// Verb is suspended, failed or rolledback.
	Verb string
	// Kind and Workload are those of the workload, Release is the name of the ChangeWorkload.
	Namespace, Kind, Workload, Release string
	Version, Reason, Message, User     string
	Attempt                            int64
	// Pods, Passed and Failed are numbers of pods.
	Pods, Passed, Failed int32
}

func messageOf(d events.ChangeWorkload) message {
	return message{
		Verb: string(d.Verb), Namespace: d.Namespace, Kind: d.Workload.Kind, Workload: d.Workload.Name, Release: d.Name,
		Version: d.Version, Reason: escape(d.Reason), Message: escape(d.Message), User: escape(d.User),
		Attempt: d.Attempt, Pods: d.Counts.Pods, Passed: d.Counts.Passed, Failed: d.Counts.Failed,
	}
}

// sample returns a message that has all fields, so that a template can be tried that takes a part of one.
func sample() message {
	const version = "0123456789abcdef0123456789abcdef"
	return message{
		Verb: string(events.VerbSuspended), Namespace: "default", Kind: "Deployment", Workload: "web",
		Release: v1alpha1.ChangeWorkloadName("web", version), Version: version,
		Reason: v1alpha1.ReasonCheckFailed, Message: "pod web-1 failed its check: too many errors", User: "user@example.com",
		Attempt: 1, Pods: 3, Passed: 2, Failed: 1,
	}
}

// escape escapes the control characters of Slack, and adds a zero-width space to mentions and links.
// Mattermost and Rocket.Chat recognize @all, [text](address) and [text][reference], which have no control characters, and
// all systems make a link of an address with a scheme.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;",
		"@", "@"+zeroWidthSpace, "]", "]"+zeroWidthSpace, "://", ":"+zeroWidthSpace+"//").Replace(s)
}

// render executes a template; the result is truncated to maxMessage.
func render(t *template.Template, m message) (string, error) {
	var out limited
	if err := t.Execute(&out, m); err != nil && !errors.Is(err, errTooLong) {
		return "", fmt.Errorf("execute the template: %w", err)
	}
	return text.Truncate(out.String(), maxMessage), nil
}

var errTooLong = errors.New("the message is too long")

// limited ends a template that writes more than a message has.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len() > maxMessage {
		return 0, errTooLong
	}
	return l.Builder.Write(p)
}
