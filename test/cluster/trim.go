// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The cache grows with every built version and pushed image. A new "up" first
// removes entries that were not used for a month, incomplete entries of
// interrupted runs, and images that no tag or Knative manifest references.
const (
	unusedAge = 30 * 24 * time.Hour
	imageAge  = 7 * 24 * time.Hour // a running cluster may still deploy it
	uploadAge = 24 * time.Hour     // a blob is pushed before its manifest
)

func (c *cluster) trimCache(context.Context) error {
	var errs []error
	for _, pattern := range []string{"bin/*", "knative/*", "ko/*", "containerd*", "registry/manifests*/*" + partSuffix + "*"} {
		entries, _ := filepath.Glob(c.cached(filepath.FromSlash(pattern)))
		for _, e := range entries {
			if c.disposable(e) {
				c.printf("   removing unused cache entry: %s", e)
				errs = append(errs, os.RemoveAll(e))
			}
		}
	}
	return errors.Join(append(errs, c.trimRegistry())...)
}

// disposable reports whether an entry is incomplete and its writer has ended,
// or whether it is old and unused.
func (c *cluster) disposable(entry string) bool {
	if _, pid, ok := strings.Cut(filepath.Base(entry), partSuffix); ok {
		n, err := strconv.Atoi(pid)
		return err == nil && processGone(n)
	}
	info, err := os.Lstat(entry)
	return err == nil && c.now().Sub(info.ModTime()) > unusedAge && len(processesNaming(entry)) == 0
}

// used marks an entry as used, which keeps it for another month.
func (c *cluster) used(entry string) {
	_ = os.Chtimes(entry, time.Time{}, c.now()) // a missing entry is created next
}

var digestPattern = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// manifestFile has the fields of a saved manifest that trimming needs.
type manifestFile struct {
	path   string
	digest string // empty for a tag
	young  bool
	names  []string // digests in its body
}

// trimRegistry removes unreferenced manifests, then the blobs that no remaining
// manifest references.
func (c *cluster) trimRegistry() error {
	var all []manifestFile
	files, _ := filepath.Glob(filepath.Join(c.registryData(), "manifests*"))
	for _, dir := range files {
		saved, err := readManifests(dir)
		if err != nil {
			return err
		}
		for p, m := range saved {
			f := manifestFile{path: manifestPath(dir, p), names: digestPattern.FindAllString(string(m.Body), -1)}
			if info, err := os.Stat(f.path); err == nil {
				f.young = c.now().Sub(info.ModTime()) < imageAge
			}
			if last := path.Base(p); strings.HasPrefix(last, "sha256:") {
				f.digest = last
			}
			all = append(all, f)
		}
	}
	var pinned []string
	resolved, _ := filepath.Glob(c.cached("knative", "*.yaml"))
	for _, r := range resolved {
		data, err := os.ReadFile(r)
		if err != nil {
			return err
		}
		pinned = append(pinned, digestPattern.FindAllString(string(data), -1)...)
	}
	drop, named := unreachable(all, pinned)
	var errs []error
	for _, f := range drop {
		errs = append(errs, os.Remove(f.path))
	}
	return errors.Join(append(errs, c.trimBlobs(named))...)
}

// unreachable returns the unreferenced manifests, and the digests that the
// others reference. The roots are young manifests, tags and pinned digests.
func unreachable(all []manifestFile, pinned []string) (drop []manifestFile, named map[string]bool) {
	named = map[string]bool{}
	for _, p := range pinned {
		named[p] = true
	}
	kept := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for _, f := range all {
			if kept[f.path] || !f.young && f.digest != "" && !named[f.digest] {
				continue
			}
			kept[f.path], grown = true, true
			for _, n := range f.names {
				named[n] = true
			}
		}
	}
	for _, f := range all {
		if !kept[f.path] {
			drop = append(drop, f)
		}
	}
	return drop, named
}

func (c *cluster) trimBlobs(named map[string]bool) error {
	var errs []error
	uploads, _ := filepath.Glob(filepath.Join(c.registryData(), "blobs", "upload-*"))
	blobs, _ := filepath.Glob(filepath.Join(c.registryData(), "blobs", "sha256", "*"))
	for _, b := range append(uploads, blobs...) {
		info, err := os.Stat(b)
		if err != nil || named["sha256:"+filepath.Base(b)] || c.now().Sub(info.ModTime()) < uploadAge {
			continue
		}
		if err := os.Remove(b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// trimImages removes unpacked images that are no longer in the registry. It
// runs while containerd has no containers.
func (c *cluster) trimImages(ctx context.Context) error {
	list, err := c.ctr(ctx, "images", "list")
	if err != nil {
		return err
	}
	saved := map[string]bool{}
	dirs, _ := filepath.Glob(filepath.Join(c.registryData(), "manifests*"))
	for _, dir := range dirs {
		manifests, err := readManifests(dir)
		if err != nil {
			return err
		}
		for p := range manifests {
			saved[path.Base(p)] = true
		}
	}
	if unsaved := imagesWithout(list, saved); len(unsaved) > 0 {
		_, err = c.ctr(ctx, append([]string{"images", "remove"}, unsaved...)...)
	}
	return err
}

// imagesWithout returns the references of the images in containerd whose digest is
// not saved. A line of list has a reference, a type and a digest.
func imagesWithout(list string, saved map[string]bool) []string {
	var unsaved []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[2], "sha256:") && !saved[f[2]] {
			unsaved = append(unsaved, f[0])
		}
	}
	return unsaved
}
