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
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// The registry is this program, started as "registry <folder> <manifests>". The
// library keeps blobs on disk but manifests in memory. savedManifests saves the
// manifests too, so that the next cluster uses the same images. Instances share
// blobs and start with the manifests of the default instance, so that Knative
// is built once.

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
	if err := c.start(ctx, process{Name: "registry", Command: []string{binary, "registry", c.registryData(), c.manifestDir}}); err != nil {
		return err
	}
	return c.awaitHTTP(ctx, "registry", "http://"+c.registryHost()+"/v2/", 30*time.Second)
}

// serveRegistry listens on all addresses of the namespace: containerd and ko
// use localhost, the host uses the node's address.
func serveRegistry(data, own string) error {
	blobs := filepath.Join(data, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return err
	}
	quiet := log.New(io.Discard, "", 0)
	handler := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(quiet))
	saved := &savedManifests{next: handler, dir: filepath.Join(data, own)}
	if err := saved.replay(context.Background(), filepath.Join(data, "manifests"), saved.dir); err != nil {
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
		// Also save it by digest: a tag changes, but pods may use the image by digest.
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
	return writeFile(manifestPath(s.dir, m.Path), data, 0o644)
}

func manifestPath(dir, path string) string { return filepath.Join(dir, url.PathEscape(path)) }

// replay puts the saved manifests into the registry. The registry rejects an
// index whose manifests it does not have, so replay retries rejected manifests
// as long as others are accepted.
func (s *savedManifests) replay(ctx context.Context, dirs ...string) error {
	newest := map[string]savedManifest{} // by path; a later folder wins
	for _, dir := range dirs {
		saved, err := readManifests(dir)
		if err != nil {
			return err
		}
		maps.Copy(newest, saved)
	}
	left := slices.Collect(maps.Values(newest))
	for before := -1; len(left) != before; {
		before = len(left)
		var rejected []savedManifest
		for _, m := range left {
			r := httptest.NewRequestWithContext(ctx, http.MethodPut, m.Path, bytes.NewReader(m.Body))
			r.Header.Set("Content-Type", m.ContentType)
			answer := httptest.NewRecorder()
			s.next.ServeHTTP(answer, r)
			if answer.Code != http.StatusCreated {
				rejected = append(rejected, m)
			}
		}
		left = rejected
	}
	for _, m := range left {
		fmt.Fprintf(os.Stderr, "manifest not restored: %s\n", m.Path)
	}
	return nil
}

// readManifests returns the saved manifests of a folder, by path.
func readManifests(dir string) (map[string]savedManifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	saved := map[string]savedManifest{}
	for _, e := range entries {
		var m savedManifest
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil && json.Unmarshal(data, &m) == nil && !strings.Contains(e.Name(), partSuffix) {
			saved[m.Path] = m
		}
	}
	return saved, nil
}
