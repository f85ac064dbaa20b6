package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// make mutations runs the faults; this keeps them applicable.
func TestEachFaultChangesItsFile(t *testing.T) {
	for _, f := range faults {
		source, err := os.ReadFile(filepath.Join("../..", f.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := f.apply(string(source)); err != nil {
			t.Errorf("%s: %s: %v", f.file, f.what, err)
		}
	}
}

func TestEachPartHasFaults(t *testing.T) {
	count := map[string]int{}
	for _, f := range faults {
		count[f.part]++
	}
	for _, part := range []string{change, protection, permission} {
		if count[part] < 10 {
			t.Errorf("part %s has %d faults, want at least 10", part, count[part])
		}
	}
}

func TestTestsHaveToPassWithoutAFault(t *testing.T) {
	all := []fault{{pkg: "./a", tests: "."}, {pkg: "./a", tests: "."}, {pkg: "./a", tests: "B"}, {pkg: "./c", tests: "."}}
	for name, tc := range map[string]struct {
		results map[string]result
		ok      bool
		runs    int
	}{
		"all pass":        {nil, true, 3},
		"a test fails":    {map[string]result{"./a B": failed}, false, 2},
		"a test hangs":    {map[string]result{"./a .": hung}, false, 1},
		"no test matches": {map[string]result{"./c .": ""}, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			err := passWithoutFaults(all, func(f fault) (result, error) {
				runs++
				got, other := tc.results[f.pkg+" "+f.tests]
				switch {
				case !other:
					return passed, nil
				case got == "":
					return "", errors.New("no test matches")
				default:
					return got, nil
				}
			})
			if (err == nil) != tc.ok || runs != tc.runs {
				t.Errorf("%d runs: %v", runs, err)
			}
		})
	}
}

func TestOnlyAFailedTestNoticesAFault(t *testing.T) {
	exit := errors.New("exit status 1")
	for name, tc := range map[string]struct {
		output string
		err    error
		want   result
	}{
		"tests pass":                     {"ok  \tpkg\t0.1s\n", nil, passed},
		"no test matches":                {"ok  \tpkg\t0.1s [no tests to run]\n", nil, ""},
		"a test fails":                   {"--- FAIL: TestA (0.00s)\nFAIL\n", exit, failed},
		"a test hangs":                   {"panic: test timed out after 4m0s\n", exit, hung},
		"a test fails and another hangs": {"--- FAIL: TestA (0.00s)\npanic: test timed out after 4m0s\n", exit, failed},
		"the package cannot be built":    {"FAIL\tpkg [build failed]\n", exit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resultOf(tc.output, tc.err)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}
