// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func TestReferencedImagesAreKept(t *testing.T) {
	all := []manifestFile{
		{path: "tag", names: []string{digest(10)}},
		{path: "index", digest: digest(1), young: true, names: []string{digest(2)}},
		{path: "of an index", digest: digest(2), names: []string{digest(20)}},
		{path: "of Knative", digest: digest(3), names: []string{digest(30)}},
		{path: "old", digest: digest(4), names: []string{digest(40), digest(10)}},
	}
	drop, named := unreachable(all, []string{digest(3)})
	if len(drop) != 1 || drop[0].path != "old" {
		t.Errorf("drops %+v", drop)
	}
	for n, want := range map[int]bool{10: true, 20: true, 30: true, 40: false} {
		if named[digest(n)] != want {
			t.Errorf("blob %d is kept: %v, want %v", n, !want, want)
		}
	}
}

func TestUnpackedImagesAreRemovedWithTheImagesOfTheRegistry(t *testing.T) {
	list := "REF TYPE DIGEST SIZE\nlocalhost:5000/a@" + digest(1) + " application/x " + digest(1) + " 3 MiB\n" +
		digest(9) + " application/x " + digest(2) + " 3 MiB\n"
	if got := imagesWithout(list, map[string]bool{digest(1): true}); !slices.Equal(got, []string{digest(9)}) {
		t.Error(got)
	}
}

func TestCacheEntriesUsedWithinAMonthAreKept(t *testing.T) {
	c := testCluster(t)
	old, recent := c.cached("bin", "etcd-v1"), c.cached("bin", "etcd-v2")
	half, building := c.cached("bin", "ko-v1"+partSuffix+"1073741824"), c.cached("bin", fmt.Sprint("ko-v2", partSuffix, os.Getpid()))
	for _, e := range []string{old, recent, half, building} {
		put(t, e+"/x", "")
		age(t, e, 2*unusedAge)
	}
	c.used(recent)
	if err := c.trimCache(context.Background()); err != nil {
		t.Fatal(err)
	}
	for e, want := range map[string]bool{old: false, recent: true, half: false, building: true} {
		if exists(e) != want {
			t.Errorf("%s exists: %v, want %v", e, !want, want)
		}
	}
}

func TestABlobIsRemovedWithItsLastManifest(t *testing.T) {
	c := testCluster(t)
	r := &savedManifests{dir: c.cached("registry", "manifests")}
	for n, body := range map[int]string{1: digest(11), 2: digest(12) + digest(13)} {
		m := savedManifest{Path: "/v2/x/manifests/" + digest(n), Body: []byte(body)}
		if err := r.save(m); err != nil {
			t.Fatal(err)
		}
	}
	age(t, manifestPath(r.dir, "/v2/x/manifests/"+digest(1)), 2*imageAge)
	blob := func(n int) string {
		return c.cached("registry", "blobs", "sha256", strings.TrimPrefix(digest(n), "sha256:"))
	}
	for _, n := range []int{11, 12, 13, 14} {
		put(t, blob(n), "")
		age(t, blob(n), 2*uploadAge)
	}
	age(t, blob(14), time.Minute) // its manifest is not pushed yet
	if err := c.trimRegistry(); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{11: false, 12: true, 13: true, 14: true} {
		if exists(blob(n)) != want {
			t.Errorf("blob %d exists: %v, want %v", n, !want, want)
		}
	}
}
