package functions

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Server reads how the AlterShield server is reached, anew for each event: two
// reads of single objects are cheaper than an informer that lives as long as
// one event, and a changed token counts at once. The client is kept while the
// configuration stays the same, and with it its connections and token bucket.
type Server struct {
	Kube    kubernetes.Interface
	clients altershield.Clients
}

// NewServer returns a Server that reads through kube; options are for tests.
func NewServer(kube kubernetes.Interface, options ...altershield.Option) *Server {
	return &Server{Kube: kube, clients: altershield.Clients{Options: options}}
}

// Config returns the configuration as it is now. Objects that are not there
// mean that no server and no token are configured. One that is there and makes
// no sense is a *ConfigError.
func (s *Server) Config(ctx context.Context) (altershield.Config, error) {
	core := s.Kube.CoreV1()
	config, err := present(core.ConfigMaps(v1alpha1.SystemNamespace).Get(ctx, altershield.ConfigMapName, metav1.GetOptions{}))
	if err != nil {
		return altershield.Config{}, fmt.Errorf("read %s: %w", altershield.ConfigMapName, err)
	}
	secret, err := present(core.Secrets(v1alpha1.SystemNamespace).Get(ctx, altershield.SecretName, metav1.GetOptions{}))
	if err != nil {
		return altershield.Config{}, fmt.Errorf("read %s: %w", altershield.SecretName, err)
	}
	parsed, err := altershield.ParseConfig(config, secret)
	if err != nil {
		return altershield.Config{}, &ConfigError{Err: err}
	}
	return parsed, nil
}

// ConfigError says that somebody has to mend the configuration. Its text holds
// no secret and may be shown.
type ConfigError struct {
	// Err names the keys and what is wrong with them.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string { return e.Err.Error() }

// Unwrap implements errors.Unwrap.
func (e *ConfigError) Unwrap() error { return e.Err }

// Client returns the client and its configuration, or a nil client where no
// server is configured.
func (s *Server) Client(ctx context.Context) (*altershield.Client, altershield.Config, error) {
	config, err := s.Config(ctx)
	if err != nil || !config.Configured() {
		return nil, config, err
	}
	return s.clients.For(config), config, nil
}

// present turns an object that is not there into nil.
func present[T *corev1.ConfigMap | *corev1.Secret](object T, err error) (T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}
