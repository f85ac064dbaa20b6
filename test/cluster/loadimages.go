// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// loadImages copies images into the registry, from an archive of "docker save"
// or from a reference that the host can pull. Pods use them as
// localhost:5000/<repository>; the registry is also the mirror of docker.io.
func (c *cluster) loadImages(ctx context.Context, sources []string) error {
	for _, s := range sources {
		load := c.loadReference
		if info, err := os.Stat(s); err == nil && info.Mode().IsRegular() {
			load = c.loadArchive
		}
		names, err := load(ctx, s)
		if err != nil {
			return fmt.Errorf("load %s: %w", s, err)
		}
		for _, n := range names {
			c.printf("%s is loaded as %s/%s", s, registryInside, n)
		}
	}
	return nil
}

func (c *cluster) loadArchive(ctx context.Context, path string) ([]string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range manifest {
		for _, t := range d.RepoTags {
			tag, err := name.NewTag(t)
			if err != nil {
				return nil, err
			}
			img, err := tarball.ImageFromPath(path, &tag)
			if err != nil {
				return nil, err
			}
			ref := tag.RepositoryStr() + ":" + tag.TagStr()
			if err := c.push(ctx, ref, img); err != nil {
				return nil, err
			}
			names = append(names, ref)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the archive has no tagged image")
	}
	return names, nil
}

func (c *cluster) loadReference(ctx context.Context, s string) ([]string, error) {
	source, err := name.ParseReference(s)
	if err != nil {
		return nil, err
	}
	img, err := remote.Image(source, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: goarch}))
	if err != nil {
		return nil, err
	}
	tag := "latest"
	if t, ok := source.(name.Tag); ok {
		tag = t.TagStr()
	}
	ref := source.Context().RepositoryStr() + ":" + tag
	return []string{ref}, c.push(ctx, ref, img)
}
