// Command release makes a release of Breakwater from the working tree: images in a registry, and a
// folder with everything else. RELEASE.md says when it is run, docs/install.md what users do with
// the files.
//
// The same commit and version always give the same digests and files, except for signatures, which
// are random. If all Go modules are cached, command release uses no network but that of the
// registry, to which it writes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/tools/release/base"
)

// options say what to make.
type options struct {
	// root is the repository, out the folder of the files.
	root, out string
	// version is the version of the release, such as v0.1.0.
	version string
	// revision is the commit. time is its date, which every file in an archive gets.
	revision string
	time     time.Time
	// registry is the prefix of the names of the images, such as registry.example.com/breakwater.
	registry string
	// platforms of the images.
	platforms []string
	// only names the parts to make; empty means all.
	only []string
	// download is the URL below which the files will be published.
	download string
	// key is the path of the private key that signs; empty means no signatures.
	key string
}

// semver is what Helm and krew accept.
var semver = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o, err := readOptions(ctx)
	if err != nil {
		return err
	}
	if err := newFolder(o.out); err != nil {
		return err
	}
	parts, err := readParts(o)
	if err != nil {
		return err
	}
	signer, err := newSigner(o.key)
	if err != nil {
		return err
	}
	images, err := publishImages(ctx, o, parts, signer)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return writeImageList(o, images) },
		func() error { return writeManifests(o, parts, images) },
		func() error { return writeChart(o, parts, images) },
		func() error { return writePlugin(ctx, o) },
		func() error { return writeNotes(o) },
		func() error {
			return copyFile(filepath.Join(o.root, "hack/uninstall.sh"), filepath.Join(o.out, "uninstall.sh"))
		},
		func() error { return writeChecksums(o, signer) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println("release", o.version, "is in", o.out)
	return nil
}

// newFolder creates the folder of the files. A file of another run would become a part of the release.
func newFolder(out string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(out)
	if err == nil && len(files) > 0 {
		err = fmt.Errorf("folder %s has files of another run: remove it first", out)
	}
	return err
}

func readOptions(ctx context.Context) (options, error) {
	o := options{key: os.Getenv("COSIGN_KEY"), registry: os.Getenv("KO_DOCKER_REPO")}
	var platforms, only string
	flag.StringVar(&o.root, "root", ".", "repository")
	flag.StringVar(&o.version, "version", "", "version, such as v0.1.0")
	flag.StringVar(&o.out, "out", "", "folder of the files (default dist/VERSION in the repository)")
	flag.StringVar(&platforms, "platforms", strings.Join(base.Platforms, ","), "platforms of the images")
	flag.StringVar(&only, "parts", "", "folders of config to release (default all)")
	flag.StringVar(&o.download, "download", "https://github.com/breakwater-dev/breakwater/releases/download",
		"URL below which the folder VERSION with the files will be published")
	flag.Parse()
	if !semver.MatchString(o.version) {
		return o, fmt.Errorf("-version is %q: use vMAJOR.MINOR.PATCH, such as v0.1.0", o.version)
	}
	if o.registry == "" {
		return o, errors.New("environment variable KO_DOCKER_REPO is not set: set it to the registry of the images, such as registry.example.com/breakwater")
	}
	root, err := filepath.Abs(o.root)
	if err != nil {
		return o, err
	}
	o.root = root
	if o.out == "" {
		o.out = filepath.Join(root, "dist", o.version)
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return o, err
	}
	o.platforms = strings.Split(platforms, ",")
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if o.revision, err = git(ctx, root, "rev-parse", "HEAD"); err != nil {
		return o, err
	}
	// The release must contain exactly the files of the commit.
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return o, err
	}
	if changes != "" {
		return o, fmt.Errorf("the working tree has changes: commit or remove them first:\n%s", changes)
	}
	date, err := git(ctx, root, "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return o, err
	}
	if o.time, err = time.Parse(time.RFC3339, date); err != nil {
		return o, fmt.Errorf("date of the commit: %w", err)
	}
	o.time = o.time.UTC()
	return o, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
