// Package version says which version of Breakwater a program is.
//
// A release sets version and revision when it links the program (tools/release). Every other build
// has the version that the Go command derives from the repository.
package version

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
)

// version and revision are set by the linker (-X).
var version, revision string

// Info identifies a build.
type Info struct {
	// Version is the tag of a release, such as v0.1.0, or a pseudo-version of Go.
	Version string
	// Revision is the commit; empty if it is unknown.
	Revision string
	// Go is the version of Go that built the program.
	Go string
}

// Get returns the version of the running program.
func Get() Info {
	build, _ := debug.ReadBuildInfo()
	return describe(version, revision, build)
}

// describe returns the values that the linker set, or else those that the Go command
// recorded.
func describe(version, revision string, build *debug.BuildInfo) Info {
	info := Info{Version: version, Revision: revision, Go: runtime.Version()}
	if build != nil && info.Version == "" {
		info.Version = build.Main.Version
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" && info.Revision == "" {
				info.Revision = setting.Value
			}
		}
	}
	if info.Version == "" {
		info.Version = "(devel)"
	}
	return info
}

// String is one line.
func (i Info) String() string {
	if i.Revision == "" {
		return fmt.Sprintf("%s, %s", i.Version, i.Go)
	}
	return fmt.Sprintf("%s, commit %s, %s", i.Version, i.Revision, i.Go)
}

// ExitIfAsked prints the version and ends the program if its only argument is -version, --version
// or version. A main function calls it first, because it needs no other arguments and no
// environment variables.
func ExitIfAsked() {
	if asked(os.Args[1:]) {
		write(os.Stdout, Get())
		os.Exit(0)
	}
}

func asked(args []string) bool {
	return len(args) == 1 && (args[0] == "-version" || args[0] == "--version" || args[0] == "version")
}

func write(to io.Writer, info Info) { _, _ = fmt.Fprintln(to, "breakwater", info) }
