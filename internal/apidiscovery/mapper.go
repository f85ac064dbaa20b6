package apidiscovery

import (
	"sync"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resetInterval is the minimum time between two resets of a Mapper, because discovery
// sends a request per API group.
const resetInterval = 30 * time.Second

// Mapper maps kinds to resources. For an unknown kind it repeats the discovery, which a mapper
// of client-go does only once in a process.
type Mapper struct {
	mapper meta.ResettableRESTMapper
	now    func() time.Time

	mu        sync.Mutex
	lastReset time.Time
}

// NewMapper returns a Mapper.
func NewMapper(mapper meta.ResettableRESTMapper) *Mapper {
	return &Mapper{mapper: mapper, now: time.Now}
}

// Mapping returns the resource of a kind: in the version, or in another one if the
// version is empty or not served anymore. The error is meta.IsNoMatchError for an
// unknown kind.
func (m *Mapper) Mapping(kind schema.GroupKind, version string) (*meta.RESTMapping, error) {
	found, err := m.mapping(kind, version)
	if meta.IsNoMatchError(err) && m.mayReset() {
		m.mapper.Reset()
		return m.mapping(kind, version)
	}
	return found, err
}

func (m *Mapper) mapping(kind schema.GroupKind, version string) (*meta.RESTMapping, error) {
	if version != "" {
		if found, err := m.mapper.RESTMapping(kind, version); !meta.IsNoMatchError(err) {
			return found, err
		}
	}
	return m.mapper.RESTMapping(kind)
}

// Read calls read, which maps a kind and reads an object of it. If the API server does not serve the
// resource, it repeats the discovery and calls read once more: a CRD may have stopped serving the
// version since.
func Read[T any](m *Mapper, read func() (T, error)) (T, error) {
	found, err := read()
	if !apierrs.IsNotFound(err) || IsObjectNotFound(err) {
		return found, err
	}
	if m.mayReset() {
		m.mapper.Reset()
	}
	return read()
}

// IsObjectNotFound reports whether the API server serves the resource and does not have the object.
// For a resource that it does not serve, its answer is also NotFound, but none of the API.
func IsObjectNotFound(err error) bool {
	return apierrs.IsNotFound(err) && !apierrs.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func (m *Mapper) mayReset() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if now.Sub(m.lastReset) < resetInterval {
		return false
	}
	m.lastReset = now
	return true
}
