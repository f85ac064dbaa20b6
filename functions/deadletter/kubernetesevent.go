package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/replay"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// The extensions that a Broker adds to a dead letter.
const (
	extensionDestination = "knativeerrordest"
	extensionCode        = "knativeerrorcode"
)

// An outage produces hundreds of undelivered events. A write for each would add load to an
// overloaded API server, which stores a Kubernetes Event for an hour.
const (
	// eventInterval and eventBurst limit the Kubernetes Events that a process creates.
	eventInterval = 10 * time.Second
	eventBurst    = 50
	// maxShown bounds the Kubernetes Events in shown. A shared one stays for showAgainAfter, one that stores a CloudEvent
	// for storedFor: the API server deletes it then.
	maxShown       = 1024
	showAgainAfter = 10 * time.Minute
	storedFor      = time.Hour
)

// subscribers are the functions that have Triggers.
var subscribers = []string{"submit", "verdict", "report", "judge", "notify"}

var errRateLimited = errors.New("more Kubernetes Events than the limit")

// createEvent creates a Kubernetes Event on the object in the source of a CloudEvent. A
// CloudEvent that can be replayed gets a Kubernetes Event of its own, which stores it. All
// other CloudEvents of one object and type share one Kubernetes Event, which has none of
// their content. A Kubernetes Event counts once against the limit: an outage repeats wake-ups often, and anyone who may read
// a stored CloudEvent can send it again.
func (f *function) createEvent(ctx context.Context, e event.Event) error {
	if err := events.VerifySource(e); err != nil {
		return err
	}
	resource, namespace, name, err := parseSource(e.Source())
	if err != nil {
		return err
	}
	stored, notReplayable := replay.Encode(e)
	var data struct {
		UID string `json:"uid"`
	}
	_ = e.DataAs(&data) // it stays empty if the data has none
	key, remembered := strings.Join([]string{e.Type(), e.Source(), data.UID}, "\n"), showAgainAfter
	if notReplayable == nil {
		key, remembered = storedFact(e), storedFor
	}
	if _, shown := f.shown.Get(key); shown {
		return nil // the metric counts it
	}
	if !f.limiter.AllowN(f.clock.Now(), 1) {
		return errRateLimited
	}
	err = f.create(ctx, e, stored, resource, namespace, name)
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		f.shown.Add(key, nil, remembered)
	}
	return err
}

// create creates the Kubernetes Event, which has no content of the CloudEvent if stored is empty.
func (f *function) create(ctx context.Context, e event.Event, stored string, resource schema.GroupVersionResource, namespace, name string) error {
	object, err := f.dynamic.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read %s %s/%s: %w", resource.Resource, namespace, name, err)
	}
	now := metav1.NewTime(f.clock.Now())
	created := &corev1.Event{
		ObjectMeta: objectMeta(object, e, stored),
		InvolvedObject: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: namespace, Name: name, UID: object.GetUID(),
		},
		Reason:         v1alpha1.ReasonEventUndelivered,
		Message:        message(e),
		Type:           corev1.EventTypeWarning,
		Source:         corev1.EventSource{Component: "deadletter"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: v1alpha1.GroupName + "/deadletter",
	}
	_, err = f.kube.CoreV1().Events(namespace).Create(ctx, created, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// objectMeta returns the name of a Kubernetes Event, which is the same for a repeated dead letter,
// and the annotation that stores the event; stored is empty if it cannot be replayed.
func objectMeta(object metav1.Object, e event.Event, stored string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: object.GetNamespace()}
	fact := e.Type()
	if stored != "" {
		m.Annotations = map[string]string{v1alpha1.CloudEventAnnotation: stored}
		fact = storedFact(e)
	}
	m.Name = v1alpha1.LabelValue(object.GetName()) + "." + hash(string(object.GetUID()), fact)
	return m
}

// storedFact identifies a CloudEvent that is stored; a replay is another one.
func storedFact(e event.Event) string {
	replayOf, _ := e.Extensions()[eventsigning.ReplayExtension].(string)
	return strings.Join([]string{e.Type(), e.ID(), replayOf}, "\n")
}

// message returns the event's type, and the function and its status if they are known.
func message(e event.Event) string {
	extensions := e.Extensions()
	text := fmt.Sprintf("event %s could not be delivered", e.Type())
	to, _ := extensions[extensionDestination].(string)
	if u, err := url.Parse(to); err == nil {
		if name, _, _ := strings.Cut(u.Host, "."); slices.Contains(subscribers, name) {
			text += " to " + name
		}
	}
	if code, err := strconv.Atoi(fmt.Sprint(extensions[extensionCode])); err == nil && http.StatusText(code) != "" {
		text += fmt.Sprintf(": status %d", code)
	}
	return text
}

// parseSource parses the path of a namespaced object:
// /apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>, or
// /api/<version>/... for the core group.
func parseSource(source string) (resource schema.GroupVersionResource, namespace, name string, err error) {
	parts := strings.Split(strings.TrimPrefix(source, "/"), "/")
	if len(parts) == 6 && parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
	}
	if len(parts) != 7 || parts[0] != "apis" || parts[3] != "namespaces" || parts[4] == "" || parts[6] == "" {
		return resource, "", "", fmt.Errorf("source %q is not the path of a namespaced object", source)
	}
	return schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[5]}, parts[4], parts[6], nil
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}
