// Command pushbase pushes the base image to the registry of KO_DOCKER_REPO, and prints its
// reference with the digest. `make apply` runs it, because ko reads base images from registries only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/breakwater-dev/breakwater/tools/release/base"
)

// localOnly are the values of KO_DOCKER_REPO with which ko loads images into kind or Docker.
var localOnly = []string{"kind.local", "ko.local"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	reference, err := push(ctx, os.Getenv("KO_DOCKER_REPO"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pushbase:", err)
		os.Exit(1)
	}
	fmt.Println(reference)
}

func push(ctx context.Context, registry string) (name.Digest, error) {
	if registry == "" {
		return name.Digest{}, errors.New("environment variable KO_DOCKER_REPO is not set: set it to the registry of the images, such as registry.example.com/breakwater")
	}
	repository, err := name.NewRepository(registry + "/breakwater-base")
	if err != nil {
		return name.Digest{}, fmt.Errorf("environment variable KO_DOCKER_REPO: %w", err)
	}
	if host := repository.RegistryStr(); slices.Contains(localOnly, host) {
		return name.Digest{}, fmt.Errorf("environment variable KO_DOCKER_REPO is %s, which is no registry, so the base image cannot be pushed to it: "+
			"start a local registry for the cluster (https://kind.sigs.k8s.io/docs/user/local-registry/) and set KO_DOCKER_REPO=localhost:5001/breakwater", host)
	}
	index, err := base.New(base.Platforms)
	if err != nil {
		return name.Digest{}, err
	}
	hash, err := index.Digest()
	if err != nil {
		return name.Digest{}, err
	}
	// With a tag, registries that remove untagged images keep it.
	tag := repository.Tag("latest")
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return name.Digest{}, fmt.Errorf("push %s: %w", tag, err)
	}
	return repository.Digest(hash.String()), nil
}
