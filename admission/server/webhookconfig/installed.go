package webhookconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// InstalledAnnotation of a MutatingWebhookConfiguration holds the time when each of its webhooks
// got its first path, as a JSON object of times by webhook name. Before, the API server could not
// call the webhook. The times of managedFields are later: they change with each new path.
const InstalledAnnotation = "app.ops.cloud.alipay.com/installed"

// InstalledAt returns the time when a webhook of the configuration got its first path; false if
// it is not recorded.
func InstalledAt(config *admissionregistrationv1.MutatingWebhookConfiguration, webhook string) (time.Time, bool) {
	at, known := installedTimes(config)[webhook]
	return at, known
}

// installedTimes returns the recorded times by webhook name; none if the annotation is invalid.
func installedTimes(config *admissionregistrationv1.MutatingWebhookConfiguration) map[string]time.Time {
	var times map[string]time.Time
	if config == nil || json.Unmarshal([]byte(config.Annotations[InstalledAnnotation]), &times) != nil {
		return nil
	}
	return times
}

// nextInstalledTimes returns the times for the webhooks that a configuration has now: those in
// before, and now for webhooks that are new.
func nextInstalledTimes(before map[string]time.Time, webhooks []string, now time.Time) map[string]time.Time {
	next := make(map[string]time.Time, len(webhooks))
	for _, name := range webhooks {
		at, known := before[name]
		if !known {
			at = now.UTC().Truncate(time.Second)
		}
		next[name] = at
	}
	return next
}

// installed returns the value of InstalledAnnotation for the webhooks that a configuration has
// now, and whether it differs from the recorded one. It is empty if nothing is to be recorded.
func (r *Reconciler) installed(kind, name string, webhooks []string) (value string, changed bool, err error) {
	if kind != mutating || !r.RecordInstallation {
		return "", false, nil
	}
	config, err := r.Mutating.Get(name)
	if err != nil && !apierrs.IsNotFound(err) {
		return "", false, fmt.Errorf("get %s/%s: %w", kind, name, err)
	}
	before := installedTimes(config)
	next := nextInstalledTimes(before, webhooks, r.Clock.Now())
	raw, err := json.Marshal(next)
	return string(raw), !maps.EqualFunc(before, next, time.Time.Equal), err
}
