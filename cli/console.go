//go:build !windows

package cli

import "os"

func hasEscapeSequences(*os.File) bool { return true }
