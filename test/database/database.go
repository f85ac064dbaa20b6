// Package database starts database servers for tests from Debian packages: on
// loopback, with their own data, not as root. They are stopped after the tests.
// Without the packages the tests fail, or are skipped if
// BREAKWATER_SKIP_DATABASES=1.
package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is the time limit for the start of a server.
const startTimeout = 60 * time.Second

// server is a database server of this process.
type server struct {
	once    sync.Once
	err     error
	dir     string
	host    string
	port    int
	command *exec.Cmd
}

var (
	mu      sync.Mutex
	started []*server
)

// Run runs the tests of a package and stops the servers; it is for TestMain.
func Run(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

// Stop stops the servers, for a TestMain with other cleanup.
func Stop() {
	mu.Lock()
	defer mu.Unlock()
	for _, s := range started {
		s.stop()
	}
}

// need fails the test if a program is missing, or skips the test if skipping is allowed.
func need(t testing.TB, found bool, program, pkg string) {
	t.Helper()
	if found {
		return
	}
	if os.Getenv("BREAKWATER_SKIP_DATABASES") == "1" {
		t.Skipf("%s is missing", program)
	}
	t.Fatalf("%s is missing: install Debian package %s (hack/packages.sh), or set BREAKWATER_SKIP_DATABASES=1", program, pkg)
}

// prepare creates the folder of the server.
func (s *server) prepare(name string, owner *syscall.Credential) error {
	var err error
	if s.dir, err = os.MkdirTemp("", "breakwater-"+name+"-"); err != nil {
		return err
	}
	if err := os.Chmod(s.dir, 0o755); err != nil {
		return err
	}
	if owner != nil {
		return os.Chown(s.dir, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// start starts the server and waits until it answers.
func (s *server) start(command *exec.Cmd, answers func() error) error {
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	s.command = command
	mu.Lock()
	started = append(started, s)
	mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	deadline := time.After(startTimeout)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("%s exited: %w\n%s", command.Path, err, s.log())
		case <-deadline:
			return fmt.Errorf("%s did not answer within %s\n%s", command.Path, startTimeout, s.log())
		case <-tick.C:
			if answers() == nil {
				return nil
			}
		}
	}
}

func (s *server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

func (s *server) stop() {
	if s.command != nil {
		_ = s.command.Process.Kill()
	}
	_ = os.RemoveAll(s.dir)
}

// credentialOf returns the credential of a user if the process is root, because
// the servers do not run as root.
func credentialOf(name string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// command returns a command in its own process group.
func command(owner *syscall.Credential, dir, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(context.Background(), program, args...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setpgid: true}
	return c
}

func runCommand(c *exec.Cmd) error {
	text, err := c.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(text)))
	}
	return nil
}
