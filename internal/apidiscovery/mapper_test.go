package apidiscovery

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// server is a mapper that discovers the kinds of an API server when it is reset.
type server struct {
	meta.RESTMapper
	served []schema.GroupVersionKind
	resets int
}

func (s *server) Reset() {
	s.resets++
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v1"}})
	for _, kind := range s.served {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	s.RESTMapper = m
}

func TestAKindThatIsInstalledLaterIsFound(t *testing.T) {
	game := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Game"}
	s := &server{}
	s.Reset()
	now := time.Unix(1000, 0)
	m := NewMapper(s)
	m.now = func() time.Time { return now }
	for range 3 {
		if _, err := m.Mapping(game.GroupKind(), "v1"); !meta.IsNoMatchError(err) {
			t.Fatalf("an unknown kind: %v", err)
		}
	}
	if s.resets != 2 {
		t.Errorf("%d resets within %s, want 1 and the first", s.resets, resetInterval)
	}
	s.served = append(s.served, game)
	now = now.Add(resetInterval)
	found, err := m.Mapping(game.GroupKind(), "v1")
	if err != nil || found.Resource.Resource != "games" {
		t.Errorf("got %v, %v", found, err)
	}
	// The version of an ownerReference may not be served anymore.
	if found, err = m.Mapping(game.GroupKind(), "v1alpha1"); err != nil || found.Resource.Version != "v1" {
		t.Errorf("another version: got %v, %v", found, err)
	}
	if found, err = m.Mapping(game.GroupKind(), ""); err != nil || found.Resource.Version != "v1" {
		t.Errorf("no version: got %v, %v", found, err)
	}
}
