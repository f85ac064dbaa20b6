package apidiscovery

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
