package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The objects of the configuration, in v1alpha1.SystemNamespace, and their keys.
const (
	ConfigName    = "config-notify"
	SecretName    = "notify-webhook"
	templateKey   = "template"
	perMinuteKey  = "messages-per-minute"
	urlKey        = "url"
	maxPerMinute  = 600
	dfltPerMinute = 20
)

// DefaultTemplate is the template of a message. The manifest has the same.
const DefaultTemplate = `{{.Kind}} {{.Namespace}}/{{.Workload}}: release {{.Verb}}{{with .Reason}} ({{.}}){{end}}{{with .Message}}: {{.}}{{end}}{{with .User}}, by {{.}}{{end}}`

// Config is the configuration of the function.
type Config struct {
	// URL is the address of the webhook and a secret; empty if there is none.
	URL string
	// Template is the template of a message.
	Template *template.Template
	// PerMinute is the rate of messages, after the first burst that follows a pause.
	PerMinute int
	// Invalid says why a value of the ConfigMap is invalid, so that its default is used.
	Invalid error
}

// ReadConfig reads the configuration. Missing objects and keys mean the defaults.
func ReadConfig(ctx context.Context, core corev1client.CoreV1Interface) (Config, error) {
	secret, err := core.Secrets(v1alpha1.SystemNamespace).Get(ctx, SecretName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Config{}, fmt.Errorf("get Secret %s: %w", SecretName, err)
	}
	config, err := core.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, ConfigName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return Config{}, fmt.Errorf("get ConfigMap %s: %w", ConfigName, err)
	}
	return parseConfig(string(secret.Data[urlKey]), config.Data)
}

// parseConfig returns an error for an invalid URL, which has no default. The error does not have
// the URL.
func parseConfig(address string, data map[string]string) (Config, error) {
	c := Config{URL: address, PerMinute: dfltPerMinute}
	if u, err := url.Parse(address); address != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		return c, fmt.Errorf("key %s of Secret %s is not an http or https URL", urlKey, SecretName)
	}
	c.Template = defaultTemplate()
	if text := data[templateKey]; text != "" {
		parsed, err := template.New(templateKey).Parse(text)
		if err == nil {
			// The template is executed once here: an unknown field is an error for each event, also for one that needs no
			// such field.
			_, err = render(parsed, sample())
		}
		if err != nil {
			c.Invalid = invalidTemplate(err)
		} else {
			c.Template = parsed
		}
	}
	if text := data[perMinuteKey]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPerMinute {
			c.Invalid = errors.Join(c.Invalid, fmt.Errorf("key %s of ConfigMap %s: %q is not a number from 1 to %d", perMinuteKey, ConfigName, text, maxPerMinute))
		} else {
			c.PerMinute = n
		}
	}
	return c, nil
}

func defaultTemplate() *template.Template {
	return template.Must(template.New(templateKey).Parse(DefaultTemplate))
}

func invalidTemplate(err error) error {
	return fmt.Errorf("key %s of ConfigMap %s: %w", templateKey, ConfigName, err)
}
