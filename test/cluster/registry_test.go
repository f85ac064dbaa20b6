// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serve starts a registry without anything in memory, like a new process.
func serve(t *testing.T, blobs string, own string, dirs ...string) string {
	t.Helper()
	saved := &savedManifests{next: registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0))), dir: own}
	if err := saved.replay(context.Background(), append(dirs, own)...); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.Handler(saved))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func reference(t *testing.T, s string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(s, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImagesSurviveARestartAndAreSharedWithOtherInstances(t *testing.T) {
	blobs, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	index, err := random.Index(64, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	host := serve(t, blobs, first)
	if err := remote.WriteIndex(reference(t, host+"/a:latest"), index); err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	digestAt := func(host string) v1.Hash {
		t.Helper()
		d, err := remote.Head(reference(t, host+"/a:latest"))
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest
	}
	if got := digestAt(serve(t, blobs, first)); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	other := serve(t, blobs, second, first)
	if got := digestAt(other); got != want {
		t.Errorf("in another instance: %s, want %s", got, want)
	}
	mine, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference(t, other+"/a:latest"), mine); err != nil {
		t.Fatal(err)
	}
	if got := digestAt(serve(t, blobs, first)); got != want {
		t.Errorf("another instance moved the tag to %s", got)
	}
	own, _ := mine.Digest()
	if got := digestAt(serve(t, blobs, second, first)); got != own {
		t.Errorf("its own tag is %s, want %s", got, own)
	}
}
