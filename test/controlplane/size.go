package controlplane

import (
	"os"
	"strconv"
	"testing"
)

// Size returns a size of the run: the environment variable, or the default.
func Size(t testing.TB, variable string, fallback int) int {
	t.Helper()
	value, ok := os.LookupEnv(variable)
	if !ok {
		return fallback
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: write a number from 1", variable, value)
	}
	return n
}
