//go:build e2e

package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/breakwater-dev/breakwater/test/e2e/dump"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

const (
	// root is the root of the repository, and of the version under test.
	root = "../.."
	// dumps is the folder for the state of a failed run.
	dumps = root + "/bin/upgrade"
	// limit is the time limit of a run.
	limit = 12 * time.Minute
)

// earlier is the folder with the sources of the earlier version; hack/upgrade.sh makes it.
func earlier() string { return os.Getenv("UPGRADE_FROM_SOURCES") }

// work is work that is in progress during the upgrade.
type work interface {
	// namespace is the name of its namespace.
	namespace() string
	// begin begins the work with the earlier version, and returns when it is in progress.
	begin(ctx context.Context) error
	// during continues the work until the upgrade is complete, and a little longer.
	during(ctx context.Context, upgraded <-chan struct{}) error
	// end ends the work with the version under test, and checks the result.
	end(ctx context.Context) error
}

func TestAnUpgradeLosesNothingAndAnswersRequestsAsBefore(t *testing.T) {
	if earlier() == "" {
		t.Fatal("run this test with `make test-upgrade`, which extracts the sources of the earlier version")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	// An interrupt ends the run like its time limit, with a cleanup.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	f, err := connect(t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := f.cleanUp(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	began := time.Now()
	all := []work{
		&releases{fixture: f}, &waitingRelease{fixture: f}, &heldRelease{fixture: f}, &drain{fixture: f}, &permissions{fixture: f}, &requests{fixture: f},
	}
	if err := f.run(ctx, all); err != nil {
		save(t, f, began, all)
		t.Fatal(err)
	}
}

// run upgrades while all work is in progress.
func (f *fixture) run(ctx context.Context, all []work) error {
	if err := errors.Join(f.cleanUp(ctx), f.awaitCleanup(ctx)); err != nil {
		return fmt.Errorf("clean up after an earlier run: %w", err)
	}
	old, now, err := f.installEarlier(ctx)
	if err != nil {
		return err
	}
	if err := f.configure(ctx); err != nil {
		return err
	}
	next, err := f.resolve(ctx)
	defer next.remove()
	if err != nil {
		return err
	}
	for webhook := range now.Webhooks {
		old.Webhooks[webhook] = true
	}
	// The context of the group lives until all work has ended.
	group, gctx := errgroup.WithContext(ctx)
	var begun sync.WaitGroup
	begun.Add(len(all))
	started, upgraded := make(chan struct{}), make(chan struct{})
	for _, w := range all {
		group.Go(func() error {
			err := w.begin(gctx)
			begun.Done()
			if err == nil {
				err = awaitClosed(gctx, started)
			}
			if err == nil {
				err = w.during(gctx, upgraded)
			}
			if err == nil {
				err = w.end(gctx)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", w.namespace(), err)
			}
			return err
		})
	}
	var before state
	group.Go(func() (err error) {
		begun.Wait()
		if before, err = f.state(gctx, old.Webhooks); err != nil {
			return err
		}
		close(started)
		f.log("all work is in progress")
		if err := f.installParts(gctx, root, next.permission, append(os.Environ(), "APPLY_MANIFESTS_FROM="+next.manifests)); err != nil {
			return err
		}
		close(upgraded)
		return f.checkReplaced(gctx, before.pods)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	after, err := f.state(ctx, old.Webhooks)
	if err != nil {
		return err
	}
	f.log("%d stored objects are compared", len(before.stored))
	return errors.Join(compareCallErrors(before.callErrors, after.callErrors), compareStored(before.stored, after.stored), checkChangelog(old.Without(now)))
}

// state is what is compared before and after the upgrade.
type state struct {
	callErrors map[string]int
	stored     map[string]any
	pods       map[string]bool
}

func (f *fixture) state(ctx context.Context, webhooks map[string]bool) (s state, err error) {
	if s.callErrors, err = f.callErrors(ctx, webhooks); err != nil {
		return s, err
	}
	if s.stored, err = f.stored(ctx); err != nil {
		return s, err
	}
	s.pods, err = f.systemPods(ctx)
	return s, err
}

// installEarlier installs the earlier version, and removes the objects that only the version under
// test has. It returns what the manifests of both versions contain.
func (f *fixture) installEarlier(ctx context.Context) (old, now Installation, err error) {
	if old, err = ReadInstallation(os.DirFS(filepath.Join(earlier(), "config"))); err != nil {
		return old, now, err
	}
	if now, err = ReadInstallation(os.DirFS(filepath.Join(root, "config"))); err != nil {
		return old, now, err
	}
	// ko caches one binary per import path, so each version has its own cache.
	environment := append(os.Environ(), "KOCACHE="+os.Getenv("KOCACHE")+"-earlier")
	if err := f.install(ctx, earlier(), environment); err != nil {
		return old, now, err
	}
	for _, o := range now.Without(old) {
		arguments := []string{"delete", "--ignore-not-found", o.Resource, o.Name}
		if o.Namespace != "" {
			arguments = append(arguments, "-n", o.Namespace)
		}
		if _, err := (kubectl.Kubectl{}).Output(ctx, "", arguments...); err != nil {
			return old, now, err
		}
	}
	return old, now, nil
}

// resolved has the manifests of the version under test, with its images. Users apply such files; to build
// the images takes most of the CPU of this machine.
type resolved struct{ permission, manifests string }

// remove removes the temporary folders.
func (r resolved) remove() {
	_ = os.RemoveAll(r.permission)
	_ = os.RemoveAll(r.manifests)
}

func (f *fixture) resolve(ctx context.Context) (r resolved, err error) {
	if r.permission, err = withProviderHost(filepath.Join(root, "config", "permission")); err != nil {
		return r, err
	}
	if r.manifests, err = os.MkdirTemp("", "manifests"); err != nil {
		return r, err
	}
	return r, f.command(ctx, append(os.Environ(), "WRITE_MANIFESTS_TO="+r.manifests), applyParts(root, r.permission)...)
}

// install installs the version in a folder as a user does, and waits until it is ready.
func (f *fixture) install(ctx context.Context, folder string, environment []string) error {
	permission, err := withProviderHost(filepath.Join(folder, "config", "permission"))
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(permission) }() // a temporary folder
	return f.installParts(ctx, folder, permission, environment)
}

func (f *fixture) installParts(ctx context.Context, folder, permission string, environment []string) error {
	if err := f.command(ctx, environment, applyParts(folder, permission)...); err != nil {
		return err
	}
	return f.command(ctx, environment, root+"/hack/wait-ready.sh")
}

// applyParts is the command that installs a version, with the manifests of part permission in a folder.
func applyParts(folder, permission string) []string {
	return []string{"make", "--no-print-directory", "-C", folder, "apply", "PARTS=config/core config/judge config/protection " + permission}
}

// command runs a command; its output is printed only on errors.
func (f *fixture) command(ctx context.Context, environment []string, command ...string) error {
	began := time.Now()
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, output.Bytes())
	}
	f.log("%s: %s", strings.Join(command, " "), time.Since(began).Round(time.Second))
	return nil
}

