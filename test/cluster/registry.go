// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// The registry is this program itself, started as "registry <folder>". The library keeps
// blobs on disk but manifests in memory only; savedManifests keeps those too, because the
// images of one cluster serve the next.

// startRegistry runs a copy of this executable: "go run" deletes the original.
func (c *cluster) startRegistry(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	binary := c.in("bin", "breakwater-cluster")
	if err := writeFile(binary, data, 0o755); err != nil {
		return err
	}
	if err := c.start(process{Name: "registry", Command: []string{binary, "registry", c.registryData()}}); err != nil {
		return err
	}
	return c.awaitHTTP(ctx, "registry", "http://"+registryHost+"/v2/", 30*time.Second)
}

// serveRegistry listens on every address of the namespace: containerd and ko use
// localhost, the host uses the node's address.
func serveRegistry(data string) error {
	blobs := filepath.Join(data, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	handler := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(quiet))
	saved := &savedManifests{next: handler, dir: filepath.Join(data, "manifests")}
	if err := saved.replay(); err != nil {
		return err
	}
	server := &http.Server{Addr: ":" + registryPort, Handler: saved, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

type savedManifests struct {
	next http.Handler
	dir  string
	mu   sync.Mutex
}

type savedManifest struct {
	Path, ContentType string
	Body              []byte
}

func (s *savedManifests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
		s.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	s.next.ServeHTTP(answer, r)
	if answer.Code == http.StatusCreated {
		// By digest too: a tag moves on, and images that were deployed by digest remain.
		digest := path.Dir(r.URL.Path) + "/" + answer.Header().Get("Docker-Content-Digest")
		for _, p := range []string{digest, r.URL.Path} {
			if err := s.save(savedManifest{p, r.Header.Get("Content-Type"), body}); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

func (s *savedManifests) save(m savedManifest) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return writeFile(filepath.Join(s.dir, url.PathEscape(m.Path)), data, 0o644)
}

// replay gives the saved manifests back. An index is refused before the manifests that it
// lists, so refused ones are tried again for as long as others are accepted.
func (s *savedManifests) replay() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var left []savedManifest
	for _, e := range entries {
		var m savedManifest
		data, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if err == nil && json.Unmarshal(data, &m) == nil {
			left = append(left, m)
		}
	}
	for before := -1; len(left) != before; {
		before = len(left)
		var refused []savedManifest
		for _, m := range left {
			r := httptest.NewRequest(http.MethodPut, m.Path, bytes.NewReader(m.Body))
			r.Header.Set("Content-Type", m.ContentType)
			answer := httptest.NewRecorder()
			s.next.ServeHTTP(answer, r)
			if answer.Code != http.StatusCreated {
				refused = append(refused, m)
			}
		}
		left = refused
	}
	for _, m := range left {
		fmt.Fprintf(os.Stderr, "not restored: %s\n", m.Path)
	}
	return nil
}
