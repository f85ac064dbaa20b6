package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/ko/pkg/build"
	"github.com/google/ko/pkg/publish"

	"github.com/breakwater-dev/breakwater/tools/release/base"
)

const (
	module = "github.com/breakwater-dev/breakwater"
	// baseName is the name of the base image in annotations. A release does not publish the base
	// image: its layer is part of each image.
	baseName = "breakwater.dev/base"
	ldflags  = "-s -w -X " + module + "/internal/version.version=%s -X " + module + "/internal/version.revision=%s"
)

// publishImages builds the programs of the parts, and pushes their images and SBOMs. It returns the
// images by program, with their digests.
func publishImages(ctx context.Context, o options, parts []part, sign *signer) (map[string]string, error) {
	index, err := base.New(o.platforms)
	if err != nil {
		return nil, fmt.Errorf("base image: %w", err)
	}
	images := map[string]string{}
	for _, program := range programs(parts) {
		digest, err := publishImage(ctx, o, program, func(context.Context, string) (name.Reference, build.Result, error) {
			reference, err := name.NewTag(baseName)
			return reference, index, err
		})
		if err != nil {
			return nil, fmt.Errorf("image of cmd/%s: %w", program, err)
		}
		if err := sign.image(ctx, digest); err != nil {
			return nil, fmt.Errorf("sign %s: %w", digest, err)
		}
		images[program] = digest.String()
	}
	return images, nil
}

func publishImage(ctx context.Context, o options, program string, getBase build.GetBase) (name.Digest, error) {
	sboms, err := os.MkdirTemp("", "sbom")
	if err != nil {
		return name.Digest{}, err
	}
	defer func() { _ = os.RemoveAll(sboms) }()
	builder, err := build.NewGo(ctx, o.root,
		build.WithBaseImages(getBase),
		build.WithPlatforms(o.platforms...),
		build.WithTrimpath(true),
		build.WithDefaultEnv([]string{"CGO_ENABLED=0"}),
		// The linker sets version and commit, because the values that Go records depend on the clone.
		build.WithDefaultFlags([]string{"-buildvcs=false"}),
		build.WithDefaultLdflags(strings.Fields(fmt.Sprintf(ldflags, o.version, o.revision))),
		build.WithSPDX(o.version),
		build.WithSBOMDir(sboms),
		build.WithAnnotation("org.opencontainers.image.version", o.version),
		build.WithAnnotation("org.opencontainers.image.revision", o.revision),
		build.WithAnnotation("org.opencontainers.image.source", "https://"+module),
		build.WithAnnotation("org.opencontainers.image.licenses", "Apache-2.0"),
		build.WithAnnotation("dev.breakwater.base.certificates", base.Certificates()),
	)
	if err != nil {
		return name.Digest{}, err
	}
	result, err := builder.Build(ctx, build.StrictScheme+module+"/cmd/"+program)
	if err != nil {
		return name.Digest{}, err
	}
	publisher, err := publish.NewDefault(o.registry+"/"+imageName(program),
		publish.WithAuthFromKeychain(authn.DefaultKeychain),
		publish.WithNamer(func(base, _ string) string { return base }),
		publish.WithTags([]string{o.version}))
	if err != nil {
		return name.Digest{}, err
	}
	if _, err := publisher.Publish(ctx, result, program); err != nil {
		return name.Digest{}, err
	}
	hash, err := result.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	// The reference that the publisher returns contains the tag, too.
	digest, err := name.NewDigest(o.registry + "/" + imageName(program) + "@" + hash.String())
	if err != nil {
		return name.Digest{}, err
	}
	return digest, keepSBOMs(sboms, filepath.Join(o.out, "sbom"), program)
}

// keepSBOMs copies the SBOMs under names that begin with the name of the image. ko names them by
// the last folder of a program, which is not unique.
func keepSBOMs(from, to, program string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		target := imageName(program) + strings.TrimPrefix(entry.Name(), filepath.Base(program))
		if err := copyFile(filepath.Join(from, entry.Name()), filepath.Join(to, target)); err != nil {
			return err
		}
	}
	return nil
}

// writeImageList writes images.txt, for mirrors and scanners.
func writeImageList(o options, images map[string]string) error {
	var lines []string
	for _, image := range images {
		lines = append(lines, image)
	}
	slices.Sort(lines)
	return os.WriteFile(filepath.Join(o.out, "images.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