// withProviderHost returns a copy of the manifests of part permission with a setting of the user. As the
// page on upgrades says, it has to be in the file: `kubectl apply` overwrites it otherwise.
func withProviderHost(manifests string) (folder string, err error) {
	if folder, err = os.MkdirTemp("", "permission"); err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, os.DirFS(manifests)); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "220-centre-config.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	set := bytes.Replace(raw, []byte(`provider-hosts: ""`), []byte(`provider-hosts: "`+setup.Host+`"`), 1)
	if bytes.Equal(raw, set) {
		return "", fmt.Errorf("%s does not have provider-hosts", path)
	}
	return folder, os.WriteFile(path, set, 0o644)
}

// compareCallErrors returns an error if the API server could not call a webhook.
func compareCallErrors(before, after map[string]int) error {
	var out []error
	for webhook, count := range after {
		if count > before[webhook] {
			out = append(out, fmt.Errorf("the API server could not call webhook %s: %d times", webhook, count-before[webhook]))
		}
	}
	return errors.Join(out...)
}

// checkChangelog returns an error if the changelog does not name an object that `kubectl apply`
// leaves behind.
func checkChangelog(left []Object) error {
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for _, o := range left {
		if !bytes.Contains(changelog, []byte(o.Name)) {
			err = errors.Join(err, fmt.Errorf("the new version does not have %s: an upgrade leaves it, and the changelog does not name it", o))
		}
	}
	return err
}

// save writes the state of a failed run to bin/upgrade.
func save(t *testing.T, f *fixture, began time.Time, all []work) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var namespaces []string
	for _, w := range all {
		namespaces = append(namespaces, w.namespace())
	}
	if err := dump.Write(ctx, f.kube, dumps, began, append(namespaces, serverdouble.Namespace)...); err != nil {
		t.Log(err)
	}
	t.Log("the state of the failed run is in bin/upgrade")
}
