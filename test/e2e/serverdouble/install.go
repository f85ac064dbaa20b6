package serverdouble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// Command is the command that Install runs in the root of the repository.
func Command() []string { return []string{"ko", "apply", "--sbom=none", "-Rf", manifests} }

// Install builds and applies the double and waits until it is ready. It writes
// the output of ko to progress.
func Install(ctx context.Context, kube kubernetes.Interface, progress io.Writer) error {
	root, err := repository()
	if err != nil {
		return err
	}
	command := Command()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "KO_CONFIG_PATH="+filepath.Join(root, "ko.yaml"))
	cmd.Stdout, cmd.Stderr = progress, progress
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return ready(ctx, kube)
}

// ready waits until the applied version of the double is available.
func ready(ctx context.Context, kube kubernetes.Interface) error {
	state := errors.New("not checked")
	err := wait.PollUntilContextTimeout(ctx, 300*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		d, err := kube.AppsV1().Deployments(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			state = err
			return false, ignoreNotFound(err)
		}
		s := d.Status
		state = fmt.Errorf("generation %d of %d, %d of %d pods available", s.ObservedGeneration, d.Generation, s.AvailableReplicas, s.Replicas)
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 1 || s.Replicas != 1 || s.AvailableReplicas != 1 {
			return false, nil
		}
		// The endpoints of the Service change after the status of the
		// Deployment.
		state = New(nil).do(ctx, http.MethodGet, "/double/health", nil, nil)
		return state == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the double: %w (%w)", err, state)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrs.IsNotFound(err) {
		return nil
	}
	return err
}

// repository returns the folder of go.mod, which is the working folder or a
// parent.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or a parent: run this in the repository")
		}
		dir = parent
	}
}
