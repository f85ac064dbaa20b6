package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this plugin",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "kubectl-breakwater %s %s %s/%s\n", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
