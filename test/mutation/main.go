// Command mutation injects faults into decisions, one at a time, and verifies that the
// named tests notice each. It does not change the tree: go test -overlay replaces the file.
//
//	go run ./test/mutation           # all faults
//	go run ./test/mutation refund    # those whose description or file contains the word
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// limit bounds the build and the tests of one fault, and hang its tests. A test that only hangs does not
// notice a fault.
const limit, hang = 10 * time.Minute, 4 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, strings.Join(os.Args[1:], " ")); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, word string) error {
	var survived []string
	tried := 0
	for _, f := range faults {
		if !strings.Contains(f.file+" "+f.what, word) {
			continue
		}
		tried++
		began := time.Now()
		caught, err := f.inject(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s: %w", f.file, f.what, err)
		case !caught:
			survived = append(survived, f.file+": "+f.what)
			fmt.Printf("SURVIVED %-10s %s: %s\n", f.part, f.file, f.what)
		default:
			fmt.Printf("caught   %-10s %s: %s (%.0f s)\n", f.part, f.file, f.what, time.Since(began).Seconds())
		}
	}
	fmt.Printf("%d of %d faults are caught\n", tried-len(survived), tried)
	switch {
	case tried == 0:
		return fmt.Errorf("no fault contains %q", word)
	case len(survived) > 0:
		return fmt.Errorf("no test noticed:\n  %s", strings.Join(survived, "\n  "))
	}
	return nil
}

// inject reports whether a test fails with the fault.
func (f fault) inject(ctx context.Context) (caught bool, err error) {
	source, err := os.ReadFile(f.file)
	if err != nil {
		return false, err
	}
	mutant, err := f.apply(string(source))
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := writeOverlay(dir, f.file, mutant)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tests := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", hang.String(), "-overlay", overlay, "-run", f.tests, f.pkg)
	var out bytes.Buffer
	tests.Stdout, tests.Stderr = &out, &out
	err = tests.Run()
	switch {
	case err == nil && strings.Contains(out.String(), "no tests to run"):
		return false, fmt.Errorf("no test of %s matches %s", f.pkg, f.tests)
	case err == nil:
		return false, nil
	case strings.Contains(out.String(), "--- FAIL: "):
		return true, nil
	case strings.Contains(out.String(), "panic: test timed out"):
		fmt.Printf("a test hangs:\n%s\n", out.Bytes())
		return false, nil
	default:
		return false, fmt.Errorf("%w\n%s", err, out.Bytes())
	}
}

// apply returns the source with the fault.
func (f fault) apply(source string) (string, error) {
	if n := strings.Count(source, f.is); n != 1 {
		return "", fmt.Errorf("%q occurs %d times", f.is, n)
	}
	return strings.Replace(source, f.is, f.becomes, 1), nil
}

// writeOverlay writes the mutant and the overlay that names it.
func writeOverlay(dir, file, mutant string) (path string, err error) {
	original, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	replaced := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(replaced, []byte(mutant), 0o600); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replaced}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o600)
}
