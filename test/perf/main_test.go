//go:build bench

package perf

import (
	"fmt"
	"os"
	"testing"

	"github.com/kelseyhightower/envconfig"
)

// TestMain prints the goals of all measurements at the end.
func TestMain(m *testing.M) {
	code := m.Run()
	var o options
	if err := envconfig.Process("", &o); err == nil {
		if all, err := readFigures(o.results().Figures); err == nil && len(all) > 0 {
			fmt.Printf("%s\nThe whole page is %s.\n", all.markdown(), o.results().Page)
		}
	}
	os.Exit(code)
}
