// Command mutation injects faults into decisions, one at a time, and verifies that the
// named tests notice each. They have to pass without a fault first. It does not change the
// tree: go test -overlay replaces the file.
//
//	go run ./test/mutation           # all faults
//	go run ./test/mutation refund    # those whose description or file contains the word
package main

import (
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
	var chosen []fault
	for _, f := range faults {
		if strings.Contains(f.file+" "+f.what, word) {
			chosen = append(chosen, f)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no fault contains %q", word)
	}
	if err := passWithoutFaults(chosen, func(f fault) (result, error) { return f.test(ctx) }); err != nil {
		return err
	}
	var survived []string
	for _, f := range chosen {
		began := time.Now()
		got, err := f.inject(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s: %w", f.file, f.what, err)
		case got == failed:
			fmt.Printf("caught   %-10s %s: %s (%.0f s)\n", f.part, f.file, f.what, time.Since(began).Seconds())
		default:
			survived = append(survived, f.file+": "+f.what)
			fmt.Printf("SURVIVED %-10s %s: %s\n", f.part, f.file, f.what)
		}
	}
	fmt.Printf("%d of %d faults are caught\n", len(chosen)-len(survived), len(chosen))
	if len(survived) > 0 {
		return fmt.Errorf("no test noticed:\n  %s", strings.Join(survived, "\n  "))
	}
	return nil
}

// passWithoutFaults returns an error unless the tests of all faults pass. Tests that fail anyway
// notice nothing.
func passWithoutFaults(all []fault, test func(fault) (result, error)) error {
	done := map[[2]string]bool{}
	for _, f := range all {
		key := [2]string{f.pkg, f.tests}
		if done[key] {
			continue
		}
		done[key] = true
		if got, err := test(f); err != nil {
			return fmt.Errorf("tests of %s without a fault: %w", f.pkg, err)
		} else if got != passed {
			return fmt.Errorf("tests of %s that match %s %s without a fault", f.pkg, f.tests, got)
		}
	}
	return nil
}

// inject runs the tests with the fault.
func (f fault) inject(ctx context.Context) (got result, err error) {
	source, err := os.ReadFile(f.file)
	if err != nil {
		return "", err
	}
	mutant, err := f.apply(string(source))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := writeOverlay(dir, f.file, mutant)
	if err != nil {
		return "", err
	}
	return f.test(ctx, "-count=1", "-overlay", overlay)
}

// result is the result of tests.
type result string

// The results.
const (
	passed result = "pass"
	failed result = "fail"
	hung   result = "hang"
)

// test runs the tests with these flags of go test.
func (f fault) test(ctx context.Context, flags ...string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := append([]string{"test", "-timeout", hang.String(), "-run", f.tests}, flags...)
	out, err := exec.CommandContext(ctx, "go", append(args, f.pkg)...).CombinedOutput()
	got, err := resultOf(string(out), err)
	if got == hung {
		fmt.Printf("a test hangs:\n%s\n", out)
	}
	return got, err
}

// resultOf returns the result of go test, by its output and error.
func resultOf(output string, err error) (result, error) {
	switch {
	case err == nil && strings.Contains(output, "no tests to run"):
		return "", errors.New("no test matches")
	case err == nil:
		return passed, nil
	case strings.Contains(output, "--- FAIL: "):
		return failed, nil
	case strings.Contains(output, "panic: test timed out"):
		return hung, nil
	default:
		return "", fmt.Errorf("%w\n%s", err, output)
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
